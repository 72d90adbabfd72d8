"""Notes of items over rows of any store: failed items with messages and redrives, sent items, and retries."""

from abc import abstractmethod
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple, TypeAlias, TypeVar
from zlib import crc32

from fanin import names
from fanin.adapters import cursors
from fanin.app.ports.parts import FailureRow, KeyRow, PartStore, Redriven, ResultRow, RetryRow, SentRow, shard
from fanin.domain.changes import Condition, Test, where
from fanin.domain.ids import digest
from fanin.errors import IdempotencyKeyReused

T = TypeVar("T")
R = TypeVar("R")
Row: TypeAlias = Mapping[str, Any]
"""The attributes of a row, with its ``part``; those without a value are absent."""
PartKey: TypeAlias = tuple[int, str]
"""Partition and part of a row."""
When: TypeAlias = Sequence[Condition]
Written: TypeAlias = tuple[bool, Row | None]
"""Whether a row was written, and the row as it was if it was not."""
Rows: TypeAlias = tuple[list[Row], bool]
"""Rows, and whether there are more."""


class KeyRange(NamedTuple):
    """The rows of a partition from one part to another, both of them included."""

    partition: int
    first: str
    last: str


_FAILURE: Final = "failure/"
_MESSAGE: Final = "message/"
_REDRIVEN: Final = "redriven/"
_RESULT: Final = "result/"
_RETRY: Final = "retry/"
_SENT: Final = "sent/"
_KEY: Final = "key/"
_KEYS: Final = "keys/"
_LAST: Final = "~"
"""Sorts behind all that follows a slash in these keys."""
_OF_MESSAGE: Final = ("attempts", "source", "kept")
"""Attributes of a note that say where its message is, and where that came from."""
_OPTIONAL: Final = (*_OF_MESSAGE, "totals", "given_up")
"""Attributes that a note has only where they are known."""
_FIRST: Final = [(Test("item", "=", None), Test("given_up", "<>", None))]
_NOT_KEPT: Final = where("kept", "=", None)


class Parts(PartStore):
    """A ``PartStore`` over five calls on rows.

    Notes are in the partition of their batch, where they are listed. Messages, results, and the rows that say
    which redrive took a failure, are spread over partitions and read by key.
    """

    @abstractmethod
    def _write(self, call: str, key: PartKey, values: Row, when: When = (), stays: str = "") -> Written:
        """Write a note by an update, if all conditions hold; attributes that are None are removed.

        Args:
            call: by which it is counted.
            key: of the row.
            values: its attributes.
            when: the conditions; by default it is written over whatever was there.
            stays: an attribute that keeps the value that it has.
        """

    @abstractmethod
    def _read(self, call: str, keys: Sequence[PartKey]) -> list[Row]:
        """The rows of keys, in no order; keys without a row are left out."""

    @abstractmethod
    def _between(self, call: str, span: KeyRange, limit: int, *, last_first: bool = False) -> Rows:
        """The first rows of a span, or the last ones."""

    @abstractmethod
    def _delete(self, call: str, keys: Sequence[PartKey]) -> None:
        """Delete rows; those that are not there are ignored."""

    @abstractmethod
    def _each(self, call: Callable[[T], R], values: Sequence[T]) -> list[R]:
        """Make a call for each value."""

    def put_failures(self, batch_id: int, rows: Iterable[FailureRow], *, expires_at: int) -> None:
        def put(row: FailureRow) -> None:
            key = _key(batch_id, _FAILURE, row.ordinal)
            done, before = self._write("put_failures", key, _noted(row, expires_at), _FIRST)
            if not done:
                self._learn("put_failures", key, row, before)

        first: dict[int, FailureRow] = {}
        for row in rows:
            first.setdefault(row.ordinal, row)
        self._each(put, list(first.values()))

    def update_failures(self, batch_id: int, rows: Iterable[FailureRow], *, expires_at: int) -> None:
        def update(row: FailureRow) -> None:
            key, values = _key(batch_id, _FAILURE, row.ordinal), _noted(row, expires_at)
            not_later = (Test("failed_at", "=", None), Test("failed_at", "<=", row.failed_at))
            when = [not_later] if row.kept else [not_later, _NOT_KEPT]
            done, before = self._write("update_failures", key, values, when)
            if not done and row.kept:
                self._learn("update_failures", key, row, before)
            elif not done and "kept" in (before or {}):  # an earlier note's message is worth more than none
                others = {name: value for name, value in values.items() if name not in _OF_MESSAGE}
                self._write("update_failures", key, others, [not_later])

        last = {row.ordinal: row for row in rows}
        self._each(update, list(last.values()))

    def _learn(self, call: str, key: PartKey, row: FailureRow, before: Row | None) -> None:
        """Let a note that stays say where the message is, if only this one does."""
        if row.kept and "kept" not in (before or {}):
            message = {name: getattr(row, name) or None for name in _OF_MESSAGE}
            self._write(call, key, message, [where("failed_at", "<>", None), _NOT_KEPT])

    def notes(self, batch_id: int, ordinals: Collection[int]) -> dict[int, FailureRow]:
        keys = [_key(batch_id, _FAILURE, ordinal) for ordinal in sorted(set(ordinals))]
        return _by_ordinal(self._read("notes", keys), _note)

    def put_sent(self, batch_id: int, row: SentRow, *, expires_at: int) -> None:
        key = (batch_id, f"{_SENT}{row.start:013}/{digest(row.queue, 8)}")
        values = {**row._asdict(), names.EXPIRES_AT: expires_at}
        longer = (Test("stop", "=", None), Test("stop", "<=", row.stop))
        self._write("put_sent", key, values, [longer], stays="first_at")

    def sent(self, batch_id: int, *, upto: int, limit: int) -> tuple[list[SentRow], bool]:
        span = KeyRange(batch_id, _SENT, f"{_SENT}{upto:013}{_LAST}")
        rows, more = self._between("sent", span, limit, last_first=True)
        return [SentRow(**_of(SentRow, row)) for row in rows], more

    def keys(self, batch_id: int, keys: Collection[str]) -> dict[str, KeyRow]:
        rows = self._read("keys", [_keyed(batch_id, key) for key in dict.fromkeys(keys)])
        found = (KeyRow(row[names.PART].removeprefix(_KEY), **_of(KeyRow, row)) for row in rows)
        return {row.key: row for row in found}

    def keys_of(self, batch_id: int, ordinals: Collection[int]) -> dict[int, str]:
        found: dict[int, str] = {}
        for ordinal in sorted(set(ordinals), reverse=True):
            if ordinal in found:
                continue
            span = KeyRange(batch_id, _KEYS, f"{_KEYS}{ordinal:013}")
            rows, _ = self._between("keys_of", span, 1, last_first=True)
            for row in rows:
                found |= dict(enumerate(row["keys"], _ordinal(row)))
        return {ordinal: found[ordinal] for ordinal in ordinals if ordinal in found}

    def put_retries(self, batch_id: int, rows: Iterable[RetryRow], *, expires_at: int) -> None:
        def put(row: RetryRow) -> None:
            values = {**row._asdict(), names.EXPIRES_AT: expires_at}
            del values["ordinal"]
            self._write("put_retries", _key(batch_id, _RETRY, row.ordinal), values)

        last = {row.ordinal: row for row in rows}
        self._each(put, list(last.values()))

    def retries(self, batch_id: int, ordinals: Collection[int]) -> dict[int, RetryRow]:
        keys = [_key(batch_id, _RETRY, ordinal) for ordinal in sorted(set(ordinals))]
        return _by_ordinal(self._read("retries", keys), _retry)

    def retries_from(self, batch_id: int, start: int, *, limit: int) -> list[RetryRow]:
        span = KeyRange(batch_id, f"{_RETRY}{start:013}", f"{_RETRY}{_LAST}")
        rows, _ = self._between("retries_from", span, limit)
        return list(map(_retry, rows))

    def failures(
        self, batch_id: int, *, cursor: str | None = None, limit: int = 100
    ) -> tuple[list[FailureRow], str | None]:
        listing = f"failures of {batch_id}"
        (after,) = (-1,) if cursor is None else cursors.decode(listing, cursor, {1})
        span = KeyRange(batch_id, f"{_FAILURE}{after + 1:013}", f"{_FAILURE}{_LAST}")
        rows, more = self._between("failures", span, limit)
        return list(map(_note, rows)), cursors.encode(listing, _ordinal(rows[-1])) if more else None

    def notes_between(self, batch_id: int, start: int, stop: int, *, limit: int) -> list[FailureRow]:
        span = KeyRange(batch_id, f"{_FAILURE}{start:013}", f"{_FAILURE}{stop - 1:013}")
        rows, _ = self._between("notes_between", span, limit)
        return list(map(_note, rows))

    def put_messages(
        self, batch_id: int, messages: Mapping[int, bytes], *, again: bool = False, expires_at: int
    ) -> None:
        when = [] if again else [where("message", "=", None)]

        def put(ordinal: int) -> None:
            values = {"message": messages[ordinal], names.EXPIRES_AT: expires_at}
            self._write("put_messages", _apart(batch_id, _MESSAGE, ordinal), values, when)

        self._each(put, list(messages))

    def messages(self, batch_id: int, ordinals: Collection[int]) -> dict[int, bytes]:
        rows = self._read("messages", _spread(batch_id, _MESSAGE, ordinals))
        return _by_ordinal(rows, lambda row: bytes(row["message"]))

    def delete_messages(self, batch_id: int, ordinals: Collection[int]) -> None:
        self._delete("delete_messages", _spread(batch_id, _MESSAGE, ordinals))

    def put_results(self, batch_id: int, rows: Iterable[ResultRow], *, expires_at: int) -> None:
        def put(row: ResultRow) -> None:
            place = {"kept": row.kept} if row.kept else {"result": row.content}
            values = {"item": row.item, **place, names.EXPIRES_AT: expires_at}
            key = _apart(batch_id, _RESULT, row.ordinal)
            self._write("put_results", key, values, [where("item", "=", None)])

        self._each(put, list(rows))

    def results(self, batch_id: int, ordinals: Collection[int]) -> dict[int, ResultRow]:
        return _by_ordinal(self._read("results", _spread(batch_id, _RESULT, ordinals)), _result)

    def delete_results(self, batch_id: int, ordinals: Collection[int]) -> None:
        self._delete("delete_results", _spread(batch_id, _RESULT, ordinals))

    def mark_redriven(
        self, batch_id: int, marks: Mapping[int, Redriven], before: Mapping[int, Redriven], *, expires_at: int
    ) -> set[int]:
        def take(ordinal: int) -> bool:
            mark, old = marks[ordinal], before.get(ordinal)
            same = [where(name, "=", value) for name, value in old._asdict().items()] if old else []
            values = {**mark._asdict(), names.EXPIRES_AT: expires_at}
            key = _apart(batch_id, _REDRIVEN, ordinal)
            done, row = self._write("mark_redriven", key, values, same or [where("redrive", "=", None)])
            return done or (row is not None and Redriven(**_of(Redriven, row)) == mark)

        taken = self._each(take, list(marks))
        return {ordinal for ordinal, mine in zip(marks, taken, strict=True) if mine}

    def redriven(self, batch_id: int, ordinals: Collection[int]) -> dict[int, Redriven]:
        rows = self._read("redriven", _spread(batch_id, _REDRIVEN, ordinals))
        return _by_ordinal(rows, lambda row: Redriven(**_of(Redriven, row)))


def key_rows(batch_id: int, rows: Sequence[KeyRow]) -> list[tuple[PartKey, Row]]:
    """The rows of keys whose ordinals follow each other: one for each, and one that finds them by ordinal."""
    by_key: list[tuple[PartKey, Row]] = [
        (_keyed(batch_id, row.key), {"ordinal": row.ordinal, "by": row.by, "payload": row.payload or None})
        for row in rows
    ]
    return [*by_key, (_key(batch_id, _KEYS, rows[0].ordinal), {"keys": [row.key for row in rows]})]


def first_again(first: int, count: int, n: int, key: str) -> int:
    """The first of the items that a key has stood for since an earlier call.

    Raises:
        IdempotencyKeyReused: it stands for another number of items.
    """
    if count != n:
        raise IdempotencyKeyReused(
            f"idempotency key {key!r} was used for {count} items; use a new key for {n}"
        )
    return first


def _keyed(batch_id: int, key: str) -> PartKey:
    """Key of the row of a key; they are spread over partitions like messages."""
    return shard(batch_id, crc32(key.encode())), f"{_KEY}{key}"


def _of(kind: Any, row: Row) -> dict[str, Any]:
    return {name: row[name] for name in kind._fields if name in row}


def _note(row: Row) -> FailureRow:
    found = _of(FailureRow, row)
    totals = sorted((name, int(number)) for name, number in found.pop("totals", {}).items())
    return FailureRow(_ordinal(row), totals=tuple(totals), **found)


def _noted(row: FailureRow, expires_at: int) -> dict[str, Any]:
    """All attributes of a note; its totals as texts, the form of all maps in rows."""
    totals = {total: str(number) for total, number in row.totals}
    values = {**row._asdict(), "totals": totals, names.EXPIRES_AT: expires_at}
    del values["ordinal"]
    return {name: value or None if name in _OPTIONAL else value for name, value in values.items()}


def _result(row: Row) -> ResultRow:
    return ResultRow(_ordinal(row), row["item"], row.get("result", b""), row.get("kept", ""))


def _retry(row: Row) -> RetryRow:
    return RetryRow(_ordinal(row), **_of(RetryRow, row))


def _key(partition: int, prefix: str, ordinal: int) -> PartKey:
    return partition, f"{prefix}{ordinal:013}"


def _apart(batch_id: int, prefix: str, ordinal: int) -> PartKey:
    """Key of a large part of an item: those of a batch are spread over partitions."""
    return _key(shard(batch_id, ordinal), prefix, ordinal)


def _spread(batch_id: int, prefix: str, ordinals: Collection[int]) -> list[PartKey]:
    return [_apart(batch_id, prefix, ordinal) for ordinal in sorted(set(ordinals))]


def _by_ordinal(rows: Iterable[Row], decode: Callable[[Row], R]) -> dict[int, R]:
    return {_ordinal(row): decode(row) for row in rows}


def _ordinal(row: Row) -> int:
    return int(row[names.PART].rpartition("/")[2])
