"""What a repeater keeps until it is delivered: in memory, or in a file that survives the process.

An entry is *waiting* until a frame is asked for, then it has a place in that frame. Frames are dropped whole,
when they are complete.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from typing import Final, NamedTuple, Protocol

from fanin.client.frames.envelopes import OCTETS, Envelope
from fanin.errors import BufferFull

Span = tuple[int, int]
"""A half-open range of indices."""

MAX_ENVELOPES: Final = 100_000
MAX_BYTES: Final = 256 * 2**20


class Held(NamedTuple):
    """How much a buffer holds."""

    envelopes: int
    bytes: int


class RepeatBuffer(Protocol):
    """Keeps envelopes, safe to use from threads."""

    def put(self, payload: bytes, content_type: str = OCTETS) -> None:
        """Keep a payload; when it returns, the payload is kept.

        Raises:
            BufferFull: it would hold more envelopes or bytes than it may; slow down, and try again.
        """
        ...

    @property
    def held(self) -> Held:
        """Everything it holds, waiting or in frames."""
        ...

    @property
    def waiting(self) -> int:
        """How many have no frame yet."""
        ...

    def assign(self, frame: int, size: int) -> None:
        """Give the oldest ``size`` waiting entries their places in a frame, all or none."""
        ...

    def frames(self) -> list[int]:
        """Frames that have entries, the oldest first."""
        ...

    def read(self, frame: int, spans: Iterable[Span]) -> Iterator[Envelope]:
        """The envelopes of a frame in these ranges; those that it does not hold are left out."""
        ...

    def drop(self, frame: int) -> None:
        """Forget a frame; that it is not there is no error."""
        ...

    def release(self, frame: int, missing: Collection[Span]) -> None:
        """Dissolve a frame that was given up: what is missing waits again, the rest is forgotten.

        Args:
            frame: its id.
            missing: ranges of indices; they may reach beyond the frame.
        """
        ...


def held_with(held: Held, size: int, bounds: Held) -> Held:
    """What a buffer holds with one more payload.

    Raises:
        BufferFull: that is too much.
    """
    more = Held(held.envelopes + 1, held.bytes + size)
    if more.envelopes > bounds.envelopes or more.bytes > bounds.bytes:
        raise BufferFull(
            f"the repeat buffer holds {held.envelopes} envelopes of {held.bytes} bytes and may hold "
            f"{bounds.envelopes} of {bounds.bytes}; wait until receivers have caught up",
            retry_after=1,
        )
    return more
