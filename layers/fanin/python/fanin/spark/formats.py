"""The formats of the datasets that come in."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from enum import StrEnum
from typing import Final

from pyspark.errors import AnalysisException

from fanin.errors import InvalidRequest


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


@contextmanager
def reading(path: str) -> Iterator[None]:
    """Tell whoever named a path that Spark cannot read it.

    Raises:
        InvalidRequest: there is nothing, or nothing of that format.
    """
    try:
        yield
    except AnalysisException as error:
        raise InvalidRequest(f"{path} cannot be read: {str(error).splitlines()[0]}") from error
