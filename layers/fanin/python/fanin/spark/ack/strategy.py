"""Three strategies that turn acknowledgements into the same words, and which of them suits an input."""

from __future__ import annotations

from enum import StrEnum
from itertools import pairwise
from typing import Final

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812  as all of Spark's documentation calls it

from fanin.spark.ack import sql_bits
from fanin.spark.ack.input_schema import InputSchema
from fanin.spark.ack.parquet_files import ParquetFiles
from fanin.spark.ack.sql_items import normalize

_SAMPLE: Final = 8_192
_ORDERED: Final = 8
"""Input with more consecutive acknowledgements to a word than this is fast in plain SQL."""


class Strategy(StrEnum):
    """How acknowledgements become words.

    Attributes:
        PARQUET: tasks read the columns of Parquet files themselves, and build pages.
        PAGES: Spark hands the rows of any DataFrame to tasks, which build pages.
        SQL: plain SQL aggregates by word; for input that is in order, or small. If the input repeats items,
            it is read again, and must then be the same.
    """

    PARQUET = "parquet"
    PAGES = "pages"
    SQL = "sql"


def choose_strategy(rows: DataFrame, schema: InputSchema, files: ParquetFiles | None = None) -> Strategy:
    """Choose the strategy for some input.

    Unless tasks can read the files themselves, Spark reads a part of the input for it: plain SQL if that is
    all of it, or if it is in order of items. Pass ``strategy`` where sampling the input is expensive.

    Args:
        rows: the input.
        schema: how it names items.
        files: the Parquet files that the rows are read from, if there are any.
    """
    if files and readable(files, schema):
        return Strategy.PARQUET
    if schema.by_id:
        few = len(rows.select(F.lit(1)).limit(_SAMPLE).collect()) < _SAMPLE
        return Strategy.SQL if few else Strategy.PAGES
    # The rows of a limit come in order, but an aggregation after it may see them in any: so count here.
    sample = normalize(rows, schema).select(sql_bits.word("ordinal")).limit(_SAMPLE).collect()
    words = [row[0] for row in sample]
    changes = sum(a != b for a, b in pairwise(words))
    return Strategy.SQL if len(words) < _SAMPLE or changes * _ORDERED < len(words) else Strategy.PAGES


def readable(files: ParquetFiles, schema: InputSchema) -> bool:
    """Whether tasks can read the files themselves: they have the columns, and these need no conversion."""
    arrow = files.schema
    if arrow is None:
        return False
    kinds = {field.name: str(field.type) for field in arrow}
    fits = ("string", "large_string") if schema.by_id else ("int8", "int16", "int32", "int64", "uint32")
    return all(kinds.get(name) in fits for name in schema.columns)
