"""The formats of the datasets that come in."""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum
from typing import Final, TypeAlias

from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from fanin.errors import InvalidRequest

Schema: TypeAlias = StructType | str
"""Columns as Spark has them, or in DDL."""


class Format(StrEnum):
    """How the rows of a dataset are written.

    Attributes:
        PARQUET: whoever wrote it.
        CSV: with a header line.
        JSON: an object a line.
    """

    PARQUET = "parquet"
    CSV = "csv"
    JSON = "json"


_SUFFIXES: Final = {
    "csv": Format.CSV,
    "json": Format.JSON,
    "jsonl": Format.JSON,
    "ndjson": Format.JSON,
}


def format_of(path: str) -> Format:
    """The format that a path's suffix says, compressed or not; Parquet if it says nothing."""
    parts = path.rstrip("/").rpartition("/")[2].lower().split(".")[1:]
    return next((_SUFFIXES[part] for part in parts if part in _SUFFIXES), Format.PARQUET)


def opened(spark: SparkSession, path: str, reader: Callable[[], DataFrame], empty: Schema) -> DataFrame:
    """What a reader makes of a path.

    Args:
        spark: the session.
        path: what it reads.
        reader: reads it.
        empty: the columns of a folder without files, which has no rows; Spark cannot tell them.

    Raises:
        InvalidRequest: there is nothing, or nothing of that format.
    """
    try:
        return reader()
    except AnalysisException as error:
        if _condition(error) == "UNABLE_TO_INFER_SCHEMA":
            return spark.createDataFrame([], empty)
        raise InvalidRequest(f"{path} cannot be read: {str(error).splitlines()[0]}") from error


def _condition(error: AnalysisException) -> str | None:
    """The name of Spark's error; 4.0 gave the method another name."""
    condition: str | None = getattr(error, "getCondition", error.getErrorClass)()
    return condition
