"""Columns that hold whole numbers: which types may, and which of their values are such numbers."""

from __future__ import annotations

from typing import Final

from pyspark.sql import Column
from pyspark.sql import functions as F  # noqa: N812  as all of Spark's documentation calls it
from pyspark.sql.types import (
    DataType,
    DoubleType,
    FloatType,
    FractionalType,
    IntegralType,
    LongType,
    NullType,
    StringType,
)

from fanin.spark.inputs.names import quoted

MAY_BE_WHOLE: Final = (IntegralType, FractionalType, StringType, NullType)
"""Types of columns that can hold whole numbers."""
ALWAYS_WHOLE: Final = (IntegralType, NullType)
"""Types of columns that hold nothing else."""
_INEXACT: Final = {FloatType: 1 << 24, DoubleType: 1 << 53}
"""The first floating-point number that may stand for another whole number: the next one is rounded to it."""
_TEXT: Final = r"\A-?([0-9]+(\.0+)?|0E-[0-9]+)\z"
"""A whole number as text; Spark before 4.0 writes the decimal 0.00000000 as 0E-8."""


def whole_number(name: str, kind: DataType) -> Column:
    """A column as BIGINT; null where it is not a whole number, or not certainly the one that it shows.

    Args:
        name: of the column.
        kind: its type, one of ``MAY_BE_WHOLE``.
    """
    column = quoted(name)
    if isinstance(kind, ALWAYS_WHOLE):
        return F.col(column).cast(LongType())
    if isinstance(kind, (FloatType, DoubleType)):
        exact = f"{column} = floor({column}) AND abs({column}) < {_INEXACT[type(kind)]}"
        return F.expr(f"CASE WHEN {exact} THEN CAST({column} AS BIGINT) END")
    # Spark compares decimals of different scales with fewer digits than they have, so look at their text.
    digits = f"substring_index(substring_index(CAST({column} AS STRING), '.', 1), 'E', 1)"
    matches = F.col(column).cast("string").rlike(_TEXT)
    return F.when(matches, F.expr(f"try_cast({digits} AS BIGINT)"))
