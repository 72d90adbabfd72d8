"""How the rows of the input name items, and what these bring: columns, as tasks take them."""

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final, Self

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812  as all of Spark's documentation calls it
from pyspark.sql import types as T  # noqa: N812

from fanin.domain.limits import MAX_REASON
from fanin.domain.totals import MAX_VALUE, check_names
from fanin.errors import InvalidRequest
from fanin.spark.inputs.names import quoted
from fanin.spark.runtime.rejects import SCHEMA as REJECTS
from fanin.spark.runtime.unreadable import LINE, PROBLEM

MAY_BE_WHOLE: Final = (T.IntegralType, T.FractionalType, T.StringType, T.NullType)
_TEXTS: Final = (T.StringType, T.NullType)
ALWAYS_WHOLE: Final = (T.IntegralType, T.NullType)
"""Types of columns that can hold whole numbers, and of those that hold nothing else."""
_INEXACT: Final = {T.FloatType: 1 << 24, T.DoubleType: 1 << 53}
"""The first floating-point number that may stand for another whole number: the next one is rounded to it."""
_TEXT: Final = r"\A-?([0-9]+(\.0+)?|0E-[0-9]+)\z"
"""A whole number as text; Spark before 4.0 writes the decimal 0.00000000 as 0E-8."""


def whole_number(name: str, kind: T.DataType) -> Column:
    """A column as BIGINT; null where it is not a whole number, or not certainly the one that it shows."""
    column = quoted(name)
    if isinstance(kind, ALWAYS_WHOLE):
        return F.col(column).cast(T.LongType())
    if isinstance(kind, (T.FloatType, T.DoubleType)):
        exact = f"{column} = floor({column}) AND abs({column}) < {_INEXACT[type(kind)]}"
        return F.expr(f"CASE WHEN {exact} THEN CAST({column} AS BIGINT) END")
    # Spark compares decimals of different scales with fewer digits than they have, so look at their text.
    digits = f"substring_index(substring_index(CAST({column} AS STRING), '.', 1), 'E', 1)"
    matches = F.col(column).cast("string").rlike(_TEXT)
    return F.when(matches, F.expr(f"try_cast({digits} AS BIGINT)"))


def check_type(name: str, kind: T.DataType, expected: str, types: tuple[type, ...] = MAY_BE_WHOLE) -> None:
    """Refuse a column of none of these types."""
    if not isinstance(kind, types):
        raise InvalidRequest(f"the column {name} has the type {kind.simpleString()}{expected}")


def check_key_type(name: str, kind: T.DataType) -> None:
    """Refuse a column of keys that is not text."""
    check_type(name, kind, ", and keys of items are text; cast it", _TEXTS)


LONGEST: Final = 256  # most characters of a value that are read; ids have less, so what was cut is not an id


@dataclass(frozen=True)
class InputSchema:
    """How the input names items.

    Attributes:
        by_id: by their ids, in a column ``item``; otherwise by ``batch_id`` and ``ordinal``.
        batch_id: the batch of all rows, where the input has only ordinals.
    """

    by_id: bool
    batch_id: int | None = None

    @classmethod
    def of(cls, columns: Iterable[str], batch_id: int | None = None) -> Self:
        """Find out how input with these columns names items."""
        present = set(columns) - {LINE, PROBLEM}
        if present >= set(REJECTS.names):
            raise InvalidRequest(
                f"the input has the columns of rejects, {', '.join(REJECTS.names)}: their reason says why a"
                " row was left out, and not that its item failed. Rename value to item once it is mended, and"
                " drop reason and detail; if your data has these columns itself, rename or drop detail"
            )
        if batch_id is None and "item" in present:
            return cls(by_id=True)
        if "ordinal" in present and (batch_id is not None or "batch_id" in present):
            return cls(by_id=False, batch_id=batch_id)
        has = f"the input has: {', '.join(sorted(present))}"
        if batch_id is not None:
            raise InvalidRequest(
                f"with a batch, rows name items in a column ordinal; {has}. Where they name items otherwise,"
                " leave out the batch (--batch, in Python batch_id)"
            )
        raise InvalidRequest(
            "rows name items in a column item, or in columns batch_id and ordinal, or in a column ordinal"
            f" alone if you name the batch of all rows (--batch, in Python batch_id); {has}"
        )

    @property
    def columns(self) -> list[str]:
        """The columns that name an item, as the input has them."""
        if self.by_id:
            return ["item"]
        return ["ordinal"] if self.batch_id is not None else ["batch_id", "ordinal"]

    def check_types(self, types: T.StructType) -> None:
        """Refuse a column of which every row would be left out, or would name an item that nobody meant."""
        expected = (
            ", and item ids are text, as they were in the messages; cast the column to text"
            if self.by_id
            else ", and batches and ordinals are whole numbers: integers, decimals, floating-point numbers or"
            " text; give the column such a type"
        )
        for name in self.columns:
            check_type(name, types[name].dataType, expected, _TEXTS if self.by_id else MAY_BE_WHOLE)

    def row_json(self, batch_id: int | None, ordinal: int | None) -> str:
        """A row that names its item by ordinal, as JSON with the columns that the input has."""
        row = {} if self.batch_id is not None else {"batch_id": batch_id}
        return json.dumps({**row, "ordinal": ordinal})


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
    given = {} if schema.batch_id is None else {"batch_id": F.lit(schema.batch_id).cast(T.LongType())}
    return rows.withColumns({"raw": raw, **numbers, **given})


def _bounded_json(rows: DataFrame, schema: InputSchema) -> Column:
    """A row that names no item, as JSON; of texts as much as of ids."""
    texts = {name for name in schema.columns if isinstance(rows.schema[name].dataType, T.StringType)}
    shown = {name: F.substring(name, 1, LONGEST) if name in texts else F.col(name) for name in schema.columns}
    columns = (column.alias(name) for name, column in shown.items())
    return F.to_json(F.struct(*columns), {"ignoreNullFields": "false"})


TAKEN: Final = ("item", "batch_id", "ordinal", "reason")
"""Columns that mean something else, so that no total can be read from them."""


def check_columns(totals: Sequence[str], columns: T.StructType) -> tuple[str, ...]:
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
