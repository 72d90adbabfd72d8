"""Counts the rows that a DynamoDB client reads and writes: the measure of its costs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from threading import Lock
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

_READS: Final = {"GetItem", "BatchGetItem", "Query", "Scan"}
_REFUSED: Final = {"ConditionalCheckFailedException", "TransactionCanceledException"}

_ROWS: Final[Mapping[str, Callable[[Mapping[str, Any]], int]]] = {
    "BatchGetItem": lambda ask: sum(len(table["Keys"]) for table in ask["RequestItems"].values()),
    "BatchWriteItem": lambda ask: sum(len(writes) for writes in ask["RequestItems"].values()),
    "TransactWriteItems": lambda ask: len(ask["TransactItems"]),
    "Query": lambda _: 0,  # known from the answer
    "Scan": lambda _: 0,
}


class Meter:
    """Counts the calls of clients by operation, such as ``UpdateItem``; safe with threads.

    Example:
        >>> meter = Meter(connection.client, connection.once)  # doctest: +SKIP
        >>> meter.writes.total()  # doctest: +SKIP
        1

    Attributes:
        requests: calls that were answered; botocore's own repeats are not counted.
        reads: rows read, found or not.
        writes: rows written, or refused by their condition.
        refused: writes whose condition failed.
    """

    def __init__(self, *clients: DynamoDBClient) -> None:
        self.requests: Counter[str] = Counter()
        self.reads: Counter[str] = Counter()
        self.writes: Counter[str] = Counter()
        self.refused: Counter[str] = Counter()
        self._lock = Lock()
        for client in clients:
            events: Any = client.meta.events
            events.register("provide-client-params.dynamodb", self._asked)
            events.register("after-call.dynamodb", self._answered)

    def reset(self) -> None:
        """Set all counts back to zero."""
        with self._lock:
            for counter in (self.requests, self.reads, self.writes, self.refused):
                counter.clear()

    def _asked(self, params: Mapping[str, Any], model: Any, **_: object) -> None:
        rows = _ROWS.get(model.name)
        self._count(model.name, rows(params) if rows else 1)

    def _answered(self, parsed: Mapping[str, Any], model: Any, **_: object) -> None:
        with self._lock:
            self.requests[model.name] += 1
            if parsed.get("Error", {}).get("Code") in _REFUSED:
                self.refused[model.name] += 1
        self._count(model.name, parsed.get("ScannedCount", 0))

    def _count(self, operation: str, rows: int) -> None:
        with self._lock:
            (self.reads if operation in _READS else self.writes)[operation] += rows
