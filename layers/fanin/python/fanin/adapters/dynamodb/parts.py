"""Rows of the parts table of DynamoDB."""

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from fanin import names
from fanin.adapters.dynamodb.connection import Connection
from fanin.adapters.dynamodb.rows import attributes, plain, update_of
from fanin.adapters.parts import KeyRange, PartKey, Parts, Row, Rows, When, Written

T = TypeVar("T")
R = TypeVar("R")


class DynamoParts(Parts):
    """A ``PartStore``.

    Args:
        table: name of the parts table.
        connection: calls DynamoDB.
    """

    def __init__(self, table: str, connection: Connection) -> None:
        self._table = table
        self._connection = connection

    def _write(self, call: str, key: PartKey, values: Row, when: When = (), stays: str = "") -> Written:  # noqa: ARG002
        request = update_of(self._table, part_key(key), values, when, stays=stays)
        done, row = self._connection.update(request)
        return done, None if row is None else plain(row, row)

    def _read(self, call: str, keys: Sequence[PartKey]) -> list[Row]:  # noqa: ARG002
        return [plain(row, row) for row in self._connection.read(self._table, list(map(part_key, keys)))]

    def _between(self, call: str, span: KeyRange, limit: int, *, last_first: bool = False) -> Rows:  # noqa: ARG002
        rows, more = self._connection.query(
            {
                "TableName": self._table,
                "KeyConditionExpression": "batch_id = :batch AND part BETWEEN :first AND :last",
                "ExpressionAttributeValues": attributes(
                    {":batch": span.partition, ":first": span.first, ":last": span.last}
                ),
                "ConsistentRead": True,
                "ScanIndexForward": not last_first,
                "Limit": limit,
            }
        )
        return [plain(row, row) for row in rows], more is not None

    def _delete(self, call: str, keys: Sequence[PartKey]) -> None:  # noqa: ARG002
        wanted = list(map(part_key, keys))
        there = self._connection.read(self._table, wanted, (names.BATCH_ID, names.PART))
        self._each(lambda key: self._connection.delete({"TableName": self._table, "Key": key}), there)

    def _each(self, call: Callable[[T], R], values: Sequence[T]) -> list[R]:
        return self._connection.parallel.map(call, values)


def part_key(key: PartKey) -> dict[str, Any]:
    """The key of a row of the parts table."""
    partition, part = key
    return attributes({names.BATCH_ID: partition, names.PART: part})
