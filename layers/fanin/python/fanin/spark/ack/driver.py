"""The whole of an acknowledgement in bulk: coalesce, write the rejects, fail, mark, and say what was done."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any, Final

from pyspark.sql import DataFrame, SparkSession, Window
from pyspark.sql import functions as F  # noqa: N812  as all of Spark's documentation calls it

from fanin.domain.limits import MAX_REASON
from fanin.spark.ack.coalescer import TWICE
from fanin.spark.ack.input_schema import MERGED, Form
from fanin.spark.ack.issued import Batches, Stored
from fanin.spark.ack.ledger_writes import RESULTS, placed, totals, write_failures, write_marks
from fanin.spark.ack.parquet_files import Files
from fanin.spark.ack.sql_items import resolve
from fanin.spark.ack.sql_words import pages_of_words
from fanin.spark.ack.strategy import (
    Way,
    form_of,
    marks,
    merged,
    normal,
    pages_of_files,
    pages_of_rows,
    readable,
    way_of,
)
from fanin.spark.runtime import rejects
from fanin.spark.runtime.rejects import Reason
from fanin.spark.runtime.service import Service

_FAILURES: Final = (
    "batch_id long, ordinal long, item string, raw string, value string, why string, reason string,"
    " detail string"
)


@dataclass(frozen=True)
class Acknowledged:
    """What a run did.

    Attributes:
        way: how it coalesced.
        rows: of the input.
        distinct: items that they acknowledge.
        failed: items that they fail.
        rejects: rows left out, by reason; repeats are among them.
        first: items that are done now and were not before, of words that were written themselves.
        ranged: items below bits of higher levels that were cleared; some may have been done before.
        duplicates: items that were done before the run.
        late: items left alone because their batch had ended otherwise.
        words: words to clear.
        writes: rows written, with failures, parents and batches; what lost attempts wrote is not in it.
        completed: batches that are complete now, of those that the input names.
    """

    way: Way
    rows: int
    distinct: int
    failed: int
    rejects: dict[str, int] = field(default_factory=dict)
    first: int = 0
    ranged: int = 0
    duplicates: int = 0
    late: int = 0
    words: int = 0
    writes: int = 0
    completed: int = 0

    @property
    def ok(self) -> bool:
        """Whether every row is accounted for."""
        return self.rows == self.distinct + self.failed + sum(self.rejects.values())

    def summary(self) -> dict[str, Any]:
        """For people and for the job."""
        done = self.distinct + self.failed
        each = round(done / self.writes, 3) if self.writes else None
        return {"ok": self.ok, **asdict(self), "acks_per_write": each}


def acknowledge(
    rows: DataFrame,
    service: Service,
    *,
    work: str,
    batch_id: int | None = None,
    files: Files | None = None,
    way: Way | None = None,
    rejected: str | None = None,
    writers: int | None = None,
) -> Acknowledged:
    """Acknowledge, or fail, what the rows of a DataFrame name. It may be repeated after any failure.

    Args:
        rows: with a column ``item``, or ``batch_id`` and ``ordinal``, or ``ordinal``; and perhaps a
            ``reason``: where it is not null, the row is a failure.
        service: the stack.
        work: a folder for what is passed from step to step; what is in it is replaced.
        batch_id: of all rows, for input that has only ordinals.
        files: the Parquet files that the rows are read from, if that is so.
        way: how to coalesce; None chooses.
        rejected: folder of the rejects; ``rejects`` in ``work`` if None.
        writers: tasks that write at a time; as many as Spark runs if None.

    Raises:
        InvalidRequest: the rows name no items.
    """
    spark, batches = rows.sparkSession, Stored(service)
    form = form_of(rows.columns, batch_id)
    reasons = "reason" in rows.columns
    rows = rows.select(*form.columns, *(["reason"] if reasons else []))
    failures = _failures(rows, form, batches, f"{work}/failures") if reasons else _none(spark)
    bad, good = failures.where("reason IS NOT NULL"), failures.where("reason IS NULL")
    failed = good.count() if reasons else 0
    acks = rows.where("reason IS NULL").drop("reason") if reasons else rows
    chosen = way or _choose(acks, form, files)
    coalesced = _merged(
        acks,
        form,
        batches,
        way=chosen,
        files=files,
        failures=good if failed else None,
        reasons=reasons,
    )
    coalesced.write.mode("overwrite").parquet(f"{work}/merged")
    coalesced = spark.read.schema(MERGED).parquet(f"{work}/merged")
    columns = ["value", "reason", "detail"]
    left_out = coalesced.where("reason IS NOT NULL").select(columns).unionByName(bad.select(columns))
    counted = rejects.write(left_out, rejected or f"{work}/rejects")
    many = writers or spark.sparkContext.defaultParallelism
    results = placed(marks(coalesced, batches), many).mapInArrow(write_marks(service), RESULTS)
    if failed:
        results = results.unionByName(_fail(good, service, many, f"{work}/failed"))
    done = totals(results)
    read = coalesced.agg(F.coalesce(F.sum("rows"), F.lit(0))).collect()[0][0]
    named = sum(done[name] for name in ("first", "ranged", "duplicates", "late"))
    return Acknowledged(
        way=chosen,
        rows=int(read) + bad.count(),
        distinct=named - failed,
        failed=failed,
        rejects=counted,
        **done,
    )


def _fail(failures: DataFrame, service: Service, writers: int, folder: str) -> DataFrame:
    """Fail items, before any is acknowledged; what it did is kept, since it must be done by then."""
    spread = failures.repartition(writers, "batch_id", F.shiftright("ordinal", 18))
    ordered = spread.sortWithinPartitions("batch_id", "ordinal").select("batch_id", "ordinal", "item", "why")
    ordered.mapInArrow(write_failures(service), RESULTS).write.mode("overwrite").parquet(folder)
    return failures.sparkSession.read.schema(RESULTS).parquet(folder)


def _choose(acks: DataFrame, form: Form, files: Files | None) -> Way:
    if files and readable(files, form):
        return Way.PARQUET
    return way_of(acks, form)


def _merged(
    acks: DataFrame,
    form: Form,
    batches: Batches,
    *,
    way: Way,
    files: Files | None,
    failures: DataFrame | None,
    reasons: bool,
) -> DataFrame:
    """``MERGED``; failures are merged too, so that what is both is known."""
    if way is Way.PARQUET and files:
        pages = pages_of_files(acks.sparkSession, files, form, batches, reasons=reasons)
    elif way is Way.SQL:
        pages = pages_of_words(normal(acks, form), form, batches)
    else:
        pages = pages_of_rows(normal(acks, form), form, batches)
    if failures is not None:
        pages = pages.unionByName(pages_of_rows(failures, form, batches, failed=True))
    return merged(pages, form, batches)


def _failures(rows: DataFrame, form: Form, batches: Batches, folder: str) -> DataFrame:
    """The rows that fail items, each item once, staged: they are needed four times."""
    why = F.substring(F.col("reason").cast("string"), 1, MAX_REASON)
    named = normal(rows.where("reason IS NOT NULL").withColumn("why", why).drop("reason"), form)
    found = resolve(named, form, batches)
    order = Window.partitionBy("batch_id", "ordinal").orderBy("why", "value")
    repeated = F.col("reason").isNull() & (F.row_number().over(order) > 1)
    told = {
        "detail": F.when(repeated, F.lit(TWICE)).otherwise(F.col("detail")),
        "reason": F.when(repeated, F.lit(Reason.DUPLICATE)).otherwise(F.col("reason")),
    }
    once = found.withColumns(told)
    empty = F.lit(None).cast("string")
    raw, item = (empty, F.col("item")) if form.ids else (F.col("raw").cast("string"), empty)
    staged = once.withColumns({"raw": raw, "item": item})
    names = [column.split()[0] for column in _FAILURES.split(", ")]
    staged.select(*names).write.mode("overwrite").parquet(folder)
    return rows.sparkSession.read.schema(_FAILURES).parquet(folder)


def _none(spark: SparkSession) -> DataFrame:
    return spark.createDataFrame([], _FAILURES)
