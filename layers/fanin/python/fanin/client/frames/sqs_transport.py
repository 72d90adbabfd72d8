"""Sends a repeater's envelopes to an SQS queue, and says which of them it can never send."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from fanin.app.bisect import bisect
from fanin.client.frames.envelopes import Codec, Envelope, JsonCodec
from fanin.client.paging import chunks
from fanin.client.sqs_errors import blames_content, queue_errors, refusal_text
from fanin.client.sqs_messages import MOST_BYTES, REQUEST_BYTES, check_body
from fanin.domain import limits
from fanin.domain.ids import MAX_BATCH_ID, MAX_COUNT
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
