"""Frames over SQS: sending envelopes, receiving them, and the messages to their sender."""

import json
import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from fanin.adapters.aws import blames_content
from fanin.app.bisect import bisect
from fanin.client.frames.envelopes import Codec, Envelope, JsonCodec, Notice
from fanin.client.frames.receiver import Disposition, IdempotentReceiver
from fanin.client.messages import sqs_records
from fanin.client.sqs import REQUEST_BYTES, PolledQueue, SQSClient, check_body, queue_errors, refusal_text
from fanin.domain import limits
from fanin.domain.ids import MAX_BATCH_ID, MAX_COUNT
from fanin.domain.limits import MAX_QUEUE_MESSAGES, chunks
from fanin.entry.partial_batch import partial_batch_response
from fanin.errors import EnvelopesRefused, InvalidRequest, RequestTooLarge, Throttled

logger = logging.getLogger("fanin")


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
        limits.whole("request_bytes", request_bytes, 1, limits.MAX_SQS_BYTES)
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
        bodies: list[tuple[int, str]] = []
        refused: dict[int, str] = {}
        busy: dict[int, str] = {}
        for envelope in envelopes:
            try:
                bodies.append((envelope.index, self._text(envelope)))
            except InvalidRequest as error:
                refused[envelope.index] = str(error)
        for page in chunks(
            bodies, max_items=MAX_QUEUE_MESSAGES, size_of=_size, max_bytes=self._request_bytes
        ):
            for failed in bisect(page, lambda some: self._request(some, refused, busy)):
                raise failed.error
        if refused:
            raise EnvelopesRefused(
                f"{self._queue_url} never takes {len(refused)} of {len(envelopes)} envelopes", reasons=refused
            )
        if busy:
            raise Throttled(f"{self._queue_url} did not accept {len(busy)} of {len(envelopes)} envelopes")

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

    def _request(
        self, page: Sequence[tuple[int, str]], refused: dict[int, str], busy: dict[int, str]
    ) -> None:
        """Send one request, and add to the others why the queue did not accept an index: for good, or now.

        Raises:
            RequestTooLarge: the queue accepts fewer bytes than these in one request.
        """
        entries: list[Any] = [{"Id": str(i), "MessageBody": text} for i, (_, text) in enumerate(page)]
        try:
            with queue_errors(self._queue_url):
                answer = self._sqs.send_message_batch(QueueUrl=self._queue_url, Entries=entries)
        except RequestTooLarge as error:
            if len(page) > 1:
                raise
            refused[page[0][0]] = str(error)
            return
        for failure in answer.get("Failed", []):
            index, _ = page[int(failure["Id"])]
            why = refusal_text(failure["Code"], failure.get("Message"))
            (refused if blames_content(failure["Code"]) else busy)[index] = why


def _size(body: tuple[int, str]) -> int:
    return len(body[1].encode())


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
        queue = PolledQueue(sqs, queue_url, wait=wait)
        messages = {message["MessageId"]: message for message in queue.receive()}
        again = self._receive({message_id: message.get("Body") for message_id, message in messages.items()})
        queue.delete([message for message_id, message in messages.items() if message_id not in again])
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
    queue = PolledQueue(sqs, queue_url, wait=wait)

    def take() -> Iterator[Notice]:
        messages = queue.receive()
        for message in messages:
            if notice := _notice(message["Body"]):
                yield notice
        queue.delete(messages)

    return take


def _notice(text: str) -> Notice | None:
    """Read a message of a reply channel; None if it is not from fanin."""
    try:
        body = json.loads(text)
        kind, frame = body["type"], body["frame_id"]
    except (ValueError, KeyError, TypeError, RecursionError):
        return None
    return Notice(kind, frame) if type(kind) is str and type(frame) is int else None
