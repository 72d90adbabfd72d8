"""Item ids in Spark SQL, and which of them were issued; ``numpy_items`` has the same in numpy."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Final

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812  as all of Spark's documentation calls it
from pyspark.sql.types import LongType

from fanin.domain.ids import Block
from fanin.spark.ack.input_schema import Form, Records
from fanin.spark.ack.issued import Batches, Issued, Refused
from fanin.spark.runtime.rejects import Reason

_INDEXED: Final = r"\A(?s:.*):(?:0|[1-9][0-9]{0,9})\z"
_BLOCKS: Final = "name string, batch_id long, first long, size long, reason string, detail string"
_SCHEMA: Final = pa.schema(
    [
        ("name", pa.string()),
        ("batch_id", pa.int64()),
        ("first", pa.int64()),
        ("size", pa.int64()),
        ("reason", pa.string()),
        ("detail", pa.string()),
    ]
)


def _parsed(rows: DataFrame) -> DataFrame:
    """Take item ids apart at their last colon, without asking whether they were issued."""
    index = F.substring_index("item", ":", -1)
    name = F.expr("substring(item, 1, length(item) - length(substring_index(item, ':', -1)) - 1)")
    indexed = F.col("item").rlike(_INDEXED)
    # A cast in a branch that is not taken does not fail, with ANSI on or off.
    place = F.when(indexed, index).cast(LongType())
    return rows.withColumns({"name": F.when(indexed, name), "index": place})


def named(rows: DataFrame, form: Form) -> DataFrame:
    """What rows name, without asking whether the service issued it.

    Args:
        rows: with the columns that ``normal`` gives, and any others.
        form: how they name items.

    Returns:
        The rows with ``name``, the ``<batch id>:<group id>`` of their group of ids, or the batch; ``index``,
        the item's number in it; both null where the row names no item. And ``value``, the row as it came,
        and whether it is ``empty``.
    """
    if form.ids:
        return _parsed(rows).withColumns({"value": F.col("item"), "empty": F.col("item").isNull()})
    json = F.to_json(F.struct(*form.columns), {"ignoreNullFields": "false"})
    whole = F.col("ordinal").isNotNull() & F.col("batch_id").isNotNull()
    told = rows.withColumns(
        {
            "name": F.when(whole, F.col("batch_id")),
            "value": F.coalesce("raw", json),
            "empty": F.col("raw").isNull(),
        }
    )
    return told.withColumnRenamed("ordinal", "index").drop("batch_id")


def resolve(rows: DataFrame, form: Form, batches: Batches) -> DataFrame:
    """Find the items that rows name.

    Each prefix of item ids, or batch, is looked at once, in tasks.

    Args:
        rows: with the columns that ``normal`` gives, and any others.
        form: how they name items.
        batches: where they are read.

    Returns:
        The rows with ``batch_id`` and ``ordinal``; or with a ``reason`` and ``detail`` why there is no such
        item; and ``value``, the row as it came.
    """
    told = named(rows, form).withColumn("name", F.col("name").cast("string"))
    if form.batch_id is None:
        names = told.where("name IS NOT NULL").select("name").distinct()
    else:
        names = rows.sparkSession.createDataFrame([(str(form.batch_id),)], "name string")
    blocks = names.mapInArrow(_look(batches, form), _BLOCKS)
    found = told.join(blocks, "name", "left")
    inside = (F.col("index") >= 0) & (F.col("index") < F.col("size"))
    reason = (
        F.when(F.col("name").isNull() & F.col("empty"), Reason.NULL)
        .when(F.col("name").isNull(), Reason.MALFORMED)
        .when(F.col("reason").isNotNull(), F.col("reason"))
        .when(~inside, Reason.FOREIGN)
    )
    detail = F.coalesce(
        F.col("detail"),
        F.when(F.col("name").isNull(), F.lit("it names no item")),
        F.when(~inside, F.format_string("there are %d items", "size")),
    )
    checked = found.withColumns({"reason": reason, "detail": detail})
    ordinal = F.when(F.col("reason").isNull(), F.col("first") + F.col("index"))
    return checked.withColumn("ordinal", ordinal).drop("name", "first", "size", "index", "empty")


def _look(batches: Batches, form: Form) -> Callable[[Iterable[Records]], Iterator[Records]]:
    def run(records: Iterable[Records]) -> Iterator[Records]:
        issued = Issued(batches)
        for record in records:
            names = record.column(0).to_pylist()
            if form.ids:
                found = issued.blocks(names)
            else:
                items = issued.items({int(name): 0 for name in names})
                counts = [(int(name), items[int(name)]) for name in names]
                found = [n if isinstance(n, Refused) else Block(b, 0, n, 0) for b, n in counts]
            rows = [
                (name, None, None, None, block.reason, block.detail)
                if isinstance(block, Refused)
                else (name, block.batch_id, block.first, block.size, None, None)
                for name, block in zip(names, found, strict=True)
            ]
            columns = [
                pa.array(column, kind)
                for column, kind in zip(zip(*rows, strict=True), _SCHEMA.types, strict=True)
            ]
            if rows:
                yield pa.RecordBatch.from_arrays(columns, schema=_SCHEMA)

    return run
