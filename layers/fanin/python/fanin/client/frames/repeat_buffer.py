"""What a repeater keeps until it is delivered.

An entry *waits* until a frame is opened for it; then it has an index in that frame. A frame's entries are
dropped together, when the frame is complete. An envelope that can never be sent is *set aside*, for people to
look at: it stays, with the reason, until it is put back or discarded.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final, NamedTuple, Protocol

from fanin.client.frames.envelopes import OCTETS, Envelope
from fanin.domain import limits
from fanin.errors import BufferFull

IndexRange = tuple[int, int]
"""Indices of envelopes in a frame, ``(start, stop)``, without ``stop``."""

MAX_ENVELOPES: Final = 100_000
MAX_BYTES: Final = 256 * 2**20
_LARGEST: Final = 2**63 - 1


class Usage(NamedTuple):
    """How much a buffer holds, or how much it may hold.

    Attributes:
        envelopes: number of envelopes.
        bytes: bytes of their payloads.
    """

    envelopes: int
    bytes: int


@dataclass(frozen=True, slots=True)
class SetAside:
    """An envelope that can never be sent.

    Attributes:
        number: names it in its buffer, for ``put_back`` and ``discard``.
        payload: as it was put.
        content_type: as it was put.
        reason: why it cannot be sent.
    """

    number: int
    payload: bytes
    content_type: str
    reason: str


class RepeatBuffer(Protocol):
    """Keeps envelopes until they are delivered; several threads may use it.

    ``MemoryRepeatBuffer`` ends with the process, ``SqliteRepeatBuffer`` survives it.
    """

    def put(self, payload: bytes, content_type: str = OCTETS) -> None:
        """Keep a payload; once this has returned, the payload is safe.

        Raises:
            InvalidRequest: the content type is not text that UTF-8 can carry.
            BufferFull: the payload would exceed the most envelopes or bytes, or there is no room for it on
                the disk; slow down, and try again.
            ServiceUnavailable: the disk does not work now; try again.
        """
        ...

    @property
    def usage(self) -> Usage:
        """What it holds, whether waiting, in frames or set aside."""
        ...

    @property
    def waiting(self) -> int:
        """Number of entries that have no frame yet."""
        ...

    def assign(self, frame: int, size: int) -> None:
        """Give the oldest waiting entries indices in a frame, from 0; either all of them or none.

        Args:
            frame: id of the frame, which has no entries yet.
            size: number of entries; so many must be waiting.
        """
        ...

    def frames(self) -> list[int]:
        """Ids of the frames that have entries, oldest first."""
        ...

    def read(self, frame: int, ranges: Iterable[IndexRange]) -> Iterator[Envelope]:
        """Read the envelopes of a frame in some ranges; indices that the buffer does not hold are skipped."""
        ...

    def drop(self, frame: int) -> None:
        """Drop the entries of a frame; a frame without entries is ignored."""
        ...

    def release(self, frame: int, missing: Collection[IndexRange]) -> None:
        """Dissolve a frame that was given up: missing entries wait again, the others are dropped.

        Args:
            frame: id of the frame.
            missing: the ranges that were not delivered; they may reach beyond the frame.
        """
        ...

    def set_aside(self, frame: int, reasons: Mapping[int, str]) -> None:
        """Take envelopes out of a frame, because they can never be sent.

        Args:
            frame: id of the frame.
            reasons: index → why; an index that the buffer does not hold is ignored.
        """
        ...

    def aside(self) -> list[SetAside]:
        """The envelopes that were set aside, oldest first."""
        ...

    def put_back(self, number: int) -> None:
        """Let an envelope that was set aside wait for a new frame; an unknown number is ignored."""
        ...

    def discard(self, number: int) -> None:
        """Drop an envelope that was set aside; an unknown number is ignored."""
        ...


def bounds_of(max_envelopes: int, max_bytes: int) -> Usage:
    """What a buffer may hold.

    Raises:
        InvalidRequest: a bound is not a whole number from 1.
    """
    return Usage(
        limits.whole("max_envelopes", max_envelopes, 1, _LARGEST),
        limits.whole("max_bytes", max_bytes, 1, _LARGEST),
    )


def usage_with(usage: Usage, size: int, bounds: Usage) -> Usage:
    """Add one payload to what a buffer holds.

    Args:
        usage: what it holds.
        size: bytes of the payload.
        bounds: what it may hold.

    Raises:
        BufferFull: it may not hold so much.
    """
    more = Usage(usage.envelopes + 1, usage.bytes + size)
    if more.envelopes > bounds.envelopes or more.bytes > bounds.bytes:
        raise BufferFull(
            f"the repeat buffer holds {usage.envelopes} envelopes of {usage.bytes} bytes and may hold "
            f"{bounds.envelopes} of {bounds.bytes}; wait until receivers have caught up",
            retry_after=1,
        )
    return more
