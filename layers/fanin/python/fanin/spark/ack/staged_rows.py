"""Rows that are looked at one by one before anything is written: failures, and all rows of a run with totals.

They are resolved to items in Spark SQL and staged, since several steps read them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F  # noqa: N812  as all of Spark's documentation calls it
from pyspark.sql.types import LongType, StructType

from fanin.domain.limits import MAX_REASON
from fanin.domain.totals import MAX_VALUE, check_names
from fanin.errors import InvalidRequest
from fanin.spark.ack.coalescer import REPEATED
from fanin.spark.ack.input_schema import MAY_BE_WHOLE, InputSchema, whole_number
from fanin.spark.ack.issued import BatchReader
from fanin.spark.ack.sql_items import normalize, resolve
from fanin.spark.runtime.datasets import replace_dataset
from fanin.spark.runtime.rejects import Reason
from fanin.spark.runtime.unreadable import not_utf8

TAKEN: Final = ("item", "batch_id", "ordinal", "reason")
"""Columns that mean something else, so that no total can be read from them."""
VALUES: Final = "array<bigint>"
"""A value for each total of the run, in their order; null where the item brings nothing to it."""
BROUGHT: Final = "brought"
"""Column of marks: of the items of a word that bring something, their ordinal followed by their values."""
_SHOWN: Final = 40
"""Most characters of a value in the detail of a reject."""


def check_columns(totals: Sequence[str], columns: StructType) -> tuple[str, ...]:
    """Return the names of the totals, if the input has a column for each.

    Raises:
        InvalidRequest: they are no names of totals, or a column is missing or cannot hold whole numbers.
    """
    names = check_names(totals)
    for name in names:
        if name in TAKEN:
            raise InvalidRequest(
                f"the column {name} does not hold a total: it says which item a row is for, or why it failed"
            )
        if name not in columns.names:
            raise InvalidRequest(
                f"the input has no column {name} with what items bring to the total {name}; it has:"
                f" {', '.join(sorted(columns.names))}"
            )
        kind = columns[name].dataType
        if not isinstance(kind, MAY_BE_WHOLE):
            raise InvalidRequest(
                f"the column {name} has the type {kind.simpleString()}: what items bring to a total are whole"
                " numbers"
            )
    return names


def with_values(rows: DataFrame, totals: Sequence[str]) -> DataFrame:
    """Read what each row's item brings.

    Returns:
        The rows without these columns, and with ``values``; and with ``odd``, which says what is wrong with
        them, or is null. Both are null if there are no totals.
    """
    if not totals:
        return rows.withColumns({"values": F.lit(None).cast(VALUES), "odd": F.lit(None).cast("string")})
    numbers = {name: whole_number(name, rows.schema[name].dataType) for name in totals}
    odd = [
        F.when(
            F.col(name).isNotNull() & ~F.coalesce(number.between(-MAX_VALUE, MAX_VALUE), F.lit(False)),
            F.concat(
                F.lit(f"total {name} is not a whole number within ±2⁵³: "),
                F.substring(F.col(name).cast("string"), 1, _SHOWN),
            ),
        )
        for name, number in numbers.items()
    ]
    read = rows.withColumns({"_values": F.array(*numbers.values()), "_odd": F.coalesce(*odd, F.lit(None))})
    return read.drop(*totals).withColumnsRenamed({"_values": "values", "_odd": "odd"})


def counted(values: str) -> Column:
    """Values as they are added: nothing counts as 0."""
    return F.transform(values, lambda value: F.coalesce(value, F.lit(0).cast(LongType())))


def with_brought(marks: DataFrame, rows: DataFrame) -> DataFrame:
    """Give marks what their items bring.

    Args:
        marks: rows of ``MARKS``, each word once. Those of batches with totals are on level 0.
        rows: ``batch_id``, ``ordinal`` and ``values``, each item once.

    Returns:
        The marks with ``BROUGHT``, which is null if their items bring nothing.
    """
    bringing = rows.where(F.exists("values", lambda value: value.isNotNull()))
    each = bringing.select(
        "batch_id",
        F.lit(0).alias("level"),
        F.shiftright("ordinal", 6).alias("number"),
        F.concat(F.array("ordinal"), "values").alias("one"),
    )
    words = each.groupBy("batch_id", "level", "number").agg(F.collect_list("one").alias(BROUGHT))
    return marks.join(words, ["batch_id", "level", "number"], "left").select(*marks.columns, BROUGHT)


def sums(rows: DataFrame, totals: Sequence[str]) -> dict[str, int]:
    """The sum of each total over rows with ``values``."""
    if not totals:
        return {}
    added = (F.sum(F.col("values")[place].cast("decimal(38,0)")) for place in range(len(totals)))
    found = rows.agg(*added).collect()[0]
    return {name: int(number or 0) for name, number in zip(totals, found, strict=True)}


def judge_values(totals: Sequence[str]) -> tuple[Column, Column]:
    """Why rows are left out because of what their items bring: reason and detail, null where all is well.

    It is for rows with ``values``, ``odd`` and ``totals``.
    """
    missing = (
        F.when(F.col("values")[place].isNotNull() & ~F.array_contains("totals", name), F.lit(name))
        for place, name in enumerate(totals)
    )
    unknown = F.coalesce(*missing, F.lit(None).cast("string"))
    reason = F.when(F.col("odd").isNotNull(), Reason.MALFORMED).when(unknown.isNotNull(), Reason.FOREIGN)
    detail = F.coalesce("odd", F.format_string("batch %d has no total %s", "batch_id", unknown))
    return reason, F.when(reason.isNotNull(), detail)


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
