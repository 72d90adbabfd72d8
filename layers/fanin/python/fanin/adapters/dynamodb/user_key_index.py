"""The index of batches by user key: which batches have a user key, the newest first."""

from __future__ import annotations

from collections.abc import Iterator
from heapq import merge
from itertools import islice
from typing import Any

from fanin import names
from fanin.adapters import cursors
from fanin.adapters.dynamodb.connection import Connection
from fanin.adapters.dynamodb.rows import attribute, user_shard


class UserKeyIndex:
    """Reads the index, whose rows are spread over shards for each user key.

    Its sort key is the batch id, which begins with the time at which it was made. So ids say which batch is
    newer, no two rows tie, and a page goes on below an id. Only the opening of a batch writes the index.

    Args:
        table: name of the batches table.
        connection: calls DynamoDB.
    """

    def __init__(self, table: str, connection: Connection) -> None:
        self._table = table
        self._connection = connection

    def page(self, user_key: str, *, cursor: str | None, limit: int) -> tuple[list[int], str | None]:
        """List ids of batches with a user key, the newest first.

        Returns:
            The ids, and the cursor of the next page; None at the end.

        Raises:
            InvalidRequest: the cursor is not from this listing.
        """
        listing = cursors.listing_of("batches of", user_key)
        before = None if cursor is None else cursors.decode(listing, cursor, {1})[0]
        share = limit // names.SHARDS + 1  # a shard has about so many rows of a page
        shards = [self._shard(user_key, shard, before, share) for shard in range(names.SHARDS)]
        found = list(islice(merge(*shards, reverse=True), limit + 1))
        page = found[:limit]
        return page, cursors.encode(listing, page[-1]) if len(found) > limit else None

    def _shard(self, user_key: str, shard: int, before: int | None, share: int) -> Iterator[int]:
        while True:
            rows, last = self._connection.query(self._request(user_shard(user_key, shard), before, share))
            for row in rows:
                yield int(row[names.BATCH_ID]["N"])
            if last is None:
                return
            before = int(last[names.BATCH_ID]["N"])

    def _request(self, shard_key: str, before: int | None, limit: int) -> dict[str, Any]:
        request: dict[str, Any] = {
            "TableName": self._table,
            "IndexName": names.INDEX_BY_USER_KEY,
            "KeyConditionExpression": f"{names.USER_SHARD} = :shard",
            "ExpressionAttributeValues": {":shard": attribute(shard_key)},
            "ScanIndexForward": False,
            "Limit": limit,
        }
        if before is not None:
            request["KeyConditionExpression"] += f" AND {names.BATCH_ID} < :before"
            request["ExpressionAttributeValues"][":before"] = attribute(before)
        return request
