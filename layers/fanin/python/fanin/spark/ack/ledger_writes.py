"""Writes coalesced words and failures to the ledger, a few calls a task, and adds up what that did."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, TypeVar

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812  as all of Spark's documentation calls it

from fanin.app.ledger.service import LedgerService
from fanin.domain import ids
from fanin.domain.acks import Failure
from fanin.domain.limits import MAX_FAILURES
from fanin.domain.tree import Mark, Tree
from fanin.errors import BatchGone, BatchNotFound
from fanin.spark.ack.schemas import Records
from fanin.spark.runtime.service import Service

RESULTS: Final = (
    "batch_id long, complete boolean, first long, ranged long, duplicates long, late long, words long,"
    " writes long"
)
"""A row for each batch of each call, and one row without a batch for the writes of each task."""

_SCHEMA: Final = pa.schema(
    [
        ("batch_id", pa.int64()),
        ("complete", pa.bool_()),
        *((name, pa.int64()) for name in ("first", "ranged", "duplicates", "late", "words", "writes")),
    ]
)
_AT_ONCE: Final = 1_000
_TREE: Final = Tree()

_T = TypeVar("_T")
_Row = tuple[int | None, bool, int, int, int, int, int, int]
_Write = Callable[[Mapping[int, Sequence[_T]]], list[_Row]]


def partition_marks(marks: DataFrame, writers: int) -> DataFrame:
    """Give the words of a window, and those above it, to one task, so that their parents are written once.

    Args:
        marks: rows of ``MARKS``.
        writers: tasks that write at the same time.
    """
    below, above = "shiftright(number, 12 - 6 * level)", "shiftleft(number, 6 * (level - 2))"
    window = F.expr(f"CASE WHEN level < 2 THEN {below} ELSE {above} END")
    windowed = marks.withColumn("_window", window)
    spread = windowed.repartition(writers, "batch_id", "_window")
    return spread.sortWithinPartitions("batch_id", "_window", "level").drop("_window")


def write_marks_task(service: Service) -> Callable[[Iterable[Records]], Iterator[Records]]:
    """Make the function of a task that clears bits.

    Returns:
        A function that takes rows of ``MARKS``, partitioned by ``partition_marks``, and gives ``RESULTS``.
    """

    def run(records: Iterable[Records]) -> Iterator[Records]:
        yield from written(mark(records, service.ledger()), service.meter().writes.total)

    return run


def write_failures_task(service: Service) -> Callable[[Iterable[Records]], Iterator[Records]]:
    """Make the function of a task that fails items.

    Returns:
        A function that takes ``batch_id``, ``ordinal``, ``item`` and ``why``, each item once, and gives
        ``RESULTS``.
    """

    def run(records: Iterable[Records]) -> Iterator[Records]:
        yield from written(fail(records, service.ledger()), service.meter().writes.total)

    return run


def written(results: Iterable[list[_Row]], writes: Callable[[], int]) -> Iterator[Records]:
    """Give rows of ``RESULTS``; the last one says how many rows of the tables were written meanwhile."""
    before = writes()
    for rows in results:
        yield _records(rows)
    yield _records([(None, False, 0, 0, 0, 0, 0, writes() - before)])


def mark(records: Iterable[Records], ledger: LedgerService) -> Iterator[list[_Row]]:
    """Clear the bits of ``MARKS``, some words at a time."""

    def write(shares: Mapping[int, Sequence[Mark]]) -> list[_Row]:
        return [
            (m.batch_id, m.complete, m.first, m.ranged, m.duplicates, m.late, len(shares[m.batch_id]), 0)
            for m in ledger.mark(shares)
        ]

    def gone(batch_id: int, marks: Sequence[Mark]) -> _Row:
        items = sum(_TREE.below(mark.level, mark.mask) for mark in marks)
        return (batch_id, False, 0, 0, 0, items, len(marks), 0)

    for record in records:
        rows = [column.to_pylist() for column in record.columns[:4]]
        pairs = [(b, Mark(lv, n, m & _TREE.full)) for b, lv, n, m in zip(*rows, strict=True)]
        yield from _calls(pairs, _AT_ONCE, write, gone)


def fail(records: Iterable[Records], ledger: LedgerService) -> Iterator[list[_Row]]:
    """Fail items, some at a time; items that have no id yet get one."""

    def write(shares: Mapping[int, Sequence[tuple[int, str | None, str]]]) -> list[_Row]:
        rows = ledger.ports.batches.read(shares)
        if missing := shares.keys() - rows.keys():
            raise BatchNotFound(f"there is no batch {min(missing)}")
        failures = [
            Failure(item or f"{ids.issue(batch_id, ordinal, 1, rows[batch_id].salt).prefix}:0", why)
            for batch_id, share in shares.items()
            for ordinal, item, why in share
        ]
        return [
            (r.batch_id, r.complete, r.first, 0, len(r.duplicates), r.late, 0, 0)
            for r in ledger.fail(failures)
        ]

    def gone(batch_id: int, share: Sequence[object]) -> _Row:
        return (batch_id, False, 0, 0, 0, len(share), 0, 0)

    for record in records:
        rows = zip(*(column.to_pylist() for column in record.columns[:4]), strict=True)
        pairs = [(batch_id, (ordinal, item, why)) for batch_id, ordinal, item, why in rows]
        yield from _calls(pairs, MAX_FAILURES, write, gone)


def _calls(
    pairs: Sequence[tuple[int, _T]],
    most: int,
    write: _Write[_T],
    gone: Callable[[int, Sequence[_T]], _Row],
) -> Iterator[list[_Row]]:
    """Write in calls of at most so many; a batch that was removed meanwhile does not hold up the others."""
    for first in range(0, len(pairs), most):
        shares: dict[int, list[_T]] = {}
        for batch_id, one in pairs[first : first + most]:
            shares.setdefault(batch_id, []).append(one)
        try:
            yield write(shares)
        except (BatchNotFound, BatchGone):
            for batch_id, share in shares.items():
                try:
                    yield write({batch_id: share})
                except (BatchNotFound, BatchGone):
                    yield [gone(batch_id, share)]


def totals(results: DataFrame) -> dict[str, int]:
    """Add up what all tasks did, and count the batches that are complete."""
    sums = [F.sum(name).alias(name) for name in ("first", "ranged", "duplicates", "late", "words", "writes")]
    each = results.groupBy("batch_id").agg(F.max("complete").cast("long").alias("completed"), *sums)
    names = [name for name in each.columns if name != "batch_id"]
    row = each.agg(*(F.coalesce(F.sum(name), F.lit(0)).alias(name) for name in names)).collect()[0]
    return {name: int(row[name]) for name in names}


def _records(rows: Sequence[_Row]) -> Any:
    columns = zip(*rows, strict=True) if rows else [()] * len(_SCHEMA)
    arrays = [pa.array(column, kind) for column, kind in zip(columns, _SCHEMA.types, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=_SCHEMA)
