"""Notes of items, in dicts: failed items with their messages and redrives, sent items, and retries."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping
from functools import partial
from typing import Any, TypeVar

from fanin.adapters import cursors
from fanin.adapters.memory.accesses import Accesses
from fanin.app.ports.parts import FailureRow, KeyRow, PartStore, Redriven, ResultRow, RetryRow, SentRow

T = TypeVar("T")
R = TypeVar("R")


class _Rows(dict[Any, T]):
    """Rows by their sort key, whose pages cost what they hold, however many rows there are."""

    def __init__(self) -> None:
        self._order: list[Any] = []

    def __setitem__(self, key: Any, row: T) -> None:
        if key not in self:
            insort(self._order, key)
        super().__setitem__(key, row)

    def of(self, keys: Iterable[Any]) -> dict[Any, T]:
        """The rows of some keys, in order."""
        return {key: self[key] for key in sorted(set(keys)) if key in self}

    def between(self, start: Any, stop: Any = None, *, limit: int) -> list[T]:
        """The first rows from a key on, up to another (exclusive)."""
        first = bisect_left(self._order, start)
        last = len(self) if stop is None else bisect_left(self._order, stop)
        return [self[key] for key in self._order[first : min(last, first + limit)]]

    def before(self, stop: Any, *, limit: int) -> list[T]:
        """The last rows before a key, the last first."""
        last = bisect_left(self._order, stop)
        return [self[key] for key in reversed(self._order[max(0, last - limit) : last])]


class MemoryParts(PartStore):
    """A ``PartStore``.

    Args:
        accesses: counts rows.
        keys: the keys of items, by batch, which the store of batches writes.
    """

    def __init__(self, accesses: Accesses, keys: Mapping[int, Mapping[str, KeyRow]]) -> None:
        self._keys = keys
        self._accesses = accesses
        self._failures: dict[int, _Rows[FailureRow]] = defaultdict(_Rows)
        self._messages: dict[tuple[int, int], bytes] = {}
        self._redriven: dict[tuple[int, int], Redriven] = {}
        self._results: dict[tuple[int, int], ResultRow] = {}
        self._sent: dict[int, _Rows[SentRow]] = defaultdict(_Rows)
        self._retries: dict[int, _Rows[RetryRow]] = defaultdict(_Rows)

    def put_failures(self, batch_id: int, rows: Iterable[FailureRow], *, expires_at: int) -> None:  # noqa: ARG002
        def put(row: FailureRow) -> None:
            before = self._failures[batch_id].get(row.ordinal)
            if before is None or before.given_up:
                self._put(batch_id, row)
                return
            self._accesses.refused["parts.put_failures"] += 1
            self._put(batch_id, _with_message(before, row))

        first: dict[int, FailureRow] = {}
        for row in rows:
            first.setdefault(row.ordinal, row)
        self._each("put_failures", first.values(), put)

    def _put(self, batch_id: int, row: FailureRow) -> None:
        self._failures[batch_id][row.ordinal] = row

    def update_failures(self, batch_id: int, rows: Iterable[FailureRow], *, expires_at: int) -> None:  # noqa: ARG002
        def update(row: FailureRow) -> None:
            before = self._failures[batch_id].get(row.ordinal)
            if before and before.failed_at > row.failed_at:
                self._accesses.refused["parts.update_failures"] += 1
                self._put(batch_id, _with_message(before, row))
                return
            self._put(batch_id, _with_message(row, before) if before else row)

        self._each("update_failures", {row.ordinal: row for row in rows}.values(), update)

    def notes(self, batch_id: int, ordinals: Collection[int]) -> dict[int, FailureRow]:
        return self._accesses.read("parts.notes", lambda: self._failures[batch_id].of(ordinals))

    def put_sent(self, batch_id: int, row: SentRow, *, expires_at: int) -> None:  # noqa: ARG002
        def put() -> None:
            rows = self._sent[batch_id]
            old = rows.get((row.start, row.queue))
            if old is None:
                rows[row.start, row.queue] = row
            elif old.stop <= row.stop:
                rows[row.start, row.queue] = row._replace(first_at=old.first_at)
            else:
                self._accesses.refused["parts.put_sent"] += 1

        self._accesses.write("parts.put_sent", put)

    def sent(self, batch_id: int, *, upto: int, limit: int) -> tuple[list[SentRow], bool]:
        after = (upto + 1, "")
        found = self._accesses.read("parts.sent", lambda: self._sent[batch_id].before(after, limit=limit + 1))
        return found[:limit], len(found) > limit

    def keys(self, batch_id: int, keys: Collection[str]) -> dict[str, KeyRow]:
        rows = {key: self._accesses.read("parts.keys", lambda: self._key(batch_id, key)) for key in set(keys)}  # noqa: B023
        return {key: row for key, row in rows.items() if row is not None}

    def _key(self, batch_id: int, key: str) -> KeyRow | None:
        return self._keys.get(batch_id, {}).get(key)

    def keys_of(self, batch_id: int, ordinals: Collection[int]) -> dict[int, str]:
        rows = self._accesses.read("parts.keys_of", lambda: dict(self._keys.get(batch_id, {})))
        found = {row.ordinal: row.key for row in rows.values()}
        return {ordinal: found[ordinal] for ordinal in ordinals if ordinal in found}

    def put_retries(self, batch_id: int, rows: Iterable[RetryRow], *, expires_at: int) -> None:  # noqa: ARG002
        last = {row.ordinal: row for row in rows}
        self._each("put_retries", last, lambda at: self._retries[batch_id].__setitem__(at, last[at]))

    def retries(self, batch_id: int, ordinals: Collection[int]) -> dict[int, RetryRow]:
        return self._accesses.read("parts.retries", lambda: self._retries[batch_id].of(ordinals))

    def retries_from(self, batch_id: int, start: int, *, limit: int) -> list[RetryRow]:
        return self._accesses.read(
            "parts.retries_from", lambda: self._retries[batch_id].between(start, limit=limit)
        )

    def failures(
        self, batch_id: int, *, cursor: str | None = None, limit: int = 100
    ) -> tuple[list[FailureRow], str | None]:
        listing = f"failures of {batch_id}"
        (after,) = cursors.decode(listing, cursor, {1}) if cursor is not None else (-1,)
        rows = self._accesses.read(
            "parts.failures", lambda: self._failures[batch_id].between(after + 1, limit=limit + 1)
        )
        page = rows[:limit]
        return page, cursors.encode(listing, page[-1].ordinal) if len(rows) > limit else None

    def notes_between(self, batch_id: int, start: int, stop: int, *, limit: int) -> list[FailureRow]:
        return self._accesses.read(
            "parts.notes_between", lambda: self._failures[batch_id].between(start, stop, limit=limit)
        )

    def put_messages(
        self,
        batch_id: int,
        messages: Mapping[int, bytes],
        *,
        again: bool = False,
        expires_at: int,  # noqa: ARG002
    ) -> None:
        def put(ordinal: int) -> None:
            if again or (batch_id, ordinal) not in self._messages:
                self._messages[batch_id, ordinal] = messages[ordinal]
            else:
                self._accesses.refused["parts.put_messages"] += 1

        self._each("put_messages", messages, put)

    def messages(self, batch_id: int, ordinals: Collection[int]) -> dict[int, bytes]:
        return self._read("parts.messages", self._messages, batch_id, ordinals)

    def delete_messages(self, batch_id: int, ordinals: Collection[int]) -> None:
        self._each(
            "delete_messages", sorted(set(ordinals)), lambda at: self._messages.pop((batch_id, at), None)
        )

    def put_results(self, batch_id: int, rows: Iterable[ResultRow], *, expires_at: int) -> None:  # noqa: ARG002
        def put(row: ResultRow) -> None:
            if (batch_id, row.ordinal) in self._results:
                self._accesses.refused["parts.put_results"] += 1
            self._results.setdefault((batch_id, row.ordinal), row)

        self._each("put_results", rows, put)

    def results(self, batch_id: int, ordinals: Collection[int]) -> dict[int, ResultRow]:
        return self._read("parts.results", self._results, batch_id, ordinals)

    def delete_results(self, batch_id: int, ordinals: Collection[int]) -> None:
        self._each(
            "delete_results", sorted(set(ordinals)), lambda at: self._results.pop((batch_id, at), None)
        )

    def mark_redriven(
        self,
        batch_id: int,
        marks: Mapping[int, Redriven],
        before: Mapping[int, Redriven],
        *,
        expires_at: int,  # noqa: ARG002
    ) -> set[int]:
        def take(ordinal: int) -> bool:
            now = self._redriven.get((batch_id, ordinal))
            if now == before.get(ordinal):
                self._redriven[batch_id, ordinal] = marks[ordinal]
                return True
            self._accesses.refused["parts.mark_redriven"] += 1
            return now == marks[ordinal]

        taken = self._each("mark_redriven", marks, take)
        return {ordinal for ordinal, mine in zip(marks, taken, strict=True) if mine}

    def redriven(self, batch_id: int, ordinals: Collection[int]) -> dict[int, Redriven]:
        return self._read("parts.redriven", self._redriven, batch_id, ordinals)

    def _each(self, call: str, rows: Iterable[T], write: Callable[[T], R]) -> list[R]:
        """Write rows, each by an access of its own."""
        return [self._accesses.write(f"parts.{call}", partial(write, row)) for row in rows]

    def _read(
        self, call: str, rows: Mapping[tuple[int, int], T], batch_id: int, ordinals: Collection[int]
    ) -> dict[int, T]:
        keys = [(batch_id, ordinal) for ordinal in sorted(set(ordinals))]
        found = {key: self._accesses.read(call, partial(rows.get, key)) for key in keys}
        return {ordinal: row for (_, ordinal), row in found.items() if row is not None}


def _with_message(row: FailureRow, other: FailureRow) -> FailureRow:
    """A note that says where the message is if it, or another note of the item, does."""
    if row.kept or not other.kept:
        return row
    return row._replace(kept=other.kept, source=other.source, attempts=other.attempts)
