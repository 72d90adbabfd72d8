"""Reads the notices of a reply channel that is an SQS queue."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, Final

from fanin.client.frames.transport import Notice
from fanin.client.sqs_errors import queue_errors
from fanin.domain import limits

if TYPE_CHECKING:
    from mypy_boto3_sqs import SQSClient

_MOST: Final = 10


def queue_notices(sqs: SQSClient, queue_url: str, *, wait: int = 0) -> Callable[[], Iterator[Notice]]:
    """Make the ``notices`` of a ``Repeater`` whose reply channel is an SQS queue.

    Each call receives up to ten messages and deletes them, also those that are not from fanin.

    Args:
        sqs: client.
        queue_url: the reply channel; no other sender may use it.
        wait: seconds for which a call waits for messages, 0 to 20.

    Raises:
        InvalidRequest: ``wait`` is not a whole number from 0 to 20, or the URL is not text of a usable
            length.
    """
    limits.text("queue_url", queue_url, limits.MAX_CHANNEL, least=1)
    limits.whole("wait", wait, 0, limits.MAX_WAIT)

    def take() -> Iterator[Notice]:
        with queue_errors(queue_url):
            answer = sqs.receive_message(QueueUrl=queue_url, MaxNumberOfMessages=_MOST, WaitTimeSeconds=wait)
        messages = answer.get("Messages", [])
        for message in messages:
            if notice := _notice(message["Body"]):
                yield notice
        if messages:
            entries: list[Any] = [
                {"Id": str(i), "ReceiptHandle": message["ReceiptHandle"]}
                for i, message in enumerate(messages)
            ]
            with queue_errors(queue_url):
                sqs.delete_message_batch(QueueUrl=queue_url, Entries=entries)

    return take


def _notice(text: str) -> Notice | None:
    """Read a message of a reply channel; None if it is not from fanin."""
    try:
        body = json.loads(text)
        kind, frame = body["type"], body["frame_id"]
    except (ValueError, KeyError, TypeError, RecursionError):
        return None
    return Notice(kind, frame) if type(kind) is str and type(frame) is int else None
