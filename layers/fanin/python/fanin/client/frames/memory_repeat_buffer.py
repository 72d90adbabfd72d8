"""A repeat buffer in memory."""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Iterable, Iterator, Mapping
from itertools import count
from threading import RLock
from typing import TypeAlias

from fanin.client.frames.envelopes import OCTETS, Envelope, check_content_type
from fanin.client.frames.repeat_buffer import (
    MAX_BYTES,
    MAX_ENVELOPES,
    IndexRange,
    SetAside,
    Usage,
    bounds_of,
    usage_with,
)

_Entry: TypeAlias = tuple[bytes, str]


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
        self._usage = Usage(0, 0)
        self._waiting: deque[_Entry] = deque()
        self._frames: dict[int, list[_Entry | None]] = {}  # None where an envelope was set aside
        self._aside: dict[int, SetAside] = {}
        self._numbers = count(1)
        self._lock = RLock()

    def put(self, payload: bytes, content_type: str = OCTETS) -> None:
        check_content_type(content_type)
        with self._lock:
            self._usage = usage_with(self._usage, len(payload), self._bounds)
            self._waiting.append((payload, content_type))

    @property
    def usage(self) -> Usage:
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
                    yield Envelope(frame, index, *entry)

    def drop(self, frame: int) -> None:
        self.release(frame, ())

    def release(self, frame: int, missing: Collection[IndexRange]) -> None:
        with self._lock:
            entries = self._frames.pop(frame, [])
            kept = {index for start, stop in missing for index in range(start, min(stop, len(entries)))}
            for index, entry in enumerate(entries):
                if entry is None:
                    continue
                if index in kept:
                    self._waiting.append(entry)
                else:
                    self._drop(entry[0])

    def set_aside(self, frame: int, reasons: Mapping[int, str]) -> None:
        with self._lock:
            entries = self._frames.get(frame, [])
            for index, reason in reasons.items():
                entry = entries[index] if 0 <= index < len(entries) else None
                if entry is not None:
                    entries[index] = None
                    number = next(self._numbers)
                    self._aside[number] = SetAside(number, *entry, reason)

    def aside(self) -> list[SetAside]:
        with self._lock:
            return list(self._aside.values())

    def put_back(self, number: int) -> None:
        with self._lock:
            if found := self._aside.pop(number, None):
                self._waiting.append((found.payload, found.content_type))

    def discard(self, number: int) -> None:
        with self._lock:
            if found := self._aside.pop(number, None):
                self._drop(found.payload)

    def _drop(self, payload: bytes) -> None:
        self._usage = Usage(self._usage.envelopes - 1, self._usage.bytes - len(payload))
