"""What a repeater keeps until it is delivered.

An entry *waits* until a frame is opened for it; then it has an index in that frame. A frame's entries are
dropped together, when the frame is complete. An envelope that can never be sent, or that receivers never
handle, is *set aside*, for people to look at: it stays, with the reason, until it is put back or discarded.
"""

import sqlite3
import weakref
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from threading import RLock
from typing import Any, Final, NamedTuple

from fanin.client.frames.envelopes import OCTETS, Envelope, check_content_type
from fanin.domain import limits
from fanin.errors import BufferFull, NotConfigured, ServiceUnavailable

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


_ASIDE: Final = -1
"""Stands for the frame of an entry that is set aside; one that waits for a frame has none."""
_SCHEMA: Final = """
CREATE TABLE IF NOT EXISTS envelopes (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    frame INTEGER,
    place INTEGER,
    content_type TEXT NOT NULL,
    payload BLOB NOT NULL,
    frames INTEGER NOT NULL DEFAULT 0,
    reason TEXT
);
CREATE UNIQUE INDEX IF NOT EXISTS by_place ON envelopes (frame, place);
"""
_SET_ASIDE: Final = "UPDATE envelopes SET frame = -1, place = NULL, reason = ? WHERE frame = ?"


class SqliteRepeatBuffer:
    """A repeat buffer in a file, so that a sender that crashed goes on when it opens the file again.

    The file has a write-ahead log. With ``synchronous=NORMAL``, a commit is with the operating system when it
    returns, so it survives the process, even ``kill -9``, without waiting for the disk. If the machine loses
    power, the last commits may be lost, but the file is never damaged. ``power_safe`` flushes each commit
    (``synchronous=FULL``), which costs some milliseconds for each put. See "Write-Ahead Logging" in SQLite's
    documentation.

    Every write is one transaction. A full disk loses nothing: ``put`` raises ``BufferFull``, and all goes on
    when there is room.

    Args:
        path: the file; only one process at a time can use it.
        max_envelopes: most envelopes it may hold.
        max_bytes: most bytes of payload it may hold.
        power_safe: whether a put survives a loss of power.

    Raises:
        InvalidRequest: a bound is not a whole number from 1.
        NotConfigured: the file is not one of a repeat buffer.
        ServiceUnavailable: the file cannot be used, or another process has it open.
    """

    def __init__(
        self,
        path: Path,
        *,
        max_envelopes: int = MAX_ENVELOPES,
        max_bytes: int = MAX_BYTES,
        power_safe: bool = False,
    ) -> None:
        self._path = path
        self._bounds = BufferUsage(
            limits.whole("max_envelopes", max_envelopes, 1, _LARGEST),
            limits.whole("max_bytes", max_bytes, 1, _LARGEST),
        )
        self._lock = RLock()
        with self._translated():
            self._database = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
            weakref.finalize(self, self._database.close)
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
        """Keep a payload; once this has returned, the payload is safe.

        Raises:
            InvalidRequest: the content type is not text that UTF-8 can carry.
            BufferFull: the payload would exceed the most envelopes or bytes, or there is no room for it on
                the disk; slow down, and try again.
            ServiceUnavailable: the disk does not work now; try again.
        """
        check_content_type(content_type)
        with self._lock:
            held, bounds = self._usage, self._bounds
            usage = BufferUsage(held.envelopes + 1, held.bytes + len(payload))
            if usage.envelopes > bounds.envelopes or usage.bytes > bounds.bytes:
                raise BufferFull(
                    f"the repeat buffer holds {held.envelopes} envelopes of {held.bytes} bytes and may hold "
                    f"{bounds.envelopes} of {bounds.bytes}; wait until receivers have caught up",
                    retry_after=1,
                )
            self._write(
                ("INSERT INTO envelopes (content_type, payload) VALUES (?, ?)", (content_type, payload))
            )
            self._usage = usage

    @property
    def usage(self) -> BufferUsage:
        """What it holds, whether waiting, in frames or set aside."""
        return self._usage

    @property
    def waiting(self) -> int:
        """Number of entries that have no frame yet."""
        return self._count_in(None)

    def assign(self, frame: int, size: int) -> None:
        """Give the oldest waiting entries indices in a frame, from 0; either all of them or none.

        Args:
            frame: id of the frame, which has no entries yet.
            size: number of entries; so many must be waiting.
        """
        statement = (
            "UPDATE envelopes SET frame = ?1, place = oldest.place FROM ("
            " SELECT number, row_number() OVER (ORDER BY number) - 1 AS place FROM envelopes"
            " WHERE frame IS NULL ORDER BY number LIMIT ?2"
            ") AS oldest WHERE envelopes.number = oldest.number"
        )
        self._write((statement, (frame, size)))

    def frames(self) -> list[int]:
        """Ids of the frames that have entries, oldest first."""
        rows = self._read(
            "SELECT frame FROM envelopes WHERE frame > ? GROUP BY 1 ORDER BY min(number)", (_ASIDE,)
        )
        return [int(frame) for (frame,) in rows]

    def read(self, frame: int, ranges: Iterable[IndexRange]) -> Iterator[Envelope]:
        """Read the envelopes of a frame in some ranges; indices that the buffer does not hold are skipped."""
        for start, stop in ranges:
            rows = self._read(
                "SELECT place, payload, content_type FROM envelopes"
                " WHERE frame = ? AND place >= ? AND place < ? ORDER BY place",
                (frame, start, stop),
            )
            for place, payload, content_type in rows:
                yield Envelope(frame, place, payload, content_type)

    def drop(self, frame: int) -> None:
        """Drop the entries of a frame; a frame without entries is ignored."""
        self.release(frame, ())

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
        most = _LARGEST if max_frames is None else max_frames
        count = "UPDATE envelopes SET frames = frames + (? OR frames > 0) WHERE frame = ?"
        move = _SET_ASIDE + " AND place >= ? AND place < ? AND frames >= ?"
        waits = "UPDATE envelopes SET frame = NULL, place = NULL WHERE frame = ? AND place >= ? AND place < ?"
        reason = NOT_HANDLED.format(frames=most)
        statements: list[tuple[str, Sequence[object]]] = [(count, (others_delivered, frame))]
        for start, stop in missing:
            statements += [(move, (reason, frame, start, stop, most)), (waits, (frame, start, stop))]
        with self._lock:
            before = self._count_in(_ASIDE)
            self._write(*statements, ("DELETE FROM envelopes WHERE frame = ?", (frame,)))
            self._usage = self._count()
            return self._count_in(_ASIDE) - before

    def set_aside(self, frame: int, reasons: Mapping[int, str]) -> None:
        """Take envelopes out of a frame, because they can never be sent.

        Args:
            frame: id of the frame.
            reasons: index → why; an index that the buffer does not hold is ignored.
        """
        # SQLite takes no half of a surrogate pair
        texts = {place: why.encode(errors="replace").decode() for place, why in reasons.items()}
        self._write(*((_SET_ASIDE + " AND place = ?", (why, frame, at)) for at, why in texts.items()))

    def aside(self) -> list[SetAside]:
        """The envelopes that were set aside, oldest first."""
        select = "SELECT number, payload, content_type, reason FROM envelopes WHERE frame = ? ORDER BY number"
        return [SetAside(*row) for row in self._read(select, (_ASIDE,))]

    def put_back(self, number: int) -> None:
        """Let an envelope that was set aside wait for a new frame; an unknown number is ignored."""
        move = "UPDATE envelopes SET frame = NULL, frames = 0, reason = NULL WHERE number = ? AND frame = ?"
        self._write((move, (number, _ASIDE)))

    def discard(self, number: int) -> None:
        """Drop an envelope that was set aside; an unknown number is ignored."""
        with self._lock:
            self._write(("DELETE FROM envelopes WHERE number = ? AND frame = ?", (number, _ASIDE)))
            self._usage = self._count()

    def _count_in(self, frame: int | None) -> int:
        ((count,),) = self._read("SELECT count(*) FROM envelopes WHERE frame IS ?", (frame,))
        return int(count)

    def _count(self) -> BufferUsage:
        ((count, size),) = self._read("SELECT count(*), total(length(payload)) FROM envelopes")
        return BufferUsage(count, int(size))

    def _read(self, statement: str, values: Sequence[object] = ()) -> list[tuple[Any, ...]]:
        with self._lock, self._translated():
            return self._database.execute(statement, values).fetchall()

    def _write(self, *statements: tuple[str, Sequence[object]]) -> None:
        """Execute statements in one transaction.

        Without room for the log, the log's pages go into the file, and the log begins anew. On a disk that is
        full to the last page even a deletion may fail; it is tried again later.
        """
        with self._lock, self._translated():
            try:
                self._commit(statements)
            except sqlite3.OperationalError as error:
                if not _no_room(error):
                    raise
                self._database.execute("PRAGMA wal_checkpoint(RESTART)")
                self._commit(statements)

    def _commit(self, statements: Sequence[tuple[str, Sequence[object]]]) -> None:
        with self._database:  # commits, or rolls back
            self._database.execute("BEGIN IMMEDIATE")
            for statement, values in statements:
                self._database.execute(statement, values)

    @contextmanager
    def _translated(self) -> Iterator[None]:
        """Raise SQLite's errors as errors of fanin."""
        try:
            yield
        except sqlite3.OperationalError as error:
            if _no_room(error):
                raise BufferFull(
                    f"there is no room on the disk for {self._path}: {error}; make room, and try again",
                    retry_after=1,
                ) from error
            raise ServiceUnavailable(
                f"the repeat buffer {self._path} cannot be used now: {error}; check the disk, and that no "
                "other process has the file open"
            ) from error
        except sqlite3.DatabaseError as error:
            raise NotConfigured(
                f"{self._path} is not the file of a repeat buffer: {error}; give another path"
            ) from error


class MemoryRepeatBuffer(SqliteRepeatBuffer):
    """A repeat buffer in memory, for senders that can make their payloads again after a crash.

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
        super().__init__(Path(":memory:"), max_envelopes=max_envelopes, max_bytes=max_bytes)


def _no_room(error: sqlite3.OperationalError) -> bool:
    return error.sqlite_errorcode == sqlite3.SQLITE_FULL
