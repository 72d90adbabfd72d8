"""Frames over SQS: sending envelopes, receiving them, and the messages to their sender."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from fanin.app.bisect import bisect
from fanin.client.frames.envelope_sender import Notice
from fanin.client.frames.envelopes import Codec, Envelope, JsonCodec
from fanin.client.frames.receiver import Disposition, IdempotentReceiver
from fanin.client.messages import sqs_records
from fanin.client.sqs import MOST_BYTES, REQUEST_BYTES, blames_content, check_body, queue_errors, refusal_text
from fanin.domain import limits
from fanin.domain.ids import MAX_BATCH_ID, MAX_COUNT
from fanin.domain.limits import chunks
from fanin.entry.partial_batch import partial_batch_response
from fanin.errors import EnvelopesRefused, InvalidRequest, RequestTooLarge, Throttled

if TYPE_CHECKING:
    from mypy_boto3_sqs import SQSClient


logger = logging.getLogger("fanin")

_MOST: Final = 10


@dataclass(frozen=True, slots=True)
class _Body:
    """The text of an envelope, and its index in its frame."""

    index: int
    text: str


@dataclass(frozen=True, slots=True)
class _Failure:
    """An envelope that the queue did not accept: now, or for good."""

    index: int
    reason: str
    for_good: bool


class SqsTransport:
    """Sends a repeater's envelopes to a standard queue; a ``Transport``.

    Args:
        sqs: client.
        queue_url: the receivers' queue.
        codec: writes the bodies; JSON by default.
        request_bytes: most bytes of an envelope, and of a request; up to 1 MiB if the queue's
            MaximumMessageSize allows it.

    Raises:
        InvalidRequest: the URL is not text of a usable length, or ``request_bytes`` is not a whole number
            from 1.
    """

    def __init__(
        self,
        sqs: SQSClient,
        queue_url: str,
        codec: Codec | None = None,
        *,
        request_bytes: int = REQUEST_BYTES,
    ) -> None:
        limits.text("queue_url", queue_url, limits.MAX_CHANNEL, least=1)
        limits.whole("request_bytes", request_bytes, 1, MOST_BYTES)
        self._sqs = sqs
        self._queue_url = queue_url
        self._codec = codec or JsonCodec()
        self._request_bytes = request_bytes

    def check(self, payload: bytes, content_type: str) -> None:
        """Check that the queue accepts a payload, whichever frame it is sent in.

        Raises:
            InvalidRequest: the codec cannot write it.
            RequestTooLarge: its envelope has more bytes than a message may have.
        """
        check_body(self._text(Envelope(MAX_BATCH_ID, MAX_COUNT, payload, content_type)), self._request_bytes)

    def __call__(self, envelopes: Sequence[Envelope]) -> None:
        """Send envelopes, up to ten in a request.

        Raises:
            EnvelopesRefused: some can never be sent; it has tried to send the others.
            Throttled: the queue did not accept some of them.
            AccessDenied, NotConfigured, ServiceUnavailable: the queue cannot be reached.
        """
        bodies, refused = self._texts(envelopes)
        failures: list[_Failure] = []
        for page in chunks(bodies, max_items=_MOST, size_of=_size, max_bytes=self._request_bytes):
            for failed in bisect(page, lambda some: failures.extend(self._request(some))):
                raise failed.error
        refused |= {failure.index: failure.reason for failure in failures if failure.for_good}
        if refused:
            raise EnvelopesRefused(
                f"{self._queue_url} never takes {len(refused)} of {len(envelopes)} envelopes", reasons=refused
            )
        if failures:
            raise Throttled(f"{self._queue_url} did not accept {len(failures)} of {len(envelopes)} envelopes")

    def _texts(self, envelopes: Sequence[Envelope]) -> tuple[list[_Body], dict[int, str]]:
        """Write envelopes; of those that cannot be written, why, by index."""
        bodies: list[_Body] = []
        refused: dict[int, str] = {}
        for envelope in envelopes:
            try:
                bodies.append(_Body(envelope.index, self._text(envelope)))
            except InvalidRequest as error:
                refused[envelope.index] = str(error)
        return bodies, refused

    def _text(self, envelope: Envelope) -> str:
        """Write an envelope.

        Raises:
            InvalidRequest: the codec cannot write it.
        """
        try:
            return self._codec.encode_text(envelope)
        except Exception as error:  # a codec may be the user's, and a payload anything
            if isinstance(error, OSError) or getattr(error, "retryable", False):
                raise  # what the codec asks does not answer now: the envelope is not to blame
            raise InvalidRequest(
                f"the codec cannot write this payload: {error!r}; put bytes, and a content type that is text"
            ) from error

    def _request(self, page: Sequence[_Body]) -> list[_Failure]:
        """Send one request; returns what the queue did not accept.

        Raises:
            RequestTooLarge: the queue accepts fewer bytes than these in one request.
        """
        entries: list[Any] = [{"Id": str(i), "MessageBody": body.text} for i, body in enumerate(page)]
        try:
            with queue_errors(self._queue_url):
                answer = self._sqs.send_message_batch(QueueUrl=self._queue_url, Entries=entries)
        except RequestTooLarge as error:
            if len(page) > 1:
                raise
            return [_Failure(page[0].index, str(error), for_good=True)]
        return [
            _Failure(
                page[int(failure["Id"])].index,
                refusal_text(failure["Code"], failure.get("Message")),
                for_good=blames_content(failure["Code"]),
            )
            for failure in answer.get("Failed", [])
        ]


def _size(body: _Body) -> int:
    return len(body.text.encode())


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
