"""Frames over SQS: sending envelopes, receiving them, and reading the reply channel."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from fanin.client.frames.envelopes import Codec, Envelope, JsonCodec
from fanin.client.frames.receiver import Disposition, IdempotentReceiver
from fanin.client.frames.repeater import Notice
from fanin.client.paging import chunks
from fanin.client.queues import REQUEST_BYTES, queue_errors
from fanin.entry.partial_batch import partial_batch_response
from fanin.errors import InvalidRequest, Throttled

if TYPE_CHECKING:
    from mypy_boto3_sqs import SQSClient

_MOST: Final = 10


class SqsTransport:
    """Sends a repeater's envelopes to a standard queue; a ``Transport``.

    Args:
        sqs: client.
        queue_url: the receivers' queue.
        codec: writes the bodies; JSON by default.
    """

    def __init__(self, sqs: SQSClient, queue_url: str, codec: Codec | None = None) -> None:
        self._sqs = sqs
        self._queue_url = queue_url
        self._codec = codec or JsonCodec()

    def __call__(self, envelopes: Sequence[Envelope]) -> None:
        """Send envelopes, up to ten in a request.

        Raises:
            Throttled: the queue did not accept some of them.
            AccessDenied, NotConfigured, ServiceUnavailable: the queue cannot be reached.
        """
        bodies = (self._codec.encode_text(envelope) for envelope in envelopes)
        refused = 0
        for page in chunks(
            bodies, max_items=_MOST, size_of=lambda body: len(body.encode()), max_bytes=REQUEST_BYTES
        ):
            entries: list[Any] = [{"Id": str(i), "MessageBody": body} for i, body in enumerate(page)]
            with queue_errors(self._queue_url):
                answer = self._sqs.send_message_batch(QueueUrl=self._queue_url, Entries=entries)
            refused += len(answer.get("Failed", []))
        if refused:
            raise Throttled(f"{self._queue_url} did not accept {refused} of {len(envelopes)} envelopes")


class SqsReceiver:
    """Feeds an ``IdempotentReceiver`` from a queue: as a Lambda handler, or by polling.

    Make the queue's visibility timeout at least as long as the lease, so that an envelope does not come again
    while another receiver is handling it.

    Args:
        receiver: handles the envelopes.
        codec: reads the bodies; JSON by default.
    """

    def __init__(self, receiver: IdempotentReceiver, codec: Codec | None = None) -> None:
        self._receiver = receiver
        self._codec = codec or JsonCodec()

    def __call__(self, event: Mapping[str, Any], context: Any = None) -> dict[str, Any]:  # noqa: ARG002
        """Handle an SQS event; the event source mapping needs ``ReportBatchItemFailures``.

        Args:
            event: what Lambda hands over.
            context: Lambda's context.

        Returns:
            The partial batch response: the messages to deliver again.
        """
        bodies = {str(record["messageId"]): str(record["body"]) for record in event["Records"]}
        return partial_batch_response(sorted(self._receive(bodies)))

    def poll(self, sqs: SQSClient, queue_url: str, *, wait: int = 20) -> int:
        """Receive up to ten messages once, and delete those that were handled or dropped.

        Args:
            sqs: client.
            queue_url: the receivers' queue.
            wait: seconds to wait for messages, 0 to 20.

        Returns:
            How many messages were received.

        Raises:
            AccessDenied, NotConfigured, ServiceUnavailable, Throttled: the queue cannot be reached.
        """
        with queue_errors(queue_url):
            answer = sqs.receive_message(QueueUrl=queue_url, MaxNumberOfMessages=_MOST, WaitTimeSeconds=wait)
        messages = {message["MessageId"]: message for message in answer.get("Messages", [])}
        again = self._receive({message_id: message["Body"] for message_id, message in messages.items()})
        entries: list[Any] = [
            {"Id": str(number), "ReceiptHandle": message["ReceiptHandle"]}
            for number, (message_id, message) in enumerate(messages.items())
            if message_id not in again
        ]
        if entries:
            with queue_errors(queue_url):
                sqs.delete_message_batch(QueueUrl=queue_url, Entries=entries)
        return len(messages)

    def _receive(self, bodies: Mapping[str, str]) -> set[str]:
        """Receive the envelopes in messages.

        Args:
            bodies: by message id.

        Returns:
            Ids of the messages to deliver again, including those that hold no envelope.
        """
        envelopes: dict[str, Envelope] = {}
        for message_id, body in bodies.items():
            try:
                envelopes[message_id] = self._codec.decode_text(body)
            except InvalidRequest:
                continue  # delivered again, until the queue moves it to its dead-letter queue
        dispositions = self._receiver.receive(list(envelopes.values()))
        settled = {
            message_id
            for message_id, disposition in zip(envelopes, dispositions, strict=True)
            if disposition is not Disposition.REDELIVER
        }
        return set(bodies) - settled


def queue_notices(sqs: SQSClient, queue_url: str, *, wait: int = 0) -> Callable[[], Iterator[Notice]]:
    """Make the ``notices`` of a ``Repeater`` whose reply channel is an SQS queue.

    Each call receives up to ten messages and deletes them, also those that are not from fanin.

    Args:
        sqs: client.
        queue_url: the reply channel; no other sender may use it.
        wait: seconds for which a call waits for messages, 0 to 20.
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
                continue  # not a message of fanin
        if messages:
            entries: list[Any] = [
                {"Id": str(i), "ReceiptHandle": message["ReceiptHandle"]}
                for i, message in enumerate(messages)
            ]
            with queue_errors(queue_url):
                sqs.delete_message_batch(QueueUrl=queue_url, Entries=entries)

    return take
