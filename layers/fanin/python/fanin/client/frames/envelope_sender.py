"""Sends the envelopes of a frame from a repeat buffer, and sets aside those that can never be sent."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol, TypeAlias, runtime_checkable

from fanin.app.bisect import bisect
from fanin.client.frames.envelopes import Envelope
from fanin.domain.limits import chunks
from fanin.errors import EnvelopesRefused, ServiceUnavailable

if TYPE_CHECKING:  # receivers need no SQLite
    from fanin.client.frames.repeat_buffer import IndexRange, SqliteRepeatBuffer

Transport: TypeAlias = Callable[[Sequence[Envelope]], object]
"""Sends envelopes of one frame.

It raises an error of fanin, or OSError, if some may not have been sent; they are sent again later. It raises
``EnvelopesRefused`` for those that it can never send; they are set aside. An error that blames what is in the
envelopes (``InvalidRequest``, or any other) is traced to the envelope, so that the others are sent.
"""


@runtime_checkable
class PayloadCheck(Protocol):
    """A ``Transport`` that knows beforehand what it can never send, as ``SqsTransport`` does."""

    def check(self, payload: bytes, content_type: str) -> None:
        """Check that a payload can be sent.

        Raises:
            InvalidRequest: the payload can never be sent.
        """


@dataclass(frozen=True, slots=True)
class Notice:
    """A message from a frame's reply channel.

    Attributes:
        kind: ``Complete Frame``, ``Frame Ended`` or ``Repeat Requested``.
        frame: id of the frame.
    """

    kind: str
    frame: int


logger = logging.getLogger("fanin")

_CHUNK: Final = 100  # envelopes given to the transport at once


class Sending(NamedTuple):
    """What became of envelopes that were to be sent.

    Attributes:
        held: whether the buffer holds any of them.
        failed: whether the transport failed as a whole, so that the rest was not tried.
    """

    held: bool
    failed: bool


class EnvelopeSender:
    """Sends envelopes; one that cannot be sent holds up no other.

    Args:
        transport: sends them.
        buffer: keeps them.
    """

    def __init__(self, transport: Transport, buffer: SqliteRepeatBuffer) -> None:
        self._transport = transport
        self._buffer = buffer

    def send(self, frame_id: int, ranges: Iterable[IndexRange]) -> Sending:
        """Send the envelopes of a frame in some ranges; ranges are taken as they are needed.

        Raises:
            FaninError: the buffer cannot be read, or a range cannot be had.
        """
        held = False
        for chunk in chunks(self._buffer.read(frame_id, ranges), max_items=_CHUNK):
            held = True
            failures = bisect(chunk, self._send_some, on_defect=True)
            for failed in failures:
                logger.warning(
                    "%d envelopes of frame %d from index %d were not sent, repeating them later: %s",
                    len(failed.items),
                    frame_id,
                    failed.items[0].index,
                    failed.error,
                )
            if sum(len(failed.items) for failed in failures) == len(chunk):
                return Sending(held, failed=True)
        return Sending(held, failed=False)

    def _send_some(self, envelopes: Sequence[Envelope]) -> None:
        """Send envelopes, and set aside those that the transport can never send."""
        try:
            self._transport(envelopes)
        except OSError as error:
            raise ServiceUnavailable(f"the transport failed: {error}") from error
        except EnvelopesRefused as refused:
            frame_id = envelopes[0].frame
            for index, reason in refused.reasons.items():
                logger.warning("envelope %d of frame %d is set aside: %s", index, frame_id, reason)
            self._buffer.set_aside(frame_id, refused.reasons)
