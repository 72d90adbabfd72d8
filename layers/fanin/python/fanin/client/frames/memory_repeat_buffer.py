"""A repeat buffer in memory."""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Iterable, Iterator
from itertools import islice
from threading import RLock

from fanin.client.frames.envelopes import OCTETS, Envelope
from fanin.client.frames.repeat_buffer import MAX_BYTES, MAX_ENVELOPES, IndexRange, Usage, usage_with


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
    """

    def __init__(self, *, max_envelopes: int = MAX_ENVELOPES, max_bytes: int = MAX_BYTES) -> None:
        self._bounds = Usage(max_envelopes, max_bytes)
        self._usage = Usage(0, 0)
        self._waiting: deque[tuple[bytes, str]] = deque()
        self._frames: dict[int, list[tuple[bytes, str]]] = {}
        self._lock = RLock()

    def put(self, payload: bytes, content_type: str = OCTETS) -> None:
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
            return list(self._frames)

    def read(self, frame: int, ranges: Iterable[IndexRange]) -> Iterator[Envelope]:
        with self._lock:
            entries = self._frames.get(frame, [])
        for start, stop in ranges:
            for index, entry in enumerate(islice(entries, start, stop), start):
                yield Envelope(frame, index, *entry)

    def drop(self, frame: int) -> None:
        self.release(frame, ())

    def release(self, frame: int, missing: Collection[IndexRange]) -> None:
        with self._lock:
            entries = self._frames.pop(frame, [])
            kept = {index for start, stop in missing for index in range(start, min(stop, len(entries)))}
            gone = [entry for index, entry in enumerate(entries) if index not in kept]
            self._waiting.extend(entry for index, entry in enumerate(entries) if index in kept)
            self._usage = Usage(
                self._usage.envelopes - len(gone), self._usage.bytes - sum(len(entry[0]) for entry in gone)
            )
