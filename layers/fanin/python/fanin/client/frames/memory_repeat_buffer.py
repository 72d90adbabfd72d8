"""A repeat buffer in memory."""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Iterable, Iterator
from itertools import islice
from threading import RLock

from fanin.client.frames.envelopes import OCTETS, Envelope
from fanin.client.frames.repeat_buffer import MAX_BYTES, MAX_ENVELOPES, Held, Span, held_with


class MemoryRepeatBuffer:
    """A ``RepeatBuffer`` that ends with the process.

    Args:
        max_envelopes: most entries.
        max_bytes: most bytes of payload.
    """

    def __init__(self, *, max_envelopes: int = MAX_ENVELOPES, max_bytes: int = MAX_BYTES) -> None:
        self._bounds = Held(max_envelopes, max_bytes)
        self._held = Held(0, 0)
        self._waiting: deque[tuple[bytes, str]] = deque()
        self._frames: dict[int, list[tuple[bytes, str]]] = {}
        self._lock = RLock()

    def put(self, payload: bytes, content_type: str = OCTETS) -> None:
        with self._lock:
            self._held = held_with(self._held, len(payload), self._bounds)
            self._waiting.append((payload, content_type))

    @property
    def held(self) -> Held:
        return self._held

    @property
    def waiting(self) -> int:
        return len(self._waiting)

    def assign(self, frame: int, size: int) -> None:
        with self._lock:
            self._frames[frame] = [self._waiting.popleft() for _ in range(size)]

    def frames(self) -> list[int]:
        with self._lock:
            return list(self._frames)

    def read(self, frame: int, spans: Iterable[Span]) -> Iterator[Envelope]:
        with self._lock:
            entries = self._frames.get(frame, [])
        for start, stop in spans:
            for index, entry in enumerate(islice(entries, start, stop), start):
                yield Envelope(frame, index, *entry)

    def drop(self, frame: int) -> None:
        self.release(frame, ())

    def release(self, frame: int, missing: Collection[Span]) -> None:
        with self._lock:
            entries = self._frames.pop(frame, [])
            kept = {index for start, stop in missing for index in range(start, min(stop, len(entries)))}
            gone = [entry for index, entry in enumerate(entries) if index not in kept]
            self._waiting.extend(entry for index, entry in enumerate(entries) if index in kept)
            self._held = Held(
                self._held.envelopes - len(gone), self._held.bytes - sum(len(entry[0]) for entry in gone)
            )
