"""What a repeater keeps until it is delivered.

An entry *waits* until a frame is opened for it; then it has an index in that frame. A frame's entries are
dropped together, when the frame is complete. An envelope that can never be sent, or that receivers never
handle, is *set aside*, for people to look at: it stays, with the reason, until it is put back or discarded.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import count
from threading import RLock
from typing import Final, NamedTuple, Protocol, TypeAlias

from fanin.client.frames.envelopes import OCTETS, Envelope, check_content_type
from fanin.domain import limits
from fanin.errors import BufferFull

IndexRange = tuple[int, int]
"""Indices of envelopes in a frame, ``(start, stop)``, without ``stop``."""

MAX_ENVELOPES: Final = 100_000
MAX_BYTES: Final = 256 * 2**20
NOT_HANDLED: Final = (
    "it was missing from {frames} frames, of which receivers handled others; find out in their logs why they"
    " fail, then put it back or discard it"
)
_LARGEST: Final = 2**63 - 1


class BufferUsage(NamedTuple):
    """How much a buffer holds, or how much it may hold.

    Attributes:
        envelopes: number of envelopes.
        bytes: bytes of their payloads.
    """

    envelopes: int
    bytes: int


@dataclass(frozen=True, slots=True)
class SetAside:
    """An envelope that can never be sent, or that receivers never handle.

    Attributes:
        number: names it in its buffer, for ``put_back`` and ``discard``.
        payload: as it was put.
        content_type: as it was put.
        reason: why it was set aside.
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
    def usage(self) -> BufferUsage:
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

    def release(
        self,
        frame: int,
        missing: Collection[IndexRange],
        *,
        others_delivered: bool = False,
        max_frames: int | None = None,
    ) -> int:
        """Dissolve a frame that was given up: missing entries wait again, the others are dropped.

        An entry that was missing from too many frames is set aside, with ``NOT_HANDLED`` as the reason. Its
        count begins with the first frame of which others were delivered: before that, nothing says that
        there are receivers at all.

        Args:
            frame: id of the frame.
            missing: the ranges that were not delivered; they may reach beyond the frame.
            others_delivered: whether anything of the frame was delivered.
            max_frames: from how many frames an entry may be missing; None sets nothing aside.

        Returns:
            How many entries were set aside.
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


def bounds_of(max_envelopes: int, max_bytes: int) -> BufferUsage:
    """What a buffer may hold.

    Raises:
        InvalidRequest: a bound is not a whole number from 1.
    """
    return BufferUsage(
        limits.whole("max_envelopes", max_envelopes, 1, _LARGEST),
        limits.whole("max_bytes", max_bytes, 1, _LARGEST),
    )


def usage_with(usage: BufferUsage, size: int, bounds: BufferUsage) -> BufferUsage:
    """Add one payload to what a buffer holds.

    Args:
        usage: what it holds.
        size: bytes of the payload.
        bounds: what it may hold.

    Raises:
        BufferFull: it may not hold so much.
    """
    more = BufferUsage(usage.envelopes + 1, usage.bytes + size)
    if more.envelopes > bounds.envelopes or more.bytes > bounds.bytes:
        raise BufferFull(
            f"the repeat buffer holds {usage.envelopes} envelopes of {usage.bytes} bytes and may hold "
            f"{bounds.envelopes} of {bounds.bytes}; wait until receivers have caught up",
            retry_after=1,
        )
    return more


_Entry: TypeAlias = tuple[bytes, str, int]
"""Payload, content type, and the number of frames from which it was missing."""


class MemoryRepeatBuffer:
    """A ``RepeatBuffer`` in memory, for senders that can make their payloads again after a crash.

        >>> buffer = MemoryRepeatBuffer(max_envelopes=2)
        >>> buffer.put(b"a")
        >>> buffer.put(b"b")
        >>> buffer.put(b"c")
        Traceback (most recent call last):
        ...
        fanin.errors.BufferFull: the repeat buffer holds 2 envelopes of 2 bytes and may hold 2 of ...

    Args:
        max_envelopes: most envelopes it may hold.
        max_bytes: most bytes of payload it may hold.

    Raises:
        InvalidRequest: a bound is not a whole number from 1.
    """

    def __init__(self, *, max_envelopes: int = MAX_ENVELOPES, max_bytes: int = MAX_BYTES) -> None:
        self._bounds = bounds_of(max_envelopes, max_bytes)
        self._usage = BufferUsage(0, 0)
        self._waiting: deque[_Entry] = deque()
        self._frames: dict[int, list[_Entry | None]] = {}  # None where an envelope was set aside
        self._aside: dict[int, SetAside] = {}
        self._numbers = count(1)
        self._lock = RLock()

    def put(self, payload: bytes, content_type: str = OCTETS) -> None:
        check_content_type(content_type)
        with self._lock:
            self._usage = usage_with(self._usage, len(payload), self._bounds)
            self._waiting.append((payload, content_type, 0))

    @property
    def usage(self) -> BufferUsage:
        return self._usage

    @property
    def waiting(self) -> int:
        return len(self._waiting)

    def assign(self, frame: int, size: int) -> None:
        with self._lock:
            self._frames[frame] = [self._waiting.popleft() for _ in range(size)]

    def frames(self) -> list[int]:
        with self._lock:
            return [frame for frame, entries in self._frames.items() if any(entries)]

    def read(self, frame: int, ranges: Iterable[IndexRange]) -> Iterator[Envelope]:
        with self._lock:
            entries = self._frames.get(frame, [])
        for start, stop in ranges:
            for index, entry in enumerate(entries[start:stop], start):
                if entry is not None:
                    yield Envelope(frame, index, *entry[:2])

    def drop(self, frame: int) -> None:
        self.release(frame, ())

    def release(
        self,
        frame: int,
        missing: Collection[IndexRange],
        *,
        others_delivered: bool = False,
        max_frames: int | None = None,
    ) -> int:
        with self._lock:
            before = len(self._aside)
            entries = self._frames.pop(frame, [])
            kept = {index for start, stop in missing for index in range(start, min(stop, len(entries)))}
            for index, entry in enumerate(entries):
                if entry is None:
                    continue
                payload, content_type, frames = entry
                frames += others_delivered or frames > 0
                if index not in kept:
                    self._drop(payload)
                elif max_frames is None or frames < max_frames:
                    self._waiting.append((payload, content_type, frames))
                else:
                    self._put_aside(entry, NOT_HANDLED.format(frames=frames))
            return len(self._aside) - before

    def set_aside(self, frame: int, reasons: Mapping[int, str]) -> None:
        with self._lock:
            entries = self._frames.get(frame, [])
            for index, reason in reasons.items():
                entry = entries[index] if 0 <= index < len(entries) else None
                if entry is not None:
                    entries[index] = None
                    self._put_aside(entry, reason)

    def aside(self) -> list[SetAside]:
        with self._lock:
            return list(self._aside.values())

    def put_back(self, number: int) -> None:
        with self._lock:
            if found := self._aside.pop(number, None):
                self._waiting.append((found.payload, found.content_type, 0))

    def discard(self, number: int) -> None:
        with self._lock:
            if found := self._aside.pop(number, None):
                self._drop(found.payload)

    def _put_aside(self, entry: _Entry, reason: str) -> None:
        number = next(self._numbers)
        self._aside[number] = SetAside(number, *entry[:2], reason)

    def _drop(self, payload: bytes) -> None:
        self._usage = BufferUsage(self._usage.envelopes - 1, self._usage.bytes - len(payload))
