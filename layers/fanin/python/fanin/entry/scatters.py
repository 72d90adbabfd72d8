"""SQS: the jobs of the worker that sends a scatter's messages, and the queue of replies."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

from fanin import names
from fanin.app.api import Scatters
from fanin.app.scatters.service import ScatterService
from fanin.entry.http.validation import parse
from fanin.entry.observe import count, logger
from fanin.errors import BatchGone, BatchNotFound, FaninError
from fanin.wire.scatters import REPLIES

Message: TypeAlias = Mapping[str, Any]


def work(event: Message, scatters: ScatterService) -> dict[str, Any]:
    """Do jobs of the worker.

    Returns:
        The partial batch response: jobs to try again.
    """

    def send(message: Message) -> None:
        job = json.loads(message["body"])
        try:
            sent = scatters.work(job["batch_id"], job["chunk"], job["wave"])
        except (BatchNotFound, BatchGone):
            return  # nobody waits for its replies any more
        count(names.METRIC_SENT, sent.sent)
        count(names.METRIC_UNREACHED, sent.refused)

    return _each(event, send)


def take(event: Message, scatters: Scatters) -> dict[str, Any]:
    """Take the messages of the reply queue: bodies of POST /v1/replies.

    Returns:
        The partial batch response. Refused messages are in it too, since the queue sends a message that
        keeps coming back to its dead-letter queue.
    """

    def reply(message: Message) -> None:
        receipts = scatters.reply(parse(REPLIES, message["body"]))
        count(names.METRIC_REPLIES, sum(receipt.first for receipt in receipts))

    return _each(event, reply)


def _each(event: Message, handle: Callable[[Message], None]) -> dict[str, Any]:
    failed = []
    for message in event["Records"]:
        try:
            handle(message)
        except FaninError as error:
            logger.warning("message failed", extra={"message_id": message["messageId"], "code": error.code})
            failed.append(message)
        except Exception:  # noqa: BLE001  a defect that one message brings to light; spare the others
            logger.exception("message failed", extra={"message_id": message["messageId"]})
            failed.append(message)
    return {"batchItemFailures": [{"itemIdentifier": message["messageId"]} for message in failed]}
