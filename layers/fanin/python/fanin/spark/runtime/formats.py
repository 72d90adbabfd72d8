"""The formats of the datasets that jobs read."""

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


class DatasetFormat(StrEnum):
    """The format of a dataset, as Spark names it.

    Attributes:
        PARQUET: whichever program wrote it.
        CSV: with a header line.
        JSON: one object on each line.
    """

    PARQUET = "parquet"
    CSV = "csv"
    JSON = "json"


_SUFFIXES: Final = {
    "csv": DatasetFormat.CSV,
    "json": DatasetFormat.JSON,
    "jsonl": DatasetFormat.JSON,
    "ndjson": DatasetFormat.JSON,
}


def format_of_path(path: str) -> DatasetFormat:
    """The format that a path's suffix names, compressed or not; Parquet if it names none."""
    parts = path.rstrip("/").rpartition("/")[2].lower().split(".")[1:]
    return next((_SUFFIXES[part] for part in parts if part in _SUFFIXES), DatasetFormat.PARQUET)


def load(spark: SparkSession, path: str, reader: Callable[[], DataFrame], empty: Schema) -> DataFrame:
    """Read a dataset; a folder without files is an empty one.

    Args:
        spark: the session.
        path: what the reader reads.
        reader: reads it.
        empty: the columns of a folder without files, which Spark cannot know.

    Raises:
        InvalidRequest: the path does not exist, or has nothing of that format.
    """
    try:
        return reader()
    except AnalysisException as error:
        if _condition(error) == "UNABLE_TO_INFER_SCHEMA":
            return spark.createDataFrame([], empty)
        raise InvalidRequest(f"{path} cannot be read: {str(error).splitlines()[0]}") from error


def _condition(error: AnalysisException) -> str | None:
    """The name of Spark's error; Spark 4.0 gave the method another name."""
    condition: str | None = getattr(error, "getCondition", error.getErrorClass)()
    return condition
