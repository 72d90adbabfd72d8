"""Acknowledging in bulk, step by step: coalesce, write the rejects, fail, mark, and add up what was done."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Final, NamedTuple

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812  as all of Spark's documentation calls it

from fanin.domain.prices import BY_REGION, DEFAULT
from fanin.errors import InvalidRequest
from fanin.spark.ack import steps, values
from fanin.spark.ack.forecast import Forecast, forecast_of, limit_of_table, words_of
from fanin.spark.ack.input_schema import InputSchema
from fanin.spark.ack.issued import BatchReader, StoredBatches
from fanin.spark.ack.ledger_writes import (
    RESULTS,
    partition_marks,
    sum_results,
    write_failures_task,
    write_marks_task,
)
from fanin.spark.ack.parquet_files import ParquetFiles
from fanin.spark.ack.schemas import MERGED
from fanin.spark.ack.sql_items import normalize
from fanin.spark.ack.sql_words import pages_from_words
from fanin.spark.ack.staged_rows import no_rows, stage_rows
from fanin.spark.ack.strategy import Strategy, choose_strategy
from fanin.spark.ack.writers import Written, check_writers, share_writers
from fanin.spark.inputs.names import with_names
from fanin.spark.runtime.classic import classic
from fanin.spark.runtime.cluster import most_tasks
from fanin.spark.runtime.rejects import ANY, RejectLimit, write_rejects
from fanin.spark.runtime.service import Service

WORK: Final = ("rows", "failures", "merged", "failed")
"""What steps pass to each other, in the work folder."""


@dataclass(frozen=True)
class Acknowledged:
    """What a run did.

    Attributes:
        strategy: how it coalesced.
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

    strategy: Strategy
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
    def ok(self) -> bool:
        """Whether every row is accounted for."""
        return self.rows == self.distinct + self.failed + sum(self.rejects.values())

    def summary(self) -> dict[str, Any]:
        """The summary of the job, ready for JSON. ``way`` is the former name of ``strategy``."""
        done = self.distinct + self.failed
        each = round(done / self.writes, 3) if self.writes else None
        told = {
            "ok": self.ok,
            "rejects": self.rejects,
            **asdict(self),
            "way": self.strategy,
            "acks_per_write": each,
        }
        return told if self.totals else {name: value for name, value in told.items() if name != "totals"}


def acknowledge(
    rows: DataFrame,
    service: Service,
    *,
    work: str,
    batch_id: int | None = None,
    files: ParquetFiles | None = None,
    strategy: Strategy | None = None,
    rejects: str | None = None,
    writers: int | None = None,
    totals: Sequence[str] = (),
    max_rejects: RejectLimit = ANY,
    max_writes_per_second: float | None = None,
    progress: bool = False,
) -> Acknowledged:
    """Acknowledge, or fail, the items that the rows of a DataFrame name; safe to repeat after any failure.

    A run that is repeated leaves out what is done. Tasks wait for a table that refuses writes, for ten to
    twenty minutes while it takes none, and find the rate that it takes.

    Args:
        rows: with a column ``item``, or ``batch_id`` and ``ordinal``, or ``ordinal``; and perhaps a
            ``reason``: where that is not null, the item has failed.
        service: the stack.
        work: a folder for what steps pass to each other; what is in it is replaced.
        batch_id: the batch of all rows, for input that has only ordinals.
        files: the Parquet files that the rows are read from, with ``mergeSchema``, if there are any.
        strategy: how to coalesce; None chooses. Pass it where sampling the input is expensive.
        rejects: folder for the rows that are left out; ``rejects`` in ``work`` if None.
        writers: tasks that write; if None, as many as there is work for.
        totals: names of totals of the batches; each is a column with what the items bring to it, whole
            numbers within ±2⁵³, or null for nothing. Values count with the first acknowledgement of their
            item. Rows with other values are rejects, and their items are left alone.
        max_rejects: how many rows may be left out; by default not all of them.
        max_writes_per_second: write units a second that all tasks together send at most; None for as many as
            the table takes.
        progress: whether to say on standard error how far it is.

    Raises:
        InvalidRequest: the columns name no items, two have the same name but for its case, a total has no
            column, or it is of another type; the session is one of Spark Connect; or ``writers`` or
            ``max_writes_per_second`` are less than 1.
        TooManyRejects: too many rows are left out; no item was acknowledged or failed.
    """
    check_writers(writers, max_writes_per_second)
    given = _Given(rows, service, work, batch_id, files, strategy, rejects, totals, max_rejects)
    found = _coalesced(given)
    written = Written(rows.sparkSession, found.words + found.failed, shown=progress)
    share = share_writers(found.words, most_tasks(rows.sparkSession), writers, max_writes_per_second)
    paced = service.paced(share.writes_per_second)
    marks = partition_marks(found.marks, share.tasks)
    results = marks.mapInArrow(write_marks_task(paced, found.totals, written.count), RESULTS)
    with written:
        if found.failed:
            told = _fail(found, paced, share.tasks_for(found.failed), f"{work}/failed", written)
            results = results.unionByName(told)
        done = sum_results(results)
    named = sum(done[name] for name in ("first", "ranged", "duplicates", "late", "held"))
    return Acknowledged(
        strategy=found.strategy,
        rows=found.rows,
        distinct=named - found.failed,
        failed=found.failed,
        rejects=found.rejects,
        **done,
        totals=values.sums(found.valid, found.totals),
    )


def forecast(
    rows: DataFrame,
    service: Service,
    *,
    work: str,
    batch_id: int | None = None,
    files: ParquetFiles | None = None,
    rejects: str | None = None,
    totals: Sequence[str] = (),
    max_rejects: RejectLimit = ANY,
    max_writes_per_second: float | None = None,
) -> Forecast:
    """Say what ``acknowledge`` would write, what that costs, and how long it takes; writes nothing.

    The work folder and the rejects are written as in a run. What was done before is not looked for, so a run
    may write less.

    Args:
        rows: as for ``acknowledge``, like all others.
        service: the stack.
        work: a folder for what steps pass to each other.
        batch_id: the batch of all rows.
        files: the Parquet files that the rows are read from.
        rejects: folder for the rows that are left out.
        totals: names of totals of the batches.
        max_rejects: how many rows may be left out.
        max_writes_per_second: write units a second; None for the limit of the table.

    Raises:
        InvalidRequest, TooManyRejects: as ``acknowledge``.
    """
    check_writers(None, max_writes_per_second)
    found = _coalesced(_Given(rows, service, work, batch_id, files, None, rejects, totals, max_rejects))
    limit = limit_of_table(service)
    return forecast_of(
        words_of(found.marks),
        rows=found.rows,
        failed=found.failed,
        rejects=found.rejects,
        price=BY_REGION.get(service.region, DEFAULT).write,
        per_second=min(limit, max_writes_per_second or limit),
    )


class _Given(NamedTuple):
    """What a run was given."""

    rows: DataFrame
    service: Service
    work: str
    batch_id: int | None
    files: ParquetFiles | None
    strategy: Strategy | None
    rejects: str | None
    totals: Sequence[str]
    max_rejects: RejectLimit


class _Coalesced(NamedTuple):
    """What a run is to write.

    Attributes:
        strategy: how the rows were coalesced.
        rows: of the input.
        rejects: rows that are left out, by reason.
        failed: items that fail.
        words: about how many words there are to clear, and not fewer.
        marks: rows of ``MARKS``, with what their items bring if there are totals.
        good: rows of ``STAGED`` that fail their items.
        valid: rows of ``STAGED`` that are no rejects.
        totals: names of totals.
    """

    strategy: Strategy
    rows: int
    rejects: dict[str, int]
    failed: int
    words: int
    marks: DataFrame
    good: DataFrame
    valid: DataFrame
    totals: Sequence[str]


def _coalesced(given: _Given) -> _Coalesced:
    """Stage, coalesce, write the rejects, and lift."""
    rows, work, files = given.rows, given.work, given.files
    spark, batches = classic(rows.sparkSession, "acknowledge"), StoredBatches(given.service)
    rows = with_names(rows, ["item", "batch_id", "ordinal", "reason", *given.totals])
    totals = values.check_columns(given.totals, rows.schema)
    if totals and given.strategy is Strategy.PARQUET:
        raise InvalidRequest(
            "tasks cannot read the files of a run with totals themselves; choose the strategy pages or sql"
        )
    schema = InputSchema.of(rows.columns, given.batch_id)
    reasons = "reason" in rows.columns
    rows = rows.select(*schema.columns, *(["reason"] if reasons else []), *totals)
    staged = no_rows(rows)
    if totals:
        files = None
        staged = stage_rows(rows, schema, batches, f"{work}/rows", totals=totals)
    elif reasons:
        staged = stage_rows(rows.where("reason IS NOT NULL"), schema, batches, f"{work}/failures")
    bad, valid = staged.where("reason IS NOT NULL"), staged.where("reason IS NULL")
    good, done_well = valid.where("why IS NOT NULL"), valid.where("why IS NULL")
    failed = good.count() if reasons else 0
    if totals:
        acks = done_well.select(*schema.columns)
    else:
        acks = rows.where("reason IS NULL").drop("reason") if reasons else rows
    chosen = given.strategy or choose_strategy(acks, schema, files)
    merged = _merged(
        acks,
        schema,
        batches,
        strategy=chosen,
        files=files,
        failures=good if failed else None,
        reasons=reasons,
    )
    merged.write.mode("overwrite").parquet(f"{work}/merged")
    merged = spark.read.schema(MERGED).parquet(f"{work}/merged")
    columns = ["value", "reason", "detail"]
    left_out = merged.where("reason IS NOT NULL").select(columns).unionByName(bad.select(columns))
    rejected = given.rejects or f"{work}/rejects"
    counted = write_rejects(left_out, rejected)
    found = merged.agg(F.coalesce(F.sum("rows"), F.lit(0)), F.count("mask")).collect()[0]
    read = int(found[0]) + bad.count()
    given.max_rejects.check(counted, read, rejected)
    lifted = steps.lift(merged, batches)
    if totals:
        lifted = values.with_brought(lifted, done_well)
    return _Coalesced(chosen, read, counted, failed, int(found[1]), lifted, good, valid, totals)


def _fail(found: _Coalesced, service: Service, tasks: int, folder: str, written: Written) -> DataFrame:
    """Fail items at once, before any item is acknowledged, and keep the results."""
    spread = found.good.repartition(tasks, "batch_id", F.shiftright("ordinal", 18))
    columns = ["batch_id", "ordinal", "item", "why", "values"]
    ordered = spread.sortWithinPartitions("batch_id", "ordinal").select(*columns)
    task = write_failures_task(service, found.totals, written.count)
    ordered.mapInArrow(task, RESULTS).write.mode("overwrite").parquet(folder)
    return found.good.sparkSession.read.schema(RESULTS).parquet(folder)


def _merged(
    acks: DataFrame,
    schema: InputSchema,
    batches: BatchReader,
    *,
    strategy: Strategy,
    files: ParquetFiles | None,
    failures: DataFrame | None,
    reasons: bool,
) -> DataFrame:
    """Coalesce to ``MERGED``. Failures are merged too, to find items that are both done and failed."""
    if strategy is Strategy.PARQUET and files:
        pages = steps.pages_from_files(acks.sparkSession, files, schema, batches, reasons=reasons)
    elif strategy is Strategy.SQL:
        pages = pages_from_words(normalize(acks, schema), schema, batches)
    else:
        pages = steps.pages_from_rows(normalize(acks, schema), schema, batches)
    if failures is not None:
        pages = pages.unionByName(steps.pages_from_rows(failures, schema, batches, failed=True))
    return steps.merge(pages, schema, batches)
