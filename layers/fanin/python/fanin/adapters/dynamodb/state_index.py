"""The index of batches by state: which are in a state, and which are due, the longest due first."""

from __future__ import annotations

from collections.abc import Iterator
from heapq import merge
from typing import Any, Final

from fanin import names
from fanin.adapters import cursors
from fanin.adapters.dynamodb.connection import Connection
from fanin.adapters.dynamodb.rows import Item, attribute
from fanin.domain.batch import LIVE, State

_DUE: Final = 100
"""How many rows of one shard of the index are read at a time."""


class StateIndex:
    """Reads the index, whose rows are spread over shards for each state.

    The index follows the table with a delay, so a batch may have moved on: read its row.

    Args:
        table: name of the batches table.
        connection: calls DynamoDB.
    """

    def __init__(self, table: str, connection: Connection) -> None:
        self._table = table
        self._connection = connection

    def page(self, state: State, *, cursor: str | None, limit: int) -> tuple[list[int], str | None]:
        """List ids of batches in a state, shard by shard.

        Returns:
            The ids, and the cursor of the next page; None at the end.

        Raises:
            InvalidRequest: the cursor is not from this listing.
        """
        listing = f"batches {state}"
        shard, *after = cursors.decode(listing, cursor, {1, 3}) if cursor is not None else (0,)
        found: list[int] = []
        while shard < names.SHARDS and len(found) < limit:
            rows, last = self._query(state, shard, after, limit=limit - len(found))
            found += [int(row[names.BATCH_ID]["N"]) for row in rows]
            if last is None:
                shard, after = shard + 1, []
            else:
                after = list(_place(last))
        return found, cursors.encode(listing, shard, *after) if shard < names.SHARDS else None

    def due(self, before: int) -> Iterator[int]:
        """Ids of live batches that are due before a time, ms; the longest due first."""
        shards = [self._due(state, shard, before) for state in LIVE for shard in range(names.SHARDS)]
        return (batch_id for _, batch_id in merge(*shards))

    def _due(self, state: State, shard: int, before: int) -> Iterator[tuple[int, int]]:
        after: list[int] = []
        while True:
            rows, last = self._query(state, shard, after, limit=_DUE, due_before=before)
            yield from map(_place, rows)
            if last is None:
                return
            after = list(_place(last))

    def _query(
        self, state: State, shard: int, after: list[int], *, limit: int, due_before: int | None = None
    ) -> tuple[list[Item], Item | None]:
        shard_key = attribute(f"{state}#{shard}")
        request: dict[str, Any] = {
            "TableName": self._table,
            "IndexName": names.INDEX_BY_STATE_SHARD,
            "KeyConditionExpression": f"{names.STATE_SHARD} = :shard",
            "ExpressionAttributeValues": {":shard": shard_key},
            "Limit": limit,
        }
        if due_before is not None:
            request["KeyConditionExpression"] += " AND due_at < :due_before"
            request["ExpressionAttributeValues"][":due_before"] = attribute(due_before)
        if after:
            due_at, batch_id = after
            request["ExclusiveStartKey"] = {
                names.STATE_SHARD: shard_key,
                names.DUE_AT: attribute(due_at),
                names.BATCH_ID: attribute(batch_id),
            }
        return self._connection.query(request)


def _place(row: Item) -> tuple[int, int]:
    """Where a row stands in its shard of the index."""
    return int(row[names.DUE_AT]["N"]), int(row[names.BATCH_ID]["N"])
