"""Items as Spark SQL sees them: names, numbers, and which of them were issued.

They serve rows that are looked at one by one; ``numpy_items`` parses the ids of all others in numpy.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812  as all of Spark's documentation calls it
from pyspark.sql.types import LongType, StringType

from fanin.domain.ids import Block
from fanin.spark.ack.input_schema import ALWAYS_WHOLE, LONGEST, InputSchema, whole_number
from fanin.spark.ack.issued import BatchReader, Found, IssuedItems, Refused
from fanin.spark.runtime.arrow import ArrowBatches, Task
from fanin.spark.runtime.lookups import looked_up
from fanin.spark.runtime.rejects import Reason
from fanin.spark.runtime.unreadable import decoded

_INDEXED: Final = r"\A(?s:.*):(?:0|[1-9][0-9]{0,9})\z"
_SCHEMA: Final = pa.schema(
    [
        ("name", pa.string()),
        ("batch_id", pa.int64()),
        ("first", pa.int64()),
        ("size", pa.int64()),
        ("reason", pa.string()),
        ("detail", pa.string()),
        ("totals", pa.list_(pa.string())),
    ]
)
_NAMES: Final = pa.schema(list(_SCHEMA)[:1])


def normalize(rows: DataFrame, schema: InputSchema) -> DataFrame:
    """Give the columns that name items the types that all other functions take.

    Returns:
        ``item``, as text. Or ``batch_id`` and ``ordinal`` as BIGINT, null where they are not whole numbers,
        and ``raw``: such a row as JSON. ``raw`` has the type VOID if all columns have whole numbers.

    Raises:
        InvalidRequest: a column has a type that cannot name items.
    """
    schema.check_types(rows.schema)
    if schema.by_id:
        text = F.col("item").cast("string")
        # Spark walks over all characters to cut a text; one of so few bytes needs no cut.
        short = F.octet_length(text) <= LONGEST
        return rows.withColumn("item", F.when(short, text).otherwise(F.substring(text, 1, LONGEST)))
    kinds = {name: rows.schema[name].dataType for name in schema.columns}
    numbers = {name: whole_number(name, kind) for name, kind in kinds.items()}
    raw = F.lit(None)
    if others := [name for name, kind in kinds.items() if not isinstance(kind, ALWAYS_WHOLE)]:
        ragged = [F.col(name).isNotNull() & numbers[name].isNull() for name in others]
        raw = F.when(ragged[0] | ragged[-1], _bounded_json(rows, schema))
    given = {} if schema.batch_id is None else {"batch_id": F.lit(schema.batch_id).cast(LongType())}
    return rows.withColumns({"raw": raw, **numbers, **given})


def resolve(rows: DataFrame, schema: InputSchema, batches: BatchReader) -> DataFrame:
    """Find the items that rows name. Rows are evaluated once; tasks check each name once a page of rows.

    Args:
        rows: with the columns that ``normalize`` gives, and any others.
        schema: how they name items.
        batches: where tasks read batches.

    Returns:
        The rows with ``batch_id`` and ``ordinal``, or with a ``reason`` and a ``detail`` why there is no such
        item; and with ``value``, the row as it came, and ``totals``, the names of the totals of the batch.
    """
    split = _split_ids(rows) if schema.by_id else _split_ordinals(rows, schema)
    block = looked_up(find_blocks_task(batches, schema), _NAMES, _SCHEMA, [F.col("name")])
    found = split.withColumn("_block", block).select("*", "_block.*").drop("_block")
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


def find_blocks_task(batches: BatchReader, schema: InputSchema) -> Task:
    """Make the function of a task that finds the blocks of items that names stand for.

    Returns:
        A function that takes ``name`` and gives ``name``, ``batch_id``, ``first``, ``size`` and ``totals``;
        or ``name``, ``reason`` and ``detail`` of names that are refused.
    """

    def run(records: Iterable[ArrowBatches]) -> Iterator[ArrowBatches]:
        issued = IssuedItems(batches)
        for record in records:
            names = record.column(0).to_pylist()
            if schema.by_id:
                found = issued.blocks(names)
            else:
                sizes = issued.sizes({int(name): 0 for name in names})
                counts = [(int(name), sizes[int(name)]) for name in names]
                found = [n if isinstance(n, Refused) else Block(b, 0, n, 0) for b, n in counts]
            rows = [{"name": name, **_row(block, issued)} for name, block in zip(names, found, strict=True)]
            yield pa.RecordBatch.from_pylist(rows, schema=_SCHEMA)

    return run


def _row(found: Found, issued: IssuedItems) -> dict[str, str | int | list[str]]:
    if isinstance(found, Refused):
        return {"reason": found.reason, "detail": found.detail}
    totals = list(issued.totals(found.batch_id))
    return {"batch_id": found.batch_id, "first": found.first, "size": found.size, "totals": totals}


def _split_ids(rows: DataFrame) -> DataFrame:
    """Split item ids at their last colon.

    Returns:
        The rows with ``name``, the ``<batch id>:<group id>`` of the item's id, and ``index``, its number in
        that group; both are null where the row names no item. Also ``value``, the row as it came, and
        ``empty``, whether it is null.
    """
    rows = rows.withColumn("item", decoded(F.col("item")))  # or Python could not read its name
    index = F.substring_index("item", ":", -1)
    name = F.expr("substring(item, 1, length(item) - length(substring_index(item, ':', -1)) - 1)")
    indexed = F.col("item").rlike(_INDEXED)
    # A cast in a branch that is not taken does not fail, with ANSI on or off.
    number = F.when(indexed, index).cast(LongType())
    item = F.col("item")
    return rows.withColumns(
        {"name": F.when(indexed, name), "index": number, "value": item, "empty": item.isNull()}
    )


def _split_ordinals(rows: DataFrame, schema: InputSchema) -> DataFrame:
    """What ``_split_ids`` gives, of rows with batches and ordinals; ``name`` is the batch."""
    whole = F.col("ordinal").isNotNull() & F.col("batch_id").isNotNull()
    row = F.to_json(F.struct(*schema.columns), {"ignoreNullFields": "false"})  # a null stays a null
    named = rows.withColumns(
        {
            "name": F.when(whole, F.col("batch_id").cast("string")),
            "value": F.coalesce("raw", row),
            "empty": F.col("raw").isNull(),
        }
    )
    return named.withColumnRenamed("ordinal", "index").drop("batch_id")


def _bounded_json(rows: DataFrame, schema: InputSchema) -> Column:
    """A row that names no item, as JSON; of texts as much as of ids."""
    columns = [
        F.substring(name, 1, LONGEST).alias(name)
        if isinstance(rows.schema[name].dataType, StringType)
        else F.col(name)
        for name in schema.columns
    ]
    return F.to_json(F.struct(*columns), {"ignoreNullFields": "false"})
