"""What a repeater keeps until it is delivered: in memory, or in a SQLite file that survives the process.

An entry is *waiting* until a frame is asked for, then it has a place in that frame. Frames are dropped whole,
when they are complete.
"""

from __future__ import annotations

import sqlite3
from collections import deque
from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from threading import RLock
from typing import Any, Final, NamedTuple, Protocol

from fanin.client.envelopes import OCTETS, Envelope
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
        """Dissolve a frame that was given up: what is missing waits again, the rest is forgotten."""
        ...


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
            self._held = _with(self._held, len(payload), self._bounds)
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
            kept = {index for start, stop in missing for index in range(start, stop)}
            gone = [entry for index, entry in enumerate(entries) if index not in kept]
            self._waiting.extend(entry for index, entry in enumerate(entries) if index in kept)
            self._held = Held(
                self._held.envelopes - len(gone), self._held.bytes - sum(len(entry[0]) for entry in gone)
            )


_SCHEMA: Final = """
CREATE TABLE IF NOT EXISTS envelopes (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    frame INTEGER,
    place INTEGER,
    content_type TEXT NOT NULL,
    payload BLOB NOT NULL
);
CREATE UNIQUE INDEX IF NOT EXISTS by_place ON envelopes (frame, place);
"""


class SqliteRepeatBuffer:
    """A ``RepeatBuffer`` in a file. Whoever opens the file again goes on with its frames.

    The journal is written ahead (WAL). With ``synchronous=NORMAL`` a commit is in the operating system's
    hands when it returns: it survives the process, also by ``kill -9``, at no cost of a disk flush. A machine
    that loses power may lose the last commits, never the file; ``power_safe`` flushes each
    commit (``FULL``), some milliseconds a put.

    Args:
        path: the file; one process at a time may use it.
        max_envelopes: most entries.
        max_bytes: most bytes of payload.
        power_safe: whether a put survives a loss of power.
    """

    def __init__(
        self,
        path: Path,
        *,
        max_envelopes: int = MAX_ENVELOPES,
        max_bytes: int = MAX_BYTES,
        power_safe: bool = False,
    ) -> None:
        self._bounds = Held(max_envelopes, max_bytes)
        self._lock = RLock()
        self._database = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
        self._database.execute("PRAGMA locking_mode = EXCLUSIVE")
        self._database.execute("PRAGMA journal_mode = WAL")
        self._database.execute(f"PRAGMA synchronous = {'FULL' if power_safe else 'NORMAL'}")
        self._database.executescript(_SCHEMA)
        self._held = self._count()

    def close(self) -> None:
        """Close the file; the buffer is not used any more."""
        with self._lock:
            self._database.close()

    def put(self, payload: bytes, content_type: str = OCTETS) -> None:
        with self._lock:
            held = _with(self._held, len(payload), self._bounds)
            self._rows("INSERT INTO envelopes (content_type, payload) VALUES (?, ?)", (content_type, payload))
            self._held = held

    @property
    def held(self) -> Held:
        return self._held

    @property
    def waiting(self) -> int:
        ((count,),) = self._rows("SELECT count(*) FROM envelopes WHERE frame IS NULL")
        return int(count)

    def assign(self, frame: int, size: int) -> None:
        self._rows(
            "UPDATE envelopes SET frame = ?1, place = oldest.place FROM ("
            " SELECT number, row_number() OVER (ORDER BY number) - 1 AS place FROM envelopes"
            " WHERE frame IS NULL ORDER BY number LIMIT ?2"
            ") AS oldest WHERE envelopes.number = oldest.number",
            (frame, size),
        )

    def frames(self) -> list[int]:
        rows = self._rows(
            "SELECT frame FROM envelopes WHERE frame IS NOT NULL GROUP BY 1 ORDER BY min(number)"
        )
        return [int(frame) for (frame,) in rows]

    def read(self, frame: int, spans: Iterable[Span]) -> Iterator[Envelope]:
        for start, stop in spans:
            rows = self._rows(
                "SELECT place, payload, content_type FROM envelopes"
                " WHERE frame = ? AND place >= ? AND place < ? ORDER BY place",
                (frame, start, stop),
            )
            for place, payload, content_type in rows:
                yield Envelope(frame, place, payload, content_type)

    def drop(self, frame: int) -> None:
        self.release(frame, ())

    def release(self, frame: int, missing: Collection[Span]) -> None:
        with self._lock:
            self._database.execute("BEGIN IMMEDIATE")
            with self._database:  # commits, or rolls back
                for start, stop in missing:
                    self._rows(
                        "UPDATE envelopes SET frame = NULL, place = NULL"
                        " WHERE frame = ? AND place >= ? AND place < ?",
                        (frame, start, stop),
                    )
                self._rows("DELETE FROM envelopes WHERE frame = ?", (frame,))
            self._held = self._count()

    def _count(self) -> Held:
        ((count, size),) = self._rows("SELECT count(*), total(length(payload)) FROM envelopes")
        return Held(count, int(size))

    def _rows(self, statement: str, values: Sequence[object] = ()) -> list[tuple[Any, ...]]:
        with self._lock:
            return self._database.execute(statement, values).fetchall()


def _with(held: Held, size: int, bounds: Held) -> Held:
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
