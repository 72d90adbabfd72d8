"""A repeat buffer in a SQLite file, which survives the process."""

from __future__ import annotations

import sqlite3
from collections.abc import Collection, Iterable, Iterator, Sequence
from pathlib import Path
from threading import RLock
from typing import Any, Final

from fanin.client.frames.envelopes import OCTETS, Envelope
from fanin.client.frames.repeat_buffer import MAX_BYTES, MAX_ENVELOPES, IndexRange, Usage, usage_with

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
    """A ``RepeatBuffer`` in a file, so that a sender that crashed goes on when it opens the file again.

    The file has a write-ahead log. With ``synchronous=NORMAL``, a commit is with the operating system when it
    returns, so it survives the process, even ``kill -9``, without waiting for the disk. If the machine loses
    power, the last commits may be lost, but the file is never damaged. ``power_safe`` flushes each commit
    (``synchronous=FULL``), which costs some milliseconds for each put. See "Write-Ahead Logging" in SQLite's
    documentation.

    Args:
        path: the file; only one process at a time can use it.
        max_envelopes: most envelopes it may hold.
        max_bytes: most bytes of payload it may hold.
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
        self._bounds = Usage(max_envelopes, max_bytes)
        self._lock = RLock()
        self._database = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
        self._database.execute("PRAGMA locking_mode = EXCLUSIVE")
        self._database.execute("PRAGMA journal_mode = WAL")
        self._database.execute(f"PRAGMA synchronous = {'FULL' if power_safe else 'NORMAL'}")
        self._database.executescript(_SCHEMA)
        self._usage = self._count()

    def close(self) -> None:
        """Close the file; the buffer cannot be used afterwards."""
        with self._lock:
            self._database.close()

    def put(self, payload: bytes, content_type: str = OCTETS) -> None:
        with self._lock:
            usage = usage_with(self._usage, len(payload), self._bounds)
            self._rows("INSERT INTO envelopes (content_type, payload) VALUES (?, ?)", (content_type, payload))
            self._usage = usage

    @property
    def usage(self) -> Usage:
        return self._usage

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

    def read(self, frame: int, ranges: Iterable[IndexRange]) -> Iterator[Envelope]:
        for start, stop in ranges:
            rows = self._rows(
                "SELECT place, payload, content_type FROM envelopes"
                " WHERE frame = ? AND place >= ? AND place < ? ORDER BY place",
                (frame, start, stop),
            )
            for place, payload, content_type in rows:
                yield Envelope(frame, place, payload, content_type)

    def drop(self, frame: int) -> None:
        self.release(frame, ())

    def release(self, frame: int, missing: Collection[IndexRange]) -> None:
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
            self._usage = self._count()

    def _count(self) -> Usage:
        ((count, size),) = self._rows("SELECT count(*), total(length(payload)) FROM envelopes")
        return Usage(count, int(size))

    def _rows(self, statement: str, values: Sequence[object] = ()) -> list[tuple[Any, ...]]:
        with self._lock:
            return self._database.execute(statement, values).fetchall()
