"""Notes of items on DynamoDB: failed items with their messages and redrives, sent items, and retries."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from hashlib import blake2b
from types import MappingProxyType
from typing import Any, Final, TypeAlias
from zlib import crc32

from fanin import names
from fanin.adapters import cursors
from fanin.adapters.dynamodb.connection import Connection, Written
from fanin.adapters.dynamodb.rows import Item, Value, attribute, plain
from fanin.app.ports.parts import FailureRow, KeyRow, PartStore, Redriven, ResultRow, RetryRow, SentRow, shard

NOTHING: Final[Mapping[str, Any]] = MappingProxyType({})
Place: TypeAlias = Callable[[int, str, int], dict[str, Any]]
"""The key of a row, by batch, prefix and ordinal."""
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
_FIRST: Final = "attribute_not_exists(#item) OR attribute_exists(#given_up)"
_NOT_LATER: Final = "attribute_not_exists(#failed_at) OR #failed_at <= :failed_at"


class DynamoParts(PartStore):
    """A ``PartStore``.

    Notes are in the partition of their batch, where they are listed. Messages, results, and the rows that say
    which redrive took a failure, are spread over partitions and read by key.

    Args:
        table: name of the parts table.
        connection: calls DynamoDB.
    """

    def __init__(self, table: str, connection: Connection) -> None:
        self._table = table
        self._connection = connection

    def put_failures(self, batch_id: int, rows: Iterable[FailureRow], *, expires_at: int) -> None:
        def put(row: FailureRow) -> None:
            done, before = self._set(_key(batch_id, _FAILURE, row.ordinal), _noted(row, expires_at), _FIRST)
            if not done:
                self._learn(batch_id, row, before)

        first: dict[int, FailureRow] = {}
        for row in rows:
            first.setdefault(row.ordinal, row)
        self._connection.parallel.map(put, list(first.values()))

    def update_failures(self, batch_id: int, rows: Iterable[FailureRow], *, expires_at: int) -> None:
        def update(row: FailureRow) -> None:
            key, values = _key(batch_id, _FAILURE, row.ordinal), _noted(row, expires_at)
            no_message = "" if row.kept else " AND attribute_not_exists(#kept)"
            done, before = self._set(key, values, f"({_NOT_LATER}){no_message}")
            if not done and row.kept:
                self._learn(batch_id, row, before)
            elif not done and "kept" in (before or {}):  # what belongs to that message stays
                others = {name: value for name, value in values.items() if name not in _OF_MESSAGE}
                self._set(key, others, _NOT_LATER)

        last = {row.ordinal: row for row in rows}
        self._connection.parallel.map(update, list(last.values()))

    def _learn(self, batch_id: int, row: FailureRow, before: Item | None) -> None:
        """Let a note that stays say where the message is, if only this one does."""
        if row.kept and "kept" not in (before or {}):
            message = {name: getattr(row, name) or None for name in _OF_MESSAGE}
            condition = "attribute_exists(failed_at) AND attribute_not_exists(#kept)"
            self._set(_key(batch_id, _FAILURE, row.ordinal), message, condition)

    def _set(
        self,
        key: dict[str, Any],
        values: Mapping[str, Value | None],
        condition: str | None = None,
        *,
        old: Mapping[str, Value] = NOTHING,
        stays: Collection[str] = (),
    ) -> Written:
        """Write a note by an update, if a condition holds; attributes that are None are removed.

        IAM can limit the attributes that an update names. A put, or BatchWriteItem, could replace any row.

        Args:
            key: of the row.
            values: attribute → value.
            condition: on attributes as ``#name``, with their new values as ``:name``.
            old: values that the condition names as ``:old_name``.
            stays: attributes that keep a value that they have.
        """
        given = {name: value for name, value in values.items() if value is not None}
        absent = [f"#{name}" for name in values if name not in given]
        sets = [
            f"#{name} = if_not_exists(#{name}, :{name})" if name in stays else f"#{name} = :{name}"
            for name in given
        ]
        removes = f" REMOVE {', '.join(absent)}" if absent else ""
        every = {**given, **{f"old_{name}": value for name, value in old.items()}}
        return self._connection.update(
            {
                "TableName": self._table,
                "Key": key,
                "UpdateExpression": f"SET {', '.join(sets)}{removes}",
                **({} if condition is None else {"ConditionExpression": condition}),
                "ExpressionAttributeNames": {f"#{name}": name for name in values},
                "ExpressionAttributeValues": {f":{name}": attribute(value) for name, value in every.items()},
            }
        )

    def _found(self, place: Place, batch_id: int, prefix: str, ordinals: Collection[int]) -> dict[int, Item]:
        """The rows of items, by ordinal."""
        keys = [place(batch_id, prefix, ordinal) for ordinal in sorted(set(ordinals))]
        return {_ordinal(row): row for row in self._connection.read(self._table, keys)}

    def notes(self, batch_id: int, ordinals: Collection[int]) -> dict[int, FailureRow]:
        found = self._found(_key, batch_id, _FAILURE, ordinals)
        return {ordinal: _note(row) for ordinal, row in found.items()}

    def put_sent(self, batch_id: int, row: SentRow, *, expires_at: int) -> None:
        # If the SDK sends it twice, the second write sets the same values; one that comes late is refused.
        self._set(
            _part(batch_id, f"{_SENT}{row.start:013}/{_digest(row.queue)}"),
            {**row._asdict(), names.EXPIRES_AT: expires_at},
            "attribute_not_exists(#stop) OR #stop <= :stop",
            stays={"first_at"},
        )

    def sent(self, batch_id: int, *, upto: int, limit: int) -> tuple[list[SentRow], bool]:
        request = self._between(batch_id, _SENT, f"{_SENT}{upto:013}{_LAST}", limit)
        items, last = self._connection.query({**request, "ScanIndexForward": False})
        return [SentRow(**plain(item, SentRow._fields)) for item in items], last is not None

    def keys(self, batch_id: int, keys: Collection[str]) -> dict[str, KeyRow]:
        wanted = [_keyed(batch_id, key) for key in dict.fromkeys(keys)]
        found = map(_key_row, self._connection.read(self._table, wanted))
        return {row.key: row for row in found}

    def keys_of(self, batch_id: int, ordinals: Collection[int]) -> dict[int, str]:
        found: dict[int, str] = {}
        for ordinal in sorted(set(ordinals), reverse=True):
            if ordinal in found:
                continue
            request = self._between(batch_id, _KEYS, f"{_KEYS}{ordinal:013}", 1)
            items, _ = self._connection.query({**request, "ScanIndexForward": False})
            for item in items:
                names_of = enumerate(item["keys"]["L"], _ordinal(item))
                found |= {at: text["S"] for at, text in names_of}
        return {ordinal: found[ordinal] for ordinal in ordinals if ordinal in found}

    def put_retries(self, batch_id: int, rows: Iterable[RetryRow], *, expires_at: int) -> None:
        def put(row: RetryRow) -> None:
            values = {name: value for name, value in row._asdict().items() if name != "ordinal"}
            self._set(_key(batch_id, _RETRY, row.ordinal), {**values, names.EXPIRES_AT: expires_at})

        last = {row.ordinal: row for row in rows}
        self._connection.parallel.map(put, list(last.values()))

    def retries(self, batch_id: int, ordinals: Collection[int]) -> dict[int, RetryRow]:
        found = self._found(_key, batch_id, _RETRY, ordinals)
        return {ordinal: _retry(row) for ordinal, row in found.items()}

    def retries_from(self, batch_id: int, start: int, *, limit: int) -> list[RetryRow]:
        request = self._between(batch_id, f"{_RETRY}{start:013}", f"{_RETRY}{_LAST}", limit)
        items, _ = self._connection.query(request)
        return [_retry(item) for item in items]

    def _between(self, batch_id: int, first: str, last: str, limit: int) -> dict[str, Any]:
        """A query of the parts of a batch whose keys lie between two."""
        return {
            "TableName": self._table,
            "KeyConditionExpression": "batch_id = :batch AND part BETWEEN :first AND :last",
            "ExpressionAttributeValues": {
                ":batch": attribute(batch_id),
                ":first": attribute(first),
                ":last": attribute(last),
            },
            "ConsistentRead": True,
            "Limit": limit,
        }

    def failures(
        self, batch_id: int, *, cursor: str | None = None, limit: int = 100
    ) -> tuple[list[FailureRow], str | None]:
        listing = f"failures of {batch_id}"
        (after,) = (-1,) if cursor is None else cursors.decode(listing, cursor, {1})
        request = self._between(batch_id, f"{_FAILURE}{after + 1:013}", f"{_FAILURE}{_LAST}", limit)
        items, last = self._connection.query(request)
        return list(map(_note, items)), None if last is None else cursors.encode(listing, _ordinal(last))

    def notes_between(self, batch_id: int, start: int, stop: int, *, limit: int) -> list[FailureRow]:
        first, last = f"{_FAILURE}{start:013}", f"{_FAILURE}{stop - 1:013}"
        items, _ = self._connection.query(self._between(batch_id, first, last, limit))
        return list(map(_note, items))

    def put_messages(
        self, batch_id: int, messages: Mapping[int, bytes], *, again: bool = False, expires_at: int
    ) -> None:
        def put(message: tuple[int, bytes]) -> None:
            ordinal, content = message
            condition = None if again else "attribute_not_exists(#message)"
            self._set(
                _spread(batch_id, _MESSAGE, ordinal),
                {"message": content, names.EXPIRES_AT: expires_at},
                condition,
            )

        self._connection.parallel.map(put, list(messages.items()))

    def messages(self, batch_id: int, ordinals: Collection[int]) -> dict[int, bytes]:
        found = self._found(_spread, batch_id, _MESSAGE, ordinals)
        return {ordinal: bytes(row["message"]["B"]) for ordinal, row in found.items()}

    def delete_messages(self, batch_id: int, ordinals: Collection[int]) -> None:
        self._delete(batch_id, _MESSAGE, ordinals)

    def _delete(self, batch_id: int, prefix: str, ordinals: Collection[int]) -> None:
        def delete(key: Item) -> None:
            self._connection.delete({"TableName": self._table, "Key": key})

        keys = [_spread(batch_id, prefix, ordinal) for ordinal in sorted(set(ordinals))]
        # A function has time for some thousands. So a repeat does not delete what is gone, but goes on.
        there = self._connection.read(self._table, keys, (names.BATCH_ID, names.PART))
        self._connection.parallel.map(delete, there)

    def put_results(self, batch_id: int, rows: Iterable[ResultRow], *, expires_at: int) -> None:
        def put(row: ResultRow) -> None:
            where: dict[str, Value] = {"kept": row.kept} if row.kept else {"result": row.content}
            values = {"item": row.item, **where, names.EXPIRES_AT: expires_at}
            self._set(_spread(batch_id, _RESULT, row.ordinal), values, "attribute_not_exists(#item)")

        self._connection.parallel.map(put, list(rows))

    def results(self, batch_id: int, ordinals: Collection[int]) -> dict[int, ResultRow]:
        found = self._found(_spread, batch_id, _RESULT, ordinals)
        return {ordinal: _result(row) for ordinal, row in found.items()}

    def delete_results(self, batch_id: int, ordinals: Collection[int]) -> None:
        self._delete(batch_id, _RESULT, ordinals)

    def mark_redriven(
        self, batch_id: int, marks: Mapping[int, Redriven], before: Mapping[int, Redriven], *, expires_at: int
    ) -> set[int]:
        def take(ordinal: int) -> bool:
            mark, old = marks[ordinal], before.get(ordinal)
            same = " AND ".join(f"#{name} = :old_{name}" for name in Redriven._fields)
            done, row = self._set(
                _spread(batch_id, _REDRIVEN, ordinal),
                {**mark._asdict(), names.EXPIRES_AT: expires_at},
                same if old else "attribute_not_exists(#redrive)",
                old=old._asdict() if old else {},
            )
            return done or (row is not None and Redriven(**plain(row, Redriven._fields)) == mark)

        taken = self._connection.parallel.map(take, list(marks))
        return {ordinal for ordinal, mine in zip(marks, taken, strict=True) if mine}

    def redriven(self, batch_id: int, ordinals: Collection[int]) -> dict[int, Redriven]:
        found = self._found(_spread, batch_id, _REDRIVEN, ordinals)
        return {ordinal: Redriven(**plain(row, Redriven._fields)) for ordinal, row in found.items()}


def key_rows(batch_id: int, rows: Sequence[KeyRow]) -> list[dict[str, Any]]:
    """The rows of keys whose ordinals follow each other: one for each, and one that finds them by ordinal."""
    by_key = [
        {
            **_keyed(batch_id, row.key),
            "ordinal": attribute(row.ordinal),
            **({} if row.by is None else {"by": attribute(row.by)}),
            **({"payload": attribute(row.payload)} if row.payload else {}),
        }
        for row in rows
    ]
    texts = [attribute(row.key) for row in rows]
    return [*by_key, {**_key(batch_id, _KEYS, rows[0].ordinal), "keys": {"L": texts}}]


def _keyed(batch_id: int, key: str) -> dict[str, Any]:
    """Key of the row of a key; they are spread over partitions like messages."""
    return _part(shard(batch_id, crc32(key.encode())), f"{_KEY}{key}")


def _key_row(row: Item) -> KeyRow:
    return KeyRow(key=row[names.PART]["S"].removeprefix(_KEY), **plain(row, KeyRow._fields))


def _result(row: Item) -> ResultRow:
    content = bytes(row["result"]["B"]) if "result" in row else b""
    return ResultRow(_ordinal(row), content=content, **plain(row, ("item", "kept")))


def _note(row: Item) -> FailureRow:
    found = plain(row, FailureRow._fields)
    totals = sorted((name, int(number)) for name, number in found.pop("totals", {}).items())
    return FailureRow(_ordinal(row), totals=tuple(totals), **found)


def _noted(row: FailureRow, expires_at: int) -> dict[str, Value | None]:
    """All attributes of a note; its totals as texts, the form of all maps in rows."""
    totals = {total: str(number) for total, number in row.totals}
    values = {**row._asdict(), "totals": totals, names.EXPIRES_AT: expires_at}
    del values["ordinal"]
    return {name: value or None if name in _OPTIONAL else value for name, value in values.items()}


def _key(partition: int, prefix: str, ordinal: int) -> dict[str, Any]:
    # Padded to the width of the largest ordinal, so that the texts sort like the numbers.
    return _part(partition, f"{prefix}{ordinal:013}")


def _part(partition: int, part: str) -> dict[str, Any]:
    return {names.BATCH_ID: attribute(partition), names.PART: attribute(part)}


def _digest(queue: str) -> str:
    """A short name of a queue for a key, in which a long URL would not fit."""
    return blake2b(queue.encode(), digest_size=8).hexdigest()


def _retry(item: Item) -> RetryRow:
    return RetryRow(_ordinal(item), **plain(item, RetryRow._fields))


def _spread(batch_id: int, prefix: str, ordinal: int) -> dict[str, Any]:
    return _key(shard(batch_id, ordinal), prefix, ordinal)


def _ordinal(row: Item) -> int:
    return int(row[names.PART]["S"].rpartition("/")[2])
