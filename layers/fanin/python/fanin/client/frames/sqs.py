"""Frames over SQS: envelopes sent and received, and what comes on the reply channel."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from fanin.client.frames.envelopes import Codec, Envelope, JsonCodec
from fanin.client.frames.receiver import IdempotentReceiver, Reception
from fanin.client.frames.repeater import Notice
from fanin.client.paging import pages
from fanin.client.queues import REQUEST_BYTES, queue_errors
from fanin.errors import InvalidRequest, Throttled

if TYPE_CHECKING:
    from mypy_boto3_sqs import SQSClient

_MOST: Final = 10


class SqsTransport:
    """A ``Transport`` to a standard queue.

    Args:
        sqs: client.
        queue_url: the receivers' queue.
        codec: form of the bodies.
    """

    def __init__(self, sqs: SQSClient, queue_url: str, codec: Codec | None = None) -> None:
        self._sqs = sqs
        self._queue_url = queue_url
        self._codec = codec or JsonCodec()

    def __call__(self, envelopes: Sequence[Envelope]) -> None:
        """Send envelopes, ten to a request.

        Raises:
            Throttled: the queue did not take some of them.
        """
        bodies = (self._codec.encode_text(envelope) for envelope in envelopes)
        refused = 0
        for page in pages(
            bodies, most=_MOST, size_of=lambda body: len(body.encode()), most_bytes=REQUEST_BYTES
        ):
            entries: list[Any] = [{"Id": str(i), "MessageBody": body} for i, body in enumerate(page)]
            with queue_errors(self._queue_url):
                answer = self._sqs.send_message_batch(QueueUrl=self._queue_url, Entries=entries)
            refused += len(answer.get("Failed", []))
        if refused:
            raise Throttled(f"{self._queue_url} did not take {refused} of {len(envelopes)} envelopes")


class SqsReceiver:
    """Feeds an ``IdempotentReceiver`` from a queue: as a Lambda handler, or by polling.

    The visibility timeout of the queue should be no less than the lease, so that an envelope that another
    receiver is at does not come back before that one is through.

    Args:
        receiver: handles envelopes.
        codec: form of the bodies.
    """

    def __init__(self, receiver: IdempotentReceiver, codec: Codec | None = None) -> None:
        self._receiver = receiver
        self._codec = codec or JsonCodec()

    def __call__(self, event: Mapping[str, Any], context: Any = None) -> dict[str, Any]:  # noqa: ARG002
        """Handle an event of SQS; the event source mapping needs ``ReportBatchItemFailures``.

        Returns:
            The partial batch response: the messages that must come again.
        """
        bodies = {str(record["messageId"]): str(record["body"]) for record in event["Records"]}
        again = self._again(bodies)
        return {"batchItemFailures": [{"itemIdentifier": message_id} for message_id in sorted(again)]}

    def poll(self, sqs: SQSClient, queue_url: str, *, wait: int = 20) -> int:
        """Receive up to ten messages once, see them through, and delete those that are.

        Returns:
            How many were received.
        """
        with queue_errors(queue_url):
            answer = sqs.receive_message(QueueUrl=queue_url, MaxNumberOfMessages=_MOST, WaitTimeSeconds=wait)
        messages = {message["MessageId"]: message for message in answer.get("Messages", [])}
        again = self._again({message_id: message["Body"] for message_id, message in messages.items()})
        entries: list[Any] = [
            {"Id": str(number), "ReceiptHandle": message["ReceiptHandle"]}
            for number, (message_id, message) in enumerate(messages.items())
            if message_id not in again
        ]
        if entries:
            with queue_errors(queue_url):
                sqs.delete_message_batch(QueueUrl=queue_url, Entries=entries)
        return len(messages)

    def _again(self, bodies: Mapping[str, str]) -> set[str]:
        """See the messages through; those that must come again, what is no envelope among them."""
        envelopes: dict[str, Envelope] = {}
        for message_id, body in bodies.items():
            try:
                envelopes[message_id] = self._codec.decode_text(body)
            except InvalidRequest:
                continue  # it comes again until it is in the dead-letter queue
        receptions = self._receiver.receive(list(envelopes.values()))
        seen = {
            message_id
            for message_id, reception in zip(envelopes, receptions, strict=True)
            if reception is not Reception.AGAIN
        }
        return set(bodies) - seen


def queue_notices(sqs: SQSClient, queue_url: str, *, wait: int = 0) -> Callable[[], Iterator[Notice]]:
    """Make what a ``Repeater`` hears its reply channel with.

    Args:
        sqs: client.
        queue_url: the reply channel, of this sender alone.
        wait: seconds a poll waits for messages, 0 to 20.
    """

    def take() -> Iterator[Notice]:
        with queue_errors(queue_url):
            answer = sqs.receive_message(QueueUrl=queue_url, MaxNumberOfMessages=_MOST, WaitTimeSeconds=wait)
        messages = answer.get("Messages", [])
        for message in messages:
            try:
                body = json.loads(message["Body"])
                yield Notice(body["type"], body["frame_id"])
            except (ValueError, KeyError, TypeError):
                continue  # not from fanin
        if messages:
            entries: list[Any] = [
                {"Id": str(i), "ReceiptHandle": message["ReceiptHandle"]}
                for i, message in enumerate(messages)
            ]
            with queue_errors(queue_url):
                sqs.delete_message_batch(QueueUrl=queue_url, Entries=entries)

    return take
