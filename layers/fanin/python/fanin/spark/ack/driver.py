"""Acknowledging in bulk: coalesce, fail, mark, and add up what was done; or say what that would cost."""

import math
from collections.abc import Sequence
from contextlib import nullcontext, suppress
from dataclasses import dataclass, field
from functools import reduce
from operator import add
from os import PathLike
from typing import Any, Final, NamedTuple

from botocore.exceptions import ClientError
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812  as all of Spark's documentation calls it

from fanin.adapters.aws import translated
from fanin.domain import ids
from fanin.domain.costs import failure_writes
from fanin.domain.limits import shown
from fanin.domain.prices import prices_or_default
from fanin.domain.tree import Tree
from fanin.errors import AccessDenied, InvalidRequest, NotConfigured
from fanin.spark.ack.coalescing import Coalesced, Given, acknowledge_few, coalesce, given_of
from fanin.spark.ack.ledger_writes import ITEMS, Acknowledged, sum_results, write_failures, write_marks
from fanin.spark.inputs.formats import Dataset
from fanin.spark.runtime.datasets import replace_dataset
from fanin.spark.runtime.progress import JobProgress
from fanin.spark.runtime.rejects import RejectLimit
from fanin.spark.runtime.results import Result
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
    results = write_marks(found.merged, share.tasks, paced, totals, count)
    # Those that were done before count, too.
    what = "words and failures" if found.failed else "words"
    said = JobProgress(what, found.words + found.failed, lambda: count.value) if progress else nullcontext()
    with said:
        if found.failed:
            tasks = share.tasks_for(found.failed)
            told = write_failures(found.merged, tasks, paced, totals, count)
            results = results.unionByName(replace_dataset(told, f"{given.work}/failed"))
        done = sum_results(results)
    distinct = sum(done[name] for name in ITEMS) - found.failed
    return Acknowledged(found.rows, distinct, found.failed, found.rejects, **done, totals=found.totals)


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


QUOTA: Final = 40_000  # write units a second of an on-demand table, unless the account's quota was raised
WARM: Final = 4_000  # write units a second that a new on-demand table takes at once
_GROWS: Final = 1_800  # seconds after which an on-demand table takes twice as much as it was sent before
_LEVELS: Final = range(1, Tree().root_level(ids.MAX_ITEMS) + 1)


@dataclass(frozen=True)
class Forecast(Result):
    """What a run would do, if nothing of it was done before.

    Attributes:
        rows: of the input.
        failed: items that the rows fail.
        rejects: rows that would be left out, by reason.
        words: words to clear.
        above: words above them, which are written when one below is finished: at most, and about.
        writes: write units, at most.
        dollars: of these writes.
        price_region: region whose list price that is.
        price_assumed: whether the price of the table's own region is not known.
        writes_per_second: at which it would write in the end: what it was told, or the limit of the table.
        warm_writes_per_second: that the table takes at once; an on-demand table then doubles it every half
            hour.
        hours: that this takes.
    """

    rows: int
    failed: int
    rejects: dict[str, int] = field(default_factory=dict)
    words: int = 0
    above: int = 0
    writes: int = 0
    dollars: float = 0.0
    price_region: str = ""
    price_assumed: bool = False
    writes_per_second: float = QUOTA
    warm_writes_per_second: float = WARM
    hours: float = 0.0

    ok, detail = True, None

    def summary(self) -> dict[str, Any]:
        rounded = {"dollars": round(self.dollars, 4), "hours": round(self.hours, 3)}
        return {"ok": True, "dry_run": True, **super().summary(), **rounded}


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

    It takes the arguments of ``acknowledge``, and raises what that raises.
    """
    per_second = check_rate(max_writes_per_second)
    given = given_of("forecast", rows, service, work, rejects, batch_id, totals, max_rejects, ordinals)
    found, region = coalesce(given), given.service.settings().defaults.region
    table = throughput_of_table(given.service)
    return forecast_of(words_above(found.merged), found, region=region, table=table, per_second=per_second)


class Throughput(NamedTuple):
    """How fast a table takes writes."""

    limit: float
    warm: float


def words_above(merged: DataFrame) -> int:
    """About how many words there are above those of ``MERGED``.

    They are counted as if every word had one on every level; a root has none, so a batch counts up to five
    too many.
    """
    number = "if(level < {0}, struct(batch_id, shiftright(number, 6 * ({0} - level))), null)"
    above = [F.approx_count_distinct(F.expr(number.format(level))) for level in _LEVELS]
    return int(merged.agg(reduce(add, above)).collect()[0][0])


def forecast_of(
    above: int, found: Coalesced, *, region: str, table: Throughput, per_second: float | None
) -> Forecast:
    """Add up what is known of a run."""
    prices = prices_or_default(region)
    most = min(table.limit, per_second or table.limit)
    writes = found.words + above + found.failed * (1 + failure_writes(0))
    return Forecast(
        found.rows,
        found.failed,
        found.rejects,
        words=found.words,
        above=above,
        writes=writes,
        dollars=writes * prices.write / 1e6,
        price_region=prices.region,
        price_assumed=prices.region != region,
        writes_per_second=most,
        warm_writes_per_second=table.warm,
        hours=_seconds(writes, most, table.warm) / 3_600,
    )


def _seconds(writes: int, most: float, warm: float) -> float:
    """How long writes take at a rate that begins with what is warm and doubles up to the most.

    Source: "On-demand capacity mode" in the developer guide of DynamoDB: a table takes twice its previous
    peak, and refuses more within 30 minutes of it.
    """
    rate, seconds, left = min(most, warm), 0.0, float(writes)
    while rate < most and left > rate * _GROWS:
        left -= rate * _GROWS
        seconds += _GROWS
        rate = min(most, 2 * rate)
    return seconds + left / rate


def throughput_of_table(service: Service) -> Throughput:
    """How fast the table of words takes writes: its own limit, or the quota of an account."""
    table = service.settings().words_table
    try:
        with translated():
            described = service.connection().client.describe_table(TableName=table)["Table"]
    except (AccessDenied, NotConfigured, ClientError):
        return Throughput(QUOTA, WARM)
    on_demand = described.get("BillingModeSummary", {}).get("BillingMode") == "PAY_PER_REQUEST"
    provisioned = described.get("ProvisionedThroughput", {}).get("WriteCapacityUnits", 0)
    if provisioned > 0 and not on_demand:
        return Throughput(provisioned, provisioned)
    limit = described.get("OnDemandThroughput", {}).get("MaxWriteRequestUnits", -1)
    warm = described.get("WarmThroughput", {}).get("WriteUnitsPerSecond") or WARM
    # A table that was warmed beyond the usual quota has another one.
    return Throughput(limit if limit > 0 else max(QUOTA, warm), warm)
