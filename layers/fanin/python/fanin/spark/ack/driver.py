"""Acknowledging in bulk, step by step: coalesce, fail, mark, and add up what was done."""

import math
from collections.abc import Sequence
from contextlib import nullcontext, suppress
from os import PathLike
from typing import Any, Final, NamedTuple

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812  as all of Spark's documentation calls it

from fanin.domain.limits import shown
from fanin.errors import InvalidRequest
from fanin.spark.ack.coalescing import Coalesced, Given, acknowledge_few, coalesce, given_of
from fanin.spark.ack.forecast import Forecast, forecast_of, throughput_of_table, words_above
from fanin.spark.ack.ledger_writes import (
    FAILURE,
    ITEMS,
    RESULTS,
    Acknowledged,
    fail,
    mark,
    partition_marks,
    sum_results,
    write_task,
)
from fanin.spark.inputs.formats import Dataset
from fanin.spark.runtime.arrow import Task
from fanin.spark.runtime.datasets import replace_dataset
from fanin.spark.runtime.progress import JobProgress
from fanin.spark.runtime.rejects import RejectLimit
from fanin.spark.runtime.service import Service
from fanin.spark.runtime.session import most_tasks

_LEAST: Final = 1_000  # words or failures that are worth a task: one call, or a few
_MOST: Final = 25_000  # words after which a task says what it has done: a minute's work, if it is alone
_STEADY: Final = 200.0  # writes a second of a task with part of a core, so that a rate needs few at a time


def acknowledge(
    rows: DataFrame | Dataset,
    service: Service | None = None,
    *,
    work: str | PathLike[str],
    batch_id: int | None = None,
    ordinals: bool = False,
    rejects: str | PathLike[str] | None = None,
    totals: Sequence[str] = (),
    max_rejects: int | str | RejectLimit | None = None,
    max_writes_per_second: float | None = None,
    progress: bool = False,
) -> Acknowledged:
    """Acknowledge, or fail, the items that rows name; safe to repeat after any failure.

    A run that is repeated leaves out what is done. Tasks wait for a table that refuses writes, for ten to
    twenty minutes while it takes none, and find the rate that it takes.

    Example:
        >>> done = acknowledge(rows, work="s3://lake/runs/1/ack")  # doctest: +SKIP
        >>> done.ok, done.first, done.rejects  # doctest: +SKIP

    Args:
        rows: a DataFrame, or a ``Dataset``, which says where the rows are and whose Parquet files tasks read
            themselves, twice as fast. With a column ``item``, or ``batch_id`` and ``ordinal``, or
            ``ordinal``; and perhaps a ``reason``: where that is not null, the item has failed.
        service: the stack; by default the one that the environment names.
        work: a folder for what steps pass to each other; the datasets of an earlier run in it are replaced.
        batch_id: the batch of all rows, for input that has only ordinals.
        ordinals: of a JSON dataset, whether its objects have ``batch_id`` and ``ordinal``.
        rejects: folder for the rows that are left out; ``rejects`` in ``work`` if None.
        totals: names of totals of the batches; each is a column with what the items bring to it, whole
            numbers within ±2⁵³, or null for nothing. Values count with the first acknowledgement of their
            item. Rows with other values are rejects, and their items are left alone.
        max_rejects: how many rows may be left out, 100 or ``"2.5%"``; by default not all of them.
        max_writes_per_second: write units a second that all tasks together send at most; None for as many as
            the table takes.
        progress: whether to say on standard error how far it is.

    Raises:
        InvalidRequest: an argument is not what it should be; the columns name no items, two have the same
            name but for its case, a total has no column, or it is of another type; the session is one of
            Spark Connect; or what would be replaced is not of an earlier run.
        TooManyRejects: too many rows are left out; no item was acknowledged or failed.
    """
    per_second = check_rate(max_writes_per_second)
    given = given_of("acknowledge", rows, service, work, rejects, batch_id, totals, max_rejects, ordinals)
    few = acknowledge_few(given) if given.small and per_second is None else None
    return acknowledge_many(given, per_second, progress=progress) if few is None else few


def acknowledge_many(
    given: Given, per_second: float | None = None, *, progress: bool = False
) -> Acknowledged:
    """Acknowledge, or fail, the items that any number of rows name, in tasks."""
    spark, found = given.rows.sparkSession, coalesce(given)
    count, totals = spark.sparkContext.accumulator(0), list(found.totals)
    share = share_writes(found.words, most_tasks(spark), per_second)
    paced = given.service.paced(share.writes_per_second)
    marks = partition_marks(found.merged, share.tasks)
    results = marks.mapInArrow(write_task(mark, paced, totals, count), RESULTS)
    # Those that were done before count, too.
    what = "words and failures" if found.failed else "words"
    said = JobProgress(what, found.words + found.failed, lambda: count.value) if progress else nullcontext()
    with said:
        if found.failed:
            told = _failed(found, share.tasks_for(found.failed), write_task(fail, paced, totals, count))
            results = results.unionByName(replace_dataset(told, f"{given.work}/failed"))
        done = sum_results(results)
    distinct = sum(done[name] for name in ITEMS) - found.failed
    return Acknowledged(found.rows, distinct, found.failed, found.rejects, **done, totals=found.totals)


def forecast(
    rows: DataFrame | Dataset,
    service: Service | None = None,
    *,
    work: str | PathLike[str],
    batch_id: int | None = None,
    ordinals: bool = False,
    rejects: str | PathLike[str] | None = None,
    totals: Sequence[str] = (),
    max_rejects: int | str | RejectLimit | None = None,
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
        ordinals: of a JSON dataset, whether its objects have ``batch_id`` and ``ordinal``.
        rejects: folder for the rows that are left out.
        totals: names of totals of the batches.
        max_rejects: how many rows may be left out.
        max_writes_per_second: write units a second; None for the limit of the table.

    Raises:
        InvalidRequest, TooManyRejects: as ``acknowledge``.
    """
    per_second = check_rate(max_writes_per_second)
    given = given_of("forecast", rows, service, work, rejects, batch_id, totals, max_rejects, ordinals)
    found, region = coalesce(given), given.service.settings().defaults.region
    table = throughput_of_table(given.service)
    return forecast_of(words_above(found.merged), found, region=region, table=table, per_second=per_second)


def _failed(found: Coalesced, tasks: int, task: Task) -> DataFrame:
    """The items that fail, a row each, handed to tasks; they are failed before any item is acknowledged."""
    failures = found.merged.where("why IS NOT NULL").select(*FAILURE.names)
    spread = failures.repartition(tasks, "batch_id", F.shiftright("number", 18))
    return spread.sortWithinPartitions("batch_id", "number").mapInArrow(task, RESULTS)


class WriteShare(NamedTuple):
    """How writes are divided among tasks, of which ``at_once`` run at a time, at most."""

    tasks: int
    at_once: int
    writes_per_second: float | None

    def tasks_for(self, writes: int) -> int:
        """How many tasks make so many other writes."""
        if self.writes_per_second is not None:
            return min(self.at_once, self.tasks)  # the rate of each was divided among so many
        return max(1, min(self.at_once, -(-writes // _LEAST)))


def check_rate(per_second: Any) -> float | None:
    """Read how fast tasks write; refuse what would fail only when everything is coalesced."""
    if per_second is None:
        return None
    with suppress(TypeError, ValueError):
        if 1 <= (rate := float(per_second)) < math.inf:
            return rate
    raise InvalidRequest(
        f"max_writes_per_second must be a number of at least 1, not {shown(per_second)}; leave it"
        " out for no limit"
    )


def share_writes(words: int, most: int, per_second: float | None) -> WriteShare:
    """Divide the writes of a run among tasks."""
    at_once = most if per_second is None else max(1, min(most, int(per_second / _STEADY)))
    tasks = max(min(at_once, -(-words // _LEAST)), -(-words // _MOST), 1)
    if at_once < most:
        tasks = at_once  # nothing but the number of tasks keeps more from running
    return WriteShare(tasks, at_once, per_second / min(at_once, tasks) if per_second else None)
