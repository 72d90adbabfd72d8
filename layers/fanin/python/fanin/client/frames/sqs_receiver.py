"""Feeds an idempotent receiver from an SQS queue: as a Lambda handler, or by polling."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from fanin.client.frames.envelopes import Codec, Envelope, JsonCodec
from fanin.client.frames.receiver import Disposition, IdempotentReceiver
from fanin.client.messages import sqs_records
from fanin.client.sqs_errors import queue_errors
from fanin.domain import limits
from fanin.entry.partial_batch import partial_batch_response
from fanin.errors import InvalidRequest

if TYPE_CHECKING:
    from mypy_boto3_sqs import SQSClient

logger = logging.getLogger("fanin")

_MOST: Final = 10


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

        Raises:
            InvalidRequest: it is not an event of SQS.
        """
        bodies = {str(record["messageId"]): record.get("body") for record in sqs_records(event)}
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
            InvalidRequest: ``wait`` is not a whole number from 0 to 20, or the URL is not text of a usable
                length.
            AccessDenied, NotConfigured, ServiceUnavailable, Throttled: the queue cannot be reached.
        """
        limits.text("queue_url", queue_url, limits.MAX_CHANNEL, least=1)
        limits.whole("wait", wait, 0, limits.MAX_WAIT)
        with queue_errors(queue_url):
            answer = sqs.receive_message(QueueUrl=queue_url, MaxNumberOfMessages=_MOST, WaitTimeSeconds=wait)
        messages = {message["MessageId"]: message for message in answer.get("Messages", [])}
        again = self._receive({message_id: message.get("Body") for message_id, message in messages.items()})
        entries: list[Any] = [
            {"Id": str(number), "ReceiptHandle": message["ReceiptHandle"]}
            for number, (message_id, message) in enumerate(messages.items())
            if message_id not in again
        ]
        if entries:
            with queue_errors(queue_url):
                sqs.delete_message_batch(QueueUrl=queue_url, Entries=entries)
        return len(messages)

    def _receive(self, bodies: Mapping[str, Any]) -> set[str]:
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
            except InvalidRequest as error:
                # Delivered again, until the queue moves it to its dead-letter queue.
                logger.warning("message %s holds no envelope and comes again: %s", message_id, error)
            except Exception:  # a codec may be the user's, and a body anything
                logger.exception("message %s cannot be read and comes again", message_id)
        dispositions = self._receiver.receive(list(envelopes.values()))
        settled = {
            message_id
            for message_id, disposition in zip(envelopes, dispositions, strict=True)
            if disposition is not Disposition.REDELIVER
        }
        return set(bodies) - settled
