"""Items as Spark SQL sees them: the columns that name them, and what they bring, as tasks take them."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final

import pandas as pd
import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812  as all of Spark's documentation calls it
from pyspark.sql.types import LongType, StringType, StructType

from fanin.domain.limits import MAX_REASON
from fanin.domain.totals import MAX_VALUE, check_names
from fanin.errors import InvalidRequest
from fanin.spark.ack.input_schema import ALWAYS_WHOLE, LONGEST, InputSchema, check_type, whole_number
from fanin.spark.ack.issued import BatchReader, IssuedItems, Refused, find_items
from fanin.spark.ack.schemas import PAGE_SCHEMA
from fanin.spark.runtime.arrow import ArrowBatches, Task, ddl, page
from fanin.spark.runtime.rejects import Reason
from fanin.spark.runtime.unreadable import decoded


def normalize(rows: DataFrame, schema: InputSchema, totals: Sequence[str] = ()) -> DataFrame:
    """Give the columns that name items the types that all other functions take.

    Returns:
        ``item``, as text. Or ``batch_id`` and ``ordinal`` as BIGINT, null where they are not whole numbers,
        and ``raw``: such a row as JSON. ``raw`` has the type VOID if all columns have whole numbers. If there
        is a ``reason``, it is text; if there are totals, their columns become those of ``with_values``.
    """
    schema.check_types(rows.schema)
    if totals:
        rows = with_values(rows, totals)
    if "reason" in rows.columns:
        rows = rows.withColumn("reason", F.substring(F.col("reason").cast("string"), 1, MAX_REASON))
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


ABSENT: Final = -1
"""Stands for a number that is not there: a column of pandas that has nulls would round the others."""


def looked_up(task: Task, keys: Any, found: Any, columns: Iterable[Column]) -> Column:
    """Look up what belongs to some columns, as a structure: null where a key is null or ``ABSENT``.

    Args:
        task: takes pages of different keys, in order, and gives a row for each.
        keys: their ``pyarrow.Schema``.
        found: that of what the task gives: the keys, and then what belongs to them.
        columns: the keys of a row.
    """
    names, more = keys.names, found.names[len(keys.names) :]

    def run(given: pd.DataFrame) -> pd.DataFrame:
        asked = list(zip(*(given[name].tolist() for name in names), strict=True))
        there = sorted({key for key in asked if None not in key and ABSENT not in key})
        rows = [row for some in task([page(keys, there)]) for row in some.to_pylist()] if there else []
        told = {tuple(row[name] for name in names): [row[name] for name in more] for row in rows}
        nothing = [None] * len(more)
        return pd.DataFrame([told.get(key, nothing) for key in asked], columns=more, dtype=object)

    run.__annotations__ = {"given": pd.DataFrame, "return": pd.DataFrame}  # which Spark looks at
    kind = ddl(pa.schema([found.field(name) for name in more]))
    named = (column.alias(name) for column, name in zip(columns, names, strict=True))
    return F.pandas_udf(run, kind)(F.struct(*named))  # type: ignore[attr-defined, no-any-return]


_NAMES: Final = pa.schema([("name", pa.string())])
_ITEMS: Final = pa.schema(
    [*_NAMES, *(PAGE_SCHEMA.field(name) for name in ("batch_id", "ordinal", "reason", "detail"))]
)


def resolve(rows: DataFrame, schema: InputSchema, batches: BatchReader) -> DataFrame:
    """Find the items that rows of ``normalize`` name; rows are evaluated once.

    Returns:
        The rows with ``batch_id`` and ``ordinal``, or with a ``reason`` and a ``detail`` why there is none.
    """

    def find(records: Iterable[ArrowBatches]) -> Iterator[ArrowBatches]:
        issued = IssuedItems(batches)
        for record in records:
            names = record.column(0).to_pylist()
            found = find_items(names, issued, by_id=schema.by_id)
            items = ((None, None, *one) if isinstance(one, Refused) else (*one, None, None) for one in found)
            yield page(_ITEMS, [(name, *item) for name, item in zip(names, items, strict=True)])

    if schema.by_id:
        name = decoded(F.col("item"))  # or Python could not read it
    else:
        name = F.coalesce("raw", F.concat("batch_id", F.lit(":"), "ordinal"))
    item = rows.withColumn("_item", looked_up(find, _NAMES, _ITEMS, [name]))
    found = {name: F.col(f"_item.{name}") for name in _ITEMS.names[1:]}
    for column, empty in (("reason", Reason.NULL.value), ("detail", "it names no item")):
        absent = F.when(F.col("_item.ordinal").isNull(), F.lit(empty))
        found[column] = F.coalesce(F.col(f"_item.{column}"), absent)
    return item.withColumns(found).drop("_item")


def _bounded_json(rows: DataFrame, schema: InputSchema) -> Column:
    """A row that names no item, as JSON; of texts as much as of ids."""
    texts = {name for name in schema.columns if isinstance(rows.schema[name].dataType, StringType)}
    shown = {name: F.substring(name, 1, LONGEST) if name in texts else F.col(name) for name in schema.columns}
    columns = (column.alias(name) for name, column in shown.items())
    return F.to_json(F.struct(*columns), {"ignoreNullFields": "false"})


TAKEN: Final = ("item", "batch_id", "ordinal", "reason")
"""Columns that mean something else, so that no total can be read from them."""


def check_columns(totals: Sequence[str], columns: StructType) -> tuple[str, ...]:
    """Return the names of the totals, if the input has a column for each."""
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
        check_type(name, columns[name].dataType, ": what items bring to a total are whole numbers")
    return names


def with_values(rows: DataFrame, totals: Sequence[str]) -> DataFrame:
    """Read what each row's item brings.

    Returns:
        The rows without these columns, and with ``values``: one for each total, null for nothing; and with
        ``odd``, which says what is wrong with them, or is null.
    """
    numbers = {name: whole_number(name, rows.schema[name].dataType) for name in totals}
    odd = [
        F.when(
            F.col(name).isNotNull() & ~F.coalesce(number.between(-MAX_VALUE, MAX_VALUE), F.lit(False)),
            F.concat(
                F.lit(f"total {name} is not a whole number within ±2⁵³: "),
                F.substring(F.col(name).cast("string"), 1, 40),
            ),
        )
        for name, number in numbers.items()
    ]
    read = rows.withColumns({"_values": F.array(*numbers.values()), "_odd": F.coalesce(*odd, F.lit(None))})
    return read.drop(*totals).withColumnsRenamed({"_values": "values", "_odd": "odd"})
