"""Rows that are looked at one by one before anything is written: failures, and all rows of a run with totals.

They are resolved to items in Spark SQL and staged, since several steps read them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F  # noqa: N812  as all of Spark's documentation calls it

from fanin.domain.limits import MAX_REASON
from fanin.spark.ack.coalescer import REPEATED
from fanin.spark.ack.input_schema import InputSchema
from fanin.spark.ack.issued import BatchReader
from fanin.spark.ack.sql_items import normalize, resolve
from fanin.spark.ack.values import VALUES, counted, judge_values, with_values
from fanin.spark.runtime.datasets import replace_dataset
from fanin.spark.runtime.rejects import Reason
from fanin.spark.runtime.unreadable import not_utf8

STAGED: Final = (
    "batch_id long, ordinal long, item string, raw string, value string, why string,"
    f" values {VALUES}, reason string, detail string"
)
"""A row of the input. With a ``reason`` it is a reject; else it is the one row of its item that counts, and
the item has failed if there is a ``why``."""
_NOT_TEXT: Final = "the reason has bytes that are not UTF-8"
_CONFLICT: Final = "the input names it more than once, with different values"


def stage_rows(
    rows: DataFrame, schema: InputSchema, batches: BatchReader, folder: str, *, totals: Sequence[str] = ()
) -> DataFrame:
    """Find the items of rows, and the one row of each item that counts.

    Args:
        rows: with the columns that name items, and perhaps ``reason``; and a column for each total.
        schema: how they name items.
        batches: where tasks read batches.
        folder: where the rows are staged.
        totals: that items bring something to.

    Returns:
        Rows of ``STAGED``.
    """
    failed = F.col("reason").cast("string") if "reason" in rows.columns else F.lit(None).cast("string")
    told = rows.withColumn("why", F.substring(failed, 1, MAX_REASON)).drop("reason")
    found = resolve(normalize(with_values(told, totals), schema), schema, batches)
    foreign = F.when(not_utf8(F.col("why")), F.lit(_NOT_TEXT))
    found = _rejected(found, F.when(foreign.isNotNull(), Reason.MALFORMED), foreign)
    if totals:
        found = _rejected(found, *judge_values(totals))
    empty = F.lit(None).cast("string")
    raw, item = (empty, F.col("item")) if schema.by_id else (F.col("raw").cast("string"), empty)
    staged = _once(found, totals).withColumns({"raw": raw, "item": item})
    names = [column.split()[0] for column in STAGED.split(", ")]
    return replace_dataset(staged.select(*names), folder)


def no_rows(frame: DataFrame) -> DataFrame:
    """No row of ``STAGED``, in the session of a DataFrame."""
    return frame.sparkSession.createDataFrame([], STAGED)


def _rejected(found: DataFrame, reason: Column, detail: Column) -> DataFrame:
    """Leave out those rows that have a reason, of which nothing else has left out before."""
    judged = found.withColumns(
        {"_reason": F.coalesce("reason", reason), "_detail": F.coalesce("detail", detail)}
    )
    judged = judged.withColumn("ordinal", F.when(F.col("_reason").isNull(), F.col("ordinal")))
    return judged.drop("reason", "detail").withColumnsRenamed({"_reason": "reason", "_detail": "detail"})


def _once(found: DataFrame, totals: Sequence[str]) -> DataFrame:
    """Let one row of each item count; an item that is both acknowledged and failed has failed."""
    item = Window.partitionBy("batch_id", "ordinal")
    order = item.orderBy(F.col("why").isNull(), "why", "value")
    numbered = found.withColumn("_number", F.row_number().over(order))
    if totals:
        fails = F.max(F.col("why").isNotNull()).over(item)
        numbered = numbered.withColumn("_counts", F.col("why").isNotNull() == fails)
        values = F.when(F.col("_counts"), counted("values"))
        numbered = numbered.withColumn("_conflict", F.min(values).over(item) != F.max(values).over(item))
    else:
        numbered = numbered.withColumn("_conflict", F.lit(False))
    named = F.col("reason").isNull()
    conflict, repeated = named & F.col("_conflict"), named & (F.col("_number") > 1)

    def judged(in_conflict: str, again: str, before: Column) -> Column:
        return F.when(conflict, F.lit(in_conflict)).when(repeated, F.lit(again)).otherwise(before)

    return numbered.withColumns(
        {
            "detail": judged(_CONFLICT, REPEATED, F.col("detail")),
            "reason": judged(Reason.CONFLICTING, Reason.DUPLICATE, F.col("reason")),
        }
    )
