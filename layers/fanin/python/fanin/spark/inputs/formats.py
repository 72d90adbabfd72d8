"""The formats of the datasets that jobs read."""

from __future__ import annotations

from enum import StrEnum
from typing import Final

from fanin.errors import InvalidRequest


class DatasetFormat(StrEnum):
    """The format of a dataset, as Spark names it.

    Attributes:
        PARQUET: whichever program wrote it.
        CSV: with a header line.
        JSON: one object on each line.
        ORC: whichever program wrote it.
        DELTA: a Delta table, by its path. The session needs Delta's package.
        ICEBERG: an Iceberg table, by its path or its name. The session needs Iceberg's package.
        TABLE: a table or view of the session's catalog, by its name.
    """

    PARQUET = "parquet"
    CSV = "csv"
    JSON = "json"
    ORC = "orc"
    DELTA = "delta"
    ICEBERG = "iceberg"
    TABLE = "table"

    @property
    def of_files(self) -> bool:
        """Whether a dataset of this format is all the files of a folder."""
        return self not in {DatasetFormat.DELTA, DatasetFormat.ICEBERG, DatasetFormat.TABLE}


def dataset_format(name: str) -> DatasetFormat:
    """The format of a name.

    Raises:
        InvalidRequest: there is no such format; lists those that there are.
    """
    try:
        return DatasetFormat(name)
    except ValueError:
        raise InvalidRequest(f"there is no format {name!r}; name one of {', '.join(DatasetFormat)}") from None


_SUFFIXES: Final = {
    "csv": DatasetFormat.CSV,
    "json": DatasetFormat.JSON,
    "jsonl": DatasetFormat.JSON,
    "ndjson": DatasetFormat.JSON,
    "orc": DatasetFormat.ORC,
}


def format_of_path(path: str) -> DatasetFormat:
    """The format that a path's suffix names, compressed or not; Parquet if it names none."""
    parts = path.rstrip("/").rpartition("/")[2].lower().split(".")[1:]
    return next((_SUFFIXES[part] for part in parts if part in _SUFFIXES), DatasetFormat.PARQUET)
