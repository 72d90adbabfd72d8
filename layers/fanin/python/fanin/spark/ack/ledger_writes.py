"""Writes coalesced words and failures to the ledger, a few calls a task, and adds up what that did."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

import pyarrow as pa
from pyspark import Accumulator
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812  as all of Spark's documentation calls it

from fanin.app.ledger.service import LedgerService
from fanin.domain import ids
from fanin.domain.marks import MAX_HEAVY, Failure
from fanin.domain.tree import Bits, Tree
from fanin.errors import GONE, BatchNotFound, ServiceUnavailable, Throttled
from fanin.spark.ack.page_merger import MARK_SCHEMA, MERGED_SCHEMA
from fanin.spark.ack.skipping import Sieve
from fanin.spark.runtime.arrow import ArrowBatches, Task, ddl, page, slices
from fanin.spark.runtime.rejects import Reason
from fanin.spark.runtime.results import Result
from fanin.spark.runtime.service import PATIENCE, PATIENT, Service


@dataclass(frozen=True)
class Acknowledged(Result):
    """What a run did.

    Attributes:
        rows: of the input.
        distinct: items that the rows acknowledge.
        failed: items that the rows fail.
        rejects: rows left out, by reason; repeats are among them.
        first: items that were not done before and are now, in words that were written themselves.
        ranged: items below bits of higher levels that were cleared; some may have been done before.
        duplicates: items that were done before the run, or by a try of it that was refused in part.
        late: items left alone because their batch had ended without them.
        held: failures that stay pending, because their batches hold what fails.
        words: words to clear.
        writes: rows of the tables that were written, those of failures, parents and batches among them.
            Writes of attempts that were lost are not counted.
        completed: batches that are complete now, of those that the input names.
        totals: of a run with totals, the sums of what the items bring, those that were done before included.
    """

    rows: int
    distinct: int
    failed: int
    rejects: dict[str, int] = field(default_factory=dict)
    first: int = 0
    ranged: int = 0
    duplicates: int = 0
    late: int = 0
    held: int = 0
    words: int = 0
    writes: int = 0
    completed: int = 0
    totals: dict[str, int] = field(default_factory=dict)

    @property
    def accounted(self) -> dict[str, int]:
        """Every row once: ``in`` is all others together; ``repeated`` are rows that repeat an item."""
        repeated = self.rejects.get(Reason.DUPLICATE, 0)
        return {
            "in": self.rows,
            "acknowledged": self.distinct,
            "failed": self.failed,
            "repeated": repeated,
            "rejected": sum(self.rejects.values()) - repeated,
        }

    @property
    def ok(self) -> bool:  # type: ignore[override]
        """Whether every row is accounted for."""
        return self.detail is None

    @property
    def detail(self) -> str | None:  # type: ignore[override]
        """What is wrong, if not every row is accounted for."""
        rows, *others = self.accounted.values()
        if rows == sum(others):
            return None
        return (
            f"{rows} rows were read, and {sum(others)} are accounted for: somebody changed the work folder,"
            " or the file system lost a part of it. Start again, which leaves out what is done"
        )

    def summary(self) -> dict[str, Any]:
        """The summary of the job, ready for JSON; docs/how-to/spark/ack.md has what each field says."""
        done = self.distinct + self.failed
        return {**super().summary(), "acks_per_write": round(done / self.writes, 3) if self.writes else None}


class WriteResult(NamedTuple):
    """What a call did to a batch; without a batch, how many rows of the tables a task has written.

    Attributes are those of ``Acknowledged``.
    """

    batch_id: int | None
    complete: bool = False
    first: int = 0
    ranged: int = 0
    duplicates: int = 0
    late: int = 0
    words: int = 0
    writes: int = 0
    held: int = 0

    @property
    def items(self) -> int:
        """Items that are accounted for."""
        return sum(getattr(self, name) for name in ITEMS)


COUNTS: Final = WriteResult._fields[2:]
ITEMS: Final = ("first", "ranged", "duplicates", "late", "held")
_RESULTS: Final = pa.schema(
    [("batch_id", pa.int64()), ("complete", pa.bool_()), *((name, pa.int64()) for name in COUNTS)]
)
RESULTS: Final = ddl(_RESULTS)
"""A row for each batch of each call, and one row without a batch for the writes of each task."""

_AT_ONCE: Final = MAX_HEAVY  # words, or failed items, of one call; a call can fail no more
_TREE: Final = Tree()

_Rows = Sequence[Sequence[Any]]  # of one batch, without the column that names it
FAILURE: Final = pa.schema(
    [MERGED_SCHEMA.field(name) for name in ("batch_id", "number", "value", "why", "brought")]
)


def write_task(
    write: Callable[[Iterable[ArrowBatches], LedgerService, Sequence[str]], Iterator[list[WriteResult]]],
    service: Service,
    totals: Sequence[str],
    count: Accumulator[int],
) -> Task:
    """Make the function of a task that writes, and tells what it did in ``RESULTS``."""

    def run(records: Iterable[ArrowBatches]) -> Iterator[ArrowBatches]:
        before = service.meter().writes.total()
        for rows in write(records, service.ledger(), totals):
            count.add(sum(row.words or row.items for row in rows))
            yield page(_RESULTS, rows)
        yield page(_RESULTS, [WriteResult(None, writes=service.meter().writes.total() - before)])

    return run


def mark(
    records: Iterable[ArrowBatches], ledger: LedgerService, totals: Sequence[str] = ()
) -> Iterator[list[WriteResult]]:
    """Clear bits of ``MARK_SCHEMA``, some words at a time, and add what their items bring to the totals."""
    sieve = Sieve(ledger.ports.words)

    def write(every: Mapping[int, _Rows]) -> list[WriteResult]:
        words = {batch_id: [_word(*row) for row in rows] for batch_id, rows in every.items()}
        shares, done = sieve.sift(words)
        marks = {batch_id: [mark for mark, _ in share] for batch_id, share in shares.items()}
        values = {
            batch_id: {ordinal: _by_name(totals, own) for _, items in share for ordinal, *own in items}
            for batch_id, share in shares.items()
            if any(items for _, items in share)
        }
        try:
            marked = ledger.clear(marks, values=values)
        except (Throttled, ServiceUnavailable):
            sieve.learn(1, 1)  # most are written now: read them before they are sent again
            raise
        sieve.learn(sum(map(_items_of, shares.values())), sum(m.duplicates for m in marked))
        return [
            WriteResult(
                *(m.batch_id, m.complete, m.first, m.ranged),
                duplicates=m.duplicates + done[m.batch_id],
                late=m.late,
                words=len(every[m.batch_id]),
            )
            for m in marked
        ]

    def gone(batch_id: int, rows: _Rows) -> WriteResult:
        return WriteResult(batch_id, late=_items_of([_word(*row) for row in rows]), words=len(rows))

    return _calls(records, write, gone)


def _word(level: int, number: int, mask: int, brought: Any) -> tuple[Bits, Sequence[Any]]:
    """Bits of a word; and of their items that add to totals the ordinal, followed by the values."""
    return Bits(level, number, mask & _TREE.full), brought or ()


def _items_of(words: Sequence[tuple[Bits, object]]) -> int:
    return sum(_TREE.below(mark.level, mark.mask) for mark, _ in words)


def fail(
    records: Iterable[ArrowBatches], ledger: LedgerService, totals: Sequence[str] = ()
) -> Iterator[list[WriteResult]]:
    """Fail items, ``FAILURE`` of each, some at a time; items that have no id yet get one."""

    def write(shares: Mapping[int, _Rows]) -> list[WriteResult]:
        batches = ledger.ports.batches.read(shares)
        if missing := shares.keys() - batches.keys():
            raise BatchNotFound(f"there is no batch {min(missing)}")
        failures = list[Failure]()
        for batch_id, rows in shares.items():
            for ordinal, item, why, brought in rows:
                item_id = item or f"{ids.issue(batch_id, ordinal, 1, batches[batch_id].salt).prefix}:0"
                values = brought[0][1:] if brought else ()
                failures.append(Failure(item_id, why, totals=_by_name(totals, values)))
        return [
            WriteResult(
                r.batch_id, r.complete, r.first, duplicates=len(r.duplicates), late=r.late, held=r.held
            )
            for r in ledger.mark(failures).whole()
        ]

    def gone(batch_id: int, rows: _Rows) -> WriteResult:
        return WriteResult(batch_id, late=len(rows))

    return _calls(records, write, gone)


def _calls(
    records: Iterable[ArrowBatches],
    write: Callable[[Mapping[int, _Rows]], list[WriteResult]],
    gone: Callable[[int, _Rows], WriteResult],
) -> Iterator[list[WriteResult]]:
    """Write in calls of ``_AT_ONCE``; a batch that was removed meanwhile does not hold up the others."""

    def patiently(shares: Mapping[int, _Rows]) -> list[WriteResult]:
        # What a busy store refuses is repeated: words that are done by then are found done.
        return PATIENT.patiently(lambda: write(shares), PATIENCE)

    for some in slices(records, _AT_ONCE):  # what the items of a whole page bring is large
        shares: dict[int, list[Any]] = {}
        for batch_id, *row in zip(*(column.to_pylist() for column in some.columns), strict=True):
            shares.setdefault(batch_id, []).append(row)
        try:
            yield patiently(shares)
        except GONE:
            for batch_id, rows in shares.items():
                try:
                    yield patiently({batch_id: rows})
                except GONE:
                    yield [gone(batch_id, rows)]


def _by_name(totals: Sequence[str], values: Sequence[int | None]) -> dict[str, int]:
    return {name: value for name, value in zip(totals, values, strict=False) if value is not None}


def partition_marks(merged: DataFrame, tasks: int) -> DataFrame:
    """The marks of ``MERGED``: what is below a word goes to one task, so that the word is written once."""
    marks = merged.where("mask IS NOT NULL").select(*MARK_SCHEMA.names)
    windowed = marks.withColumn("_window", F.expr("shiftright(shiftleft(number, 6 * level), 12)"))
    spread = windowed.repartition(tasks, "batch_id", "_window")
    return spread.sortWithinPartitions("batch_id", "_window", "level").drop("_window")


def write_marks(
    merged: DataFrame, tasks: int, service: Service, totals: Sequence[str], count: Accumulator[int]
) -> DataFrame:
    """Clear the bits of ``MERGED`` in so many tasks, whenever the result is evaluated: ``RESULTS``."""
    task = write_task(mark, service, totals, count)
    return partition_marks(merged, tasks).mapInArrow(task, RESULTS)


def write_failures(
    merged: DataFrame, tasks: int, service: Service, totals: Sequence[str], count: Accumulator[int]
) -> DataFrame:
    """Fail the items of ``MERGED`` that do; likewise, and before any item is acknowledged."""
    failures = merged.where("why IS NOT NULL").select(*FAILURE.names)
    spread = failures.repartition(tasks, "batch_id", F.shiftright("number", 18))
    task = write_task(fail, service, totals, count)
    return spread.sortWithinPartitions("batch_id", "number").mapInArrow(task, RESULTS)


def sum_results(results: DataFrame) -> dict[str, int]:
    """Add up what all tasks did, and count the batches that are complete."""
    sums = [F.sum(name).alias(name) for name in COUNTS]
    each = results.groupBy("batch_id").agg(F.max("complete").cast("long").alias("completed"), *sums)
    names = [name for name in each.columns if name != "batch_id"]
    row = each.agg(*(F.coalesce(F.sum(name), F.lit(0)).alias(name) for name in names)).collect()[0]
    return {name: int(row[name]) for name in names}
