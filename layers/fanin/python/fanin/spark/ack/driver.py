"""Acknowledging in bulk, step by step: coalesce, fail, mark, and add up what was done."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812  as all of Spark's documentation calls it

from fanin.spark.ack import values
from fanin.spark.ack.acknowledged import Acknowledged
from fanin.spark.ack.coalescing import Coalesced, Given, coalesce
from fanin.spark.ack.forecast import Forecast, forecast_of, throughput_of_table, words_of
from fanin.spark.ack.ledger_writes import (
    RESULTS,
    partition_marks,
    sum_results,
    write_failures_task,
    write_marks_task,
)
from fanin.spark.ack.parquet_files import ParquetFiles
from fanin.spark.ack.writers import Written, check_writers, share_writers
from fanin.spark.runtime.classic import classic
from fanin.spark.runtime.cluster import most_tasks
from fanin.spark.runtime.datasets import replace_dataset
from fanin.spark.runtime.reject_limit import ANY, RejectLimit
from fanin.spark.runtime.service import Service


def acknowledge(
    rows: DataFrame,
    service: Service,
    *,
    work: str,
    batch_id: int | None = None,
    files: ParquetFiles | None = None,
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
        work: a folder for what steps pass to each other; the datasets of an earlier run in it are replaced.
        batch_id: the batch of all rows, for input that has only ordinals.
        files: the Parquet files that the rows are read from, with ``mergeSchema``; tasks then read them
            themselves, if their columns need no conversion, and twice as fast as through Spark. A run with
            totals leaves them to Spark.
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
            column, or it is of another type; the session is one of Spark Connect; ``writers`` or
            ``max_writes_per_second`` are less than 1; or what would be replaced is not of an earlier run.
        TooManyRejects: too many rows are left out; no item was acknowledged or failed.
    """
    check_writers(writers, max_writes_per_second)
    given = Given(rows, service, work, batch_id, files, rejects, totals, max_rejects)
    found = coalesce(given)
    written = Written(rows.sparkSession, found.words, found.failed, shown=progress)
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
    may write less. The time is that of the table of words; a small cluster may take longer.

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
    classic(rows.sparkSession, "forecast")
    found = coalesce(Given(rows, service, work, batch_id, files, rejects, totals, max_rejects))
    return forecast_of(
        words_of(found.marks),
        rows=found.rows,
        failed=found.failed,
        rejects=found.rejects,
        region=service.settings().defaults.region,
        table=throughput_of_table(service),
        per_second=max_writes_per_second,
    )


def _fail(found: Coalesced, service: Service, tasks: int, folder: str, written: Written) -> DataFrame:
    """Fail items at once, before any item is acknowledged, and keep the results."""
    spread = found.good.repartition(tasks, "batch_id", F.shiftright("ordinal", 18))
    columns = ["batch_id", "ordinal", "item", "why", "values"]
    ordered = spread.sortWithinPartitions("batch_id", "ordinal").select(*columns)
    task = write_failures_task(service, found.totals, written.count)
    return replace_dataset(ordered.mapInArrow(task, RESULTS), folder)
