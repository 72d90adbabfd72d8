"""What a repeater keeps until it is delivered.

An entry *waits* until a frame is opened for it; then it has an index in that frame. A frame's entries are
dropped together, when the frame is complete.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from typing import Final, NamedTuple, Protocol

from fanin.client.frames.envelopes import OCTETS, Envelope
from fanin.errors import BufferFull

IndexRange = tuple[int, int]
"""Indices of envelopes in a frame, ``(start, stop)``, without ``stop``."""

MAX_ENVELOPES: Final = 100_000
MAX_BYTES: Final = 256 * 2**20


class Usage(NamedTuple):
    """How much a buffer holds, or how much it may hold.

    Attributes:
        envelopes: number of envelopes.
        bytes: bytes of their payloads.
    """

    envelopes: int
    bytes: int


class RepeatBuffer(Protocol):
    """Keeps envelopes until they are delivered; several threads may use it.

    ``MemoryRepeatBuffer`` ends with the process, ``SqliteRepeatBuffer`` survives it.
    """

    def put(self, payload: bytes, content_type: str = OCTETS) -> None:
        """Keep a payload; once this has returned, the payload is safe.

        Raises:
            BufferFull: the payload would exceed the most envelopes or bytes; slow down, and try again.
        """
        ...

    @property
    def usage(self) -> Usage:
        """What it holds, whether waiting or in frames."""
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
