"""What the driver does itself, where to start tasks takes longer: few rows in one job, and few words."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, NamedTuple

import pyarrow as pa
from pyspark.sql import DataFrame

from fanin.spark.ack.coalescer import pages_from_rows
from fanin.spark.ack.input_schema import InputSchema
from fanin.spark.ack.issued import BatchReader, StoredBatches
from fanin.spark.ack.ledger_writes import COUNTS, FAILURE, Acknowledged, fail, mark
from fanin.spark.ack.page_merger import LIFTED, in_order, lift_high, merge_task
from fanin.spark.ack.schemas import MARK_SCHEMA, PAGE_SCHEMA
from fanin.spark.ack.sql_items import check_columns, normalize
from fanin.spark.inputs.names import with_names
from fanin.spark.runtime.arrow import ArrowBatches, page
from fanin.spark.runtime.rejects import EVERY, Reject, RejectLimit, write_few_rejects
from fanin.spark.runtime.service import Service

ROWS: Final = 10_000
"""Most rows that are acknowledged like this: at worst as many writes, by the driver alone."""
TASKS: Final = 32
"""Most tasks, of at most so many rows each, so that what comes to the driver together is bounded."""


def acknowledge_few(
    rows: DataFrame,
    service: Service,
    *,
    rejects: str,
    batch_id: int | None = None,
    totals: Sequence[str] = (),
    max_rejects: RejectLimit = EVERY,
    write_empty: bool = False,
) -> Acknowledged | None:
    """Acknowledge, or fail, the items that rows name, if they are few.

    Returns:
        What was done; None if the rows are too many: then nothing was written.
    """
    rows = with_names(rows, ["item", "batch_id", "ordinal", "reason", *totals])
    totals = check_columns(totals, rows.schema)
    few = coalesce_few(rows, InputSchema.of(rows.columns, batch_id), StoredBatches(service), totals)
    if few is None:
        return None
    counted = write_few_rejects(rows.sparkSession, few.rejects, rejects, write_empty=write_empty)
    max_rejects.check(counted, few.rows, rejects, rows.sparkSession)
    return few.write(service, counted, totals)


class Few(NamedTuple):
    """A few rows, coalesced: how many, rows of ``MERGED``, and rows of ``MARKS``."""

    rows: int
    merged: Sequence[dict[str, Any]]
    marks: ArrowBatches

    @property
    def rejects(self) -> list[Reject]:
        """The rows that are left out."""
        return [Reject(row["value"], row["reason"], row["detail"]) for row in self.merged if row["reason"]]

    def write(self, service: Service, rejects: dict[str, int], totals: Sequence[str] = ()) -> Acknowledged:
        """Fail and mark the items; ``rejects`` are the rows that are left out, by reason."""
        before, ledger = service.meter().writes.total(), service.ledger()
        failures = [row for row in self.merged if row["why"] is not None]
        record = pa.RecordBatch.from_pylist(failures, schema=FAILURE)
        results = [one for some in fail([record], ledger, totals) for one in some]
        results += [one for some in mark([self.marks], ledger, totals) for one in some]
        done = {name: sum(getattr(result, name) for result in results) for name in COUNTS}
        done["writes"] = service.meter().writes.total() - before
        done["completed"] = len({result.batch_id for result in results if result.complete})
        distinct = sum(result.items for result in results) - len(failures)
        sums = _sums([*failures, *self.marks.to_pylist()], totals)
        return Acknowledged(self.rows, distinct, len(failures), rejects, **done, totals=sums)


def _sums(rows: Sequence[dict[str, Any]], totals: Sequence[str]) -> dict[str, int]:
    values = [one for row in rows for one in row["brought"] or ()]
    return {name: sum(one[place] or 0 for one in values) for place, name in enumerate(totals, 1)}


def coalesce_few(
    rows: DataFrame, schema: InputSchema, batches: BatchReader, totals: Sequence[str] = ()
) -> Few | None:
    """Coalesce the rows if they are few, in one Spark job; None if there are more."""
    named = normalize(rows, schema, totals)
    # To join partitions takes no shuffle, so it is still one job; a task that has too much stops early.
    pages = pages_from_rows(named.coalesce(TASKS), schema, batches, totals, most=ROWS).collect()
    if sum(one["rows"] or 0 for one in pages) > ROWS:
        return None
    record = page(PAGE_SCHEMA, in_order(pages))
    # Rows without a partition, such as those of an empty file, have no task, and give not even a count.
    merged = [row for some in merge_task(batches, schema)([record]) for row in some.to_pylist()]
    return few_words(merged, batches, rows=sum(row["rows"] or 0 for row in merged))


def few_words(merged: Sequence[dict[str, Any]], batches: BatchReader, *, rows: int) -> Few:
    """Lift rows of ``MERGED``, so few that the driver can take them, in the order of ``partition_marks``."""
    words = [row for row in merged if row["mask"] is not None]
    marks = [tuple(row[name] for name in MARK_SCHEMA.names) for row in words if row["level"] < LIFTED]
    marks += lift_high((row for row in words if row["level"] == LIFTED), batches)
    marks.sort(key=lambda one: (one[0], one[2] << 6 * one[1], one[1]))
    return Few(rows, merged, page(MARK_SCHEMA, marks))
