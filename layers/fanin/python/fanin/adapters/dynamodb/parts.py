"""Notes of failed items on DynamoDB."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Any, Final

from fanin import names
from fanin.adapters import cursors
from fanin.adapters.dynamodb.connection import Connection
from fanin.adapters.dynamodb.rows import attribute
from fanin.app.ports.batches import FailureRow

_FAILURE: Final = "failure/"


class DynamoParts:
    """A ``PartStore``.

    Args:
        table: name of the parts table.
        connection: calls DynamoDB.
    """

    def __init__(self, table: str, connection: Connection) -> None:
        self._table = table
        self._connection = connection

    def put_failures(self, batch_id: int, rows: Iterable[FailureRow], *, expires_at: int) -> None:
        last = {row.ordinal: row for row in rows}
        self._connection.put(
            self._table,
            (
                {
                    **_key(batch_id, row.ordinal),
                    "item": attribute(row.item),
                    "reason": attribute(row.reason),
                    names.EXPIRES_AT: attribute(expires_at),
                }
                for row in last.values()
            ),
        )

    def reasons(self, batch_id: int, ordinals: Collection[int]) -> dict[int, str]:
        keys = [_key(batch_id, ordinal) for ordinal in sorted(set(ordinals))]
        rows = self._connection.read(self._table, keys)
        return {_ordinal(row[names.PART]["S"]): row["reason"]["S"] for row in rows}

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
            request["ExclusiveStartKey"] = _key(batch_id, after)
        items, last = self._connection.query(request)
        rows = [
            FailureRow(_ordinal(item[names.PART]["S"]), item["item"]["S"], item["reason"]["S"])
            for item in items
        ]
        return rows, None if last is None else cursors.encode(listing, _ordinal(last[names.PART]["S"]))


def _key(batch_id: int, ordinal: int) -> dict[str, Any]:
    # Padded to the width of the largest ordinal, so that the texts sort like the numbers.
    return {names.BATCH_ID: attribute(batch_id), names.PART: attribute(f"{_FAILURE}{ordinal:013}")}


def _ordinal(part: str) -> int:
    return int(part.removeprefix(_FAILURE))
