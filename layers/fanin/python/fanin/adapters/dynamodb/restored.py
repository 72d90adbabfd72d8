"""Copies rows back from tables that point-in-time recovery has made beside those of the service."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, Final

from fanin import names
from fanin.adapters.aws import client_factory, ignoring, translated
from fanin.adapters.dynamodb.rows import word_key

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

SEGMENTS: Final = 16
"""Parts of a table that are read and written side by side."""
KEYS: Final = {
    "words": names.WORD_ID,
    "parts": names.BATCH_ID,
    "directory": names.TOPIC,
    "batches": names.BATCH_ID,
}
"""Table → its partition key, in the order of the copy.

A batch without words counts as one whose items are all pending, so the batches come last.
"""


class RestoredTables:
    """Tables that were restored, with the names of the service's and something behind them.

    Args:
        tables: name of each table of ``KEYS`` in the service → its name on AWS.
        suffix: what the names of the restored tables have in addition.
        now: the time in seconds; rows that have expired by then are left out.
        client: makes the client, when first used.
    """

    def __init__(
        self,
        tables: Mapping[str, str],
        suffix: str,
        *,
        now: float,
        client: Callable[[], DynamoDBClient] | None = None,
    ) -> None:
        self._tables, self._suffix, self._now = tables, suffix, now
        self._make = client or client_factory("dynamodb", connections=SEGMENTS, attempts=10)

    def copy_back(
        self, batches: Collection[int] = (), *, replace: bool = False, write: bool = True
    ) -> Iterator[tuple[str, int, int]]:
        """Copy rows that are missing, one table after the other.

        Repeating it does no harm.

        Args:
            batches: only what belongs to these; by default everything.
            replace: rows that are there as well, with what they were.
            write: False only counts.

        Yields:
            Each table, how many of its rows were to be copied, and how many were missing or replaced.

        Raises:
            NotConfigured: a table does not exist.
            FaninError: DynamoDB refuses or is not reachable; repeat the call.
        """
        with translated(), ThreadPoolExecutor(SEGMENTS) as pool:
            client = self._make()
            for table, key in KEYS.items():

                def copy(segment: int, table: str = table, key: str = key) -> Counter[bool]:
                    return Counter(
                        write and self._put(client, self._tables[table], key, row, replace=replace)
                        for row in self._rows(client, self._tables[table] + self._suffix, segment)
                        if not batches or _batch(table, row) in batches
                    )

                done = sum(pool.map(copy, range(SEGMENTS)), Counter[bool]())
                yield table, done.total(), done[True]

    def _rows(self, client: DynamoDBClient, table: str, segment: int) -> Iterator[dict[str, Any]]:
        pages = client.get_paginator("scan").paginate(
            TableName=table, Segment=segment, TotalSegments=SEGMENTS, ConsistentRead=True
        )
        for page in pages:
            for row in page["Items"]:
                if float(row.get(names.EXPIRES_AT, {}).get("N", self._now)) >= self._now:
                    yield row

    @staticmethod
    def _put(client: DynamoDBClient, table: str, key: str, row: dict[str, Any], *, replace: bool) -> bool:
        missing: Any = {
            "ConditionExpression": "attribute_not_exists(#key)",
            "ExpressionAttributeNames": {"#key": key},
        }
        with ignoring({"ConditionalCheckFailedException"}):
            client.put_item(TableName=table, Item=row, **({} if replace else missing))
            return True
        return False


def _batch(table: str, row: Mapping[str, Any]) -> int | None:
    """The batch of a row; a registration, a route and a buffer have none."""
    if table == "words":
        return word_key(row[names.WORD_ID]["S"]).batch_id
    return int(row[names.BATCH_ID]["N"]) if KEYS[table] == names.BATCH_ID else None
