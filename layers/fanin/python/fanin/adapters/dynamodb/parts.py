"""Notes of items on DynamoDB: failed items with their messages and redrives, sent items, and retries."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from hashlib import blake2b
from typing import Any, Final

from fanin import names
from fanin.adapters import cursors
from fanin.adapters.dynamodb.connection import Connection
from fanin.adapters.dynamodb.rows import Item, Value, attribute
from fanin.app.ports.parts import FailureRow, Redriven, RetryRow, SentRow, shard

_FAILURE: Final = "failure/"
_MESSAGE: Final = "message/"
_REDRIVEN: Final = "redriven/"
_RETRY: Final = "retry/"
_SENT: Final = "sent/"
_LAST: Final = "~"
"""Sorts behind all that follows a slash in these keys."""
_OPTIONAL: Final = ("attempts", "source", "kept", "totals")
"""Attributes that a note has only where they are known."""
_NOTED: Final = ("item", "reason", "attempts", "failed_at", "source", "totals")
"""Attributes of a note that do not say where its message is."""
_NOT_LATER: Final = "attribute_not_exists(#failed_at) OR #failed_at <= :failed_at"


class DynamoParts:
    """A ``PartStore``.

    Notes are in the partition of their batch, where they are listed. Messages, and the rows that say which
    redrive took a failure, are spread over partitions and read by key.

    Args:
        table: name of the parts table.
        connection: calls DynamoDB.
    """

    def __init__(self, table: str, connection: Connection) -> None:
        self._table = table
        self._connection = connection

    def put_failures(self, batch_id: int, rows: Iterable[FailureRow], *, expires_at: int) -> None:
        last = {row.ordinal: row for row in rows}
        self._set_all(
            (
                _key(batch_id, _FAILURE, row.ordinal),
                {
                    "item": row.item,
                    "reason": row.reason,
                    "failed_at": row.failed_at,
                    **{name: _value(row, name) or None for name in _OPTIONAL},
                    names.EXPIRES_AT: expires_at,
                },
            )
            for row in last.values()
        )

    def _set_all(self, rows: Iterable[tuple[dict[str, Any], Mapping[str, Value | None]]]) -> None:
        """Write notes by key, each by an update; attributes that are None are removed.

        IAM can limit the attributes that an update names. A put, or BatchWriteItem, could replace any row.
        """

        def write(row: tuple[dict[str, Any], Mapping[str, Value | None]]) -> None:
            key, values = row
            given = {name: value for name, value in values.items() if value is not None}
            absent = [f"#{name}" for name in values if name not in given]
            self._connection.update(
                {
                    "TableName": self._table,
                    "Key": key,
                    "UpdateExpression": "SET "
                    + ", ".join(f"#{name} = :{name}" for name in given)
                    + (f" REMOVE {', '.join(absent)}" if absent else ""),
                    "ExpressionAttributeNames": {f"#{name}": name for name in values},
                    "ExpressionAttributeValues": {
                        f":{name}": attribute(value) for name, value in given.items()
                    },
                }
            )

        self._connection.parallel.map(write, list(rows))

    def update_failures(self, batch_id: int, rows: Iterable[FailureRow], *, expires_at: int) -> None:
        def update(row: FailureRow) -> None:
            known = {
                name: value
                for name in (*_NOTED, "kept")
                if (value := _value(row, name)) or name not in _OPTIONAL
            } | {names.EXPIRES_AT: expires_at}
            absent = [f"#{name}" for name in _NOTED if name not in known]
            settings = ", ".join(f"#{name} = :{name}" for name in known)
            done, later = self._connection.update(
                {
                    "TableName": self._table,
                    "Key": _key(batch_id, _FAILURE, row.ordinal),
                    "UpdateExpression": f"SET {settings}"
                    + (f" REMOVE {', '.join(absent)}" if absent else ""),
                    "ConditionExpression": _NOT_LATER,
                    "ExpressionAttributeNames": {f"#{name}": name for name in {*_NOTED, *known}},
                    "ExpressionAttributeValues": {
                        f":{name}": attribute(value) for name, value in known.items()
                    },
                }
            )
            if not done and row.kept and "kept" not in (later or {}):
                self._connection.update(
                    {
                        "TableName": self._table,
                        "Key": _key(batch_id, _FAILURE, row.ordinal),
                        "UpdateExpression": "SET kept = :kept",
                        "ConditionExpression": "attribute_exists(#item) AND attribute_not_exists(kept)",
                        "ExpressionAttributeNames": {"#item": "item"},
                        "ExpressionAttributeValues": {":kept": attribute(row.kept)},
                    }
                )

        last = {row.ordinal: row for row in rows}
        self._connection.parallel.map(update, list(last.values()))

    def notes(self, batch_id: int, ordinals: Collection[int]) -> dict[int, FailureRow]:
        keys = [_key(batch_id, _FAILURE, ordinal) for ordinal in sorted(set(ordinals))]
        return {_ordinal(row): _note(row) for row in self._connection.read(self._table, keys)}

    def reasons(self, batch_id: int, ordinals: Collection[int]) -> dict[int, str]:
        return {ordinal: note.reason for ordinal, note in self.notes(batch_id, ordinals).items()}

    def put_sent(self, batch_id: int, row: SentRow, *, expires_at: int) -> None:
        # If the SDK sends it twice, the second write sets the same values; one that comes late is refused.
        self._connection.update(
            {
                "TableName": self._table,
                "Key": _part(batch_id, f"{_SENT}{row.start:013}/{_digest(row.queue)}"),
                "UpdateExpression": "SET #queue = :queue, #start = :start, #stop = :stop, #last_at = :at,"
                " #expires = :expires, #first_at = if_not_exists(#first_at, :first)",
                "ConditionExpression": "attribute_not_exists(#stop) OR #stop <= :stop",
                "ExpressionAttributeNames": {
                    **{f"#{name}": name for name in SentRow._fields},
                    "#expires": names.EXPIRES_AT,
                },
                "ExpressionAttributeValues": {
                    ":queue": attribute(row.queue),
                    ":start": attribute(row.start),
                    ":stop": attribute(row.stop),
                    ":at": attribute(row.last_at),
                    ":first": attribute(row.first_at),
                    ":expires": attribute(expires_at),
                },
            }
        )

    def sent(self, batch_id: int, *, upto: int, limit: int) -> tuple[list[SentRow], bool]:
        request = self._between(batch_id, _SENT, f"{_SENT}{upto:013}{_LAST}", limit)
        items, last = self._connection.query({**request, "ScanIndexForward": False})
        return [_sent(item) for item in items], last is not None

    def put_retries(self, batch_id: int, rows: Iterable[RetryRow], *, expires_at: int) -> None:
        last = {row.ordinal: row for row in rows}
        self._set_all(
            (
                _key(batch_id, _RETRY, row.ordinal),
                {
                    "attempt": row.attempt,
                    "error": row.error,
                    "queue": row.queue,
                    "at": row.at,
                    names.EXPIRES_AT: expires_at,
                },
            )
            for row in last.values()
        )

    def retries(self, batch_id: int, ordinals: Collection[int]) -> dict[int, RetryRow]:
        keys = [_key(batch_id, _RETRY, ordinal) for ordinal in sorted(set(ordinals))]
        rows = map(_retry, self._connection.read(self._table, keys))
        return {row.ordinal: row for row in rows}

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
        request: dict[str, Any] = {
            "TableName": self._table,
            "KeyConditionExpression": "batch_id = :batch AND begins_with(part, :failure)",
            "ExpressionAttributeValues": {":batch": attribute(batch_id), ":failure": attribute(_FAILURE)},
            "ConsistentRead": True,
            "Limit": limit,
        }
        if cursor is not None:
            (after,) = cursors.decode(listing, cursor, {1})
            request["ExclusiveStartKey"] = _key(batch_id, _FAILURE, after)
        items, last = self._connection.query(request)
        return list(map(_note, items)), None if last is None else cursors.encode(listing, _ordinal(last))

    def notes_between(self, batch_id: int, start: int, stop: int, *, limit: int) -> list[FailureRow]:
        first, last = f"{_FAILURE}{start:013}", f"{_FAILURE}{stop - 1:013}"
        items, _ = self._connection.query(self._between(batch_id, first, last, limit))
        return list(map(_note, items))

    def put_messages(self, batch_id: int, messages: Mapping[int, bytes], *, expires_at: int) -> None:
        self._set_all(
            (_spread(batch_id, _MESSAGE, ordinal), {"message": message, names.EXPIRES_AT: expires_at})
            for ordinal, message in messages.items()
        )

    def messages(self, batch_id: int, ordinals: Collection[int]) -> dict[int, bytes]:
        keys = [_spread(batch_id, _MESSAGE, ordinal) for ordinal in sorted(set(ordinals))]
        rows = self._connection.read(self._table, keys)
        return {_ordinal(row): bytes(row["message"]["B"]) for row in rows}

    def delete_messages(self, batch_id: int, ordinals: Collection[int]) -> None:
        def delete(ordinal: int) -> None:
            self._connection.delete({"TableName": self._table, "Key": _spread(batch_id, _MESSAGE, ordinal)})

        self._connection.parallel.map(delete, sorted(set(ordinals)))

    def mark_redriven(
        self, batch_id: int, redrive: str, failures: Mapping[int, int], *, again: bool, expires_at: int
    ) -> set[int]:
        condition = "attribute_not_exists(redrive)"
        if again:
            condition += " OR failed_at < :failed_at"

        def mark(failure: tuple[int, int]) -> bool:
            ordinal, failed_at = failure
            done, row = self._connection.update(
                {
                    "TableName": self._table,
                    "Key": _spread(batch_id, _REDRIVEN, ordinal),
                    "UpdateExpression": "SET redrive = :redrive, failed_at = :failed_at,"
                    f" {names.EXPIRES_AT} = :expires_at",
                    "ConditionExpression": condition,
                    "ExpressionAttributeValues": {
                        ":redrive": attribute(redrive),
                        ":failed_at": attribute(failed_at),
                        ":expires_at": attribute(expires_at),
                    },
                }
            )
            return done or (row or {}).get("redrive") == attribute(redrive)

        taken = self._connection.parallel.map(mark, list(failures.items()))
        return {ordinal for ordinal, mine in zip(failures, taken, strict=True) if mine}

    def redriven(self, batch_id: int, ordinals: Collection[int]) -> dict[int, Redriven]:
        keys = [_spread(batch_id, _REDRIVEN, ordinal) for ordinal in sorted(set(ordinals))]
        rows = self._connection.read(self._table, keys)
        return {_ordinal(row): Redriven(row["redrive"]["S"], int(row["failed_at"]["N"])) for row in rows}


def _note(row: Item) -> FailureRow:
    return FailureRow(
        _ordinal(row),
        row["item"]["S"],
        row["reason"]["S"],
        attempts=int(row.get("attempts", {}).get("N", 0)),
        failed_at=int(row["failed_at"]["N"]),
        source=row.get("source", {}).get("S", ""),
        kept=row.get("kept", {}).get("S", ""),
        totals=tuple(
            sorted((name, int(number["S"])) for name, number in row.get("totals", {}).get("M", {}).items())
        ),
    )


def _value(row: FailureRow, name: str) -> Value:
    """An attribute of a note; its totals as texts, the form of all maps in rows."""
    if name == "totals":
        return {total: str(number) for total, number in row.totals}
    value: Value = getattr(row, name)
    return value


def _key(partition: int, prefix: str, ordinal: int) -> dict[str, Any]:
    # Padded to the width of the largest ordinal, so that the texts sort like the numbers.
    return _part(partition, f"{prefix}{ordinal:013}")


def _part(partition: int, part: str) -> dict[str, Any]:
    return {names.BATCH_ID: attribute(partition), names.PART: attribute(part)}


def _digest(queue: str) -> str:
    """A short name of a queue for a key, in which a long URL would not fit."""
    return blake2b(queue.encode(), digest_size=8).hexdigest()


def _sent(item: Item) -> SentRow:
    start, stop, first_at, last_at = (
        int(item[name]["N"]) for name in ("start", "stop", "first_at", "last_at")
    )
    return SentRow(item["queue"]["S"], start, stop, first_at, last_at)


def _retry(item: Item) -> RetryRow:
    return RetryRow(
        _ordinal(item),
        int(item["attempt"]["N"]),
        item["error"]["S"],
        item["queue"]["S"],
        int(item["at"]["N"]),
    )


def _spread(batch_id: int, prefix: str, ordinal: int) -> dict[str, Any]:
    return _key(shard(batch_id, ordinal), prefix, ordinal)


def _ordinal(row: Item) -> int:
    return int(row[names.PART]["S"].rpartition("/")[2])
