"""Folders that are tables of Delta, Iceberg or Hudi: their Parquet files also hold rows that were deleted.

Such a table says in a log which files, and which rows of them, count. Read as plain Parquet, deleted and
replaced rows come back.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import chain
from typing import Any, Final, NamedTuple

from py4j.protocol import Py4JJavaError
from pyspark.sql import SparkSession

from fanin.errors import InvalidRequest
from fanin.spark.inputs.formats import DatasetFormat
from fanin.spark.inputs.listing import FoundFile, escaped

_AT_ONCE: Final = 16
"""Folders that are looked at at the same time; on S3 each takes a tenth of a second."""
_DENIED: Final = re.compile("AccessDenied|AccessControl|Access Denied|Forbidden|Permission denied")
_LOGS: Final = {"_delta_log": "Delta", ".hoodie": "Hudi"}
"""Folders that make a table of the folder they are in."""
_SNAPSHOTS: Final = "metadata/*.metadata.json"


class TableFolder(NamedTuple):
    """A folder that is a table.

    Attributes:
        path: of the folder.
        kind: ``Delta``, ``Iceberg`` or ``Hudi``.
    """

    path: str
    kind: str

    @property
    def format(self) -> DatasetFormat | None:
        """The format that reads it; None if there is none here."""
        return {"Delta": DatasetFormat.DELTA, "Iceberg": DatasetFormat.ICEBERG}.get(self.kind)

    def refusal(self, path: str) -> InvalidRequest:
        """The error for those who read the folder, or something in it, as plain files."""
        how = (
            f"read {self.path} with --format {self.format}, in a session that has {self.kind}'s package"
            if self.format
            else "read it with --format table, by its name in a catalog"
        )
        return InvalidRequest(
            f"{path} cannot be read as files: {self.path} is a table of {self.kind}, whose files also hold"
            f" rows that were deleted or replaced; {how}"
        )


def table_at(spark: SparkSession, path: str) -> TableFolder | None:
    """The table that a folder is; None if it is none."""
    return _Look(spark).at(path.rstrip("/"))


def find_table(spark: SparkSession, files: Sequence[FoundFile]) -> TableFolder | None:
    """The first table that holds some of the files of a dataset: at its root, above it or below it."""
    for file in files:
        folder, _, name = file.path.rpartition("/")
        if name.endswith(".metadata.json") and folder.endswith("/metadata"):
            return TableFolder(folder.rpartition("/")[0], "Iceberg")
    look = _Look(spark)
    holding = {file.path.rpartition("/")[0] for file in files}
    above = {folder for one in holding for folder in _upwards(one)} - holding
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        found = chain(pool.map(look.listed, sorted(holding)), pool.map(look.at, sorted(above)))
        return next(filter(None, found), None)


class _Look:
    def __init__(self, spark: SparkSession) -> None:
        context: Any = spark.sparkContext  # Python has no other way to Hadoop's file systems
        self._path = context._jvm.org.apache.hadoop.fs.Path  # noqa: SLF001
        self._conf = context._jsc.hadoopConfiguration()  # noqa: SLF001

    def at(self, folder: str) -> TableFolder | None:
        """The table that a folder is, which may hold anything, as a whole bucket does: it is not listed."""
        for log, kind in _LOGS.items():
            if self._there(f"{folder}/{log}"):
                return TableFolder(folder, kind)
        return TableFolder(folder, "Iceberg") if self._matches(f"{escaped(folder)}/{_SNAPSHOTS}") else None

    def listed(self, folder: str) -> TableFolder | None:
        """The same of a folder with files of the dataset. One list of it is fewer calls than its names."""
        logs = ",".join(_LOGS)
        return self.at(folder) if self._matches(f"{escaped(folder)}/{{{logs},metadata}}") else None

    def _there(self, path: str) -> bool:
        return self._seen(path, lambda place, system: system.isDirectory(place))

    def _matches(self, pattern: str) -> bool:
        return self._seen(pattern, lambda place, system: system.globStatus(place))

    def _seen(self, path: str, look: Callable[[Any, Any], object]) -> bool:
        place = self._path(path)
        try:
            return bool(look(place, place.getFileSystem(self._conf)))
        except Py4JJavaError as error:
            if _DENIED.search(str(error)):
                return False  # a folder above the dataset, which the job may not look into
            raise


def _upwards(folder: str) -> Iterator[str]:
    """A folder and those above it, up to the root of its file system."""
    scheme, colon, path = folder.partition(":") if ":/" in folder else ("", "", folder)
    prefix = scheme + colon
    if path.startswith("//"):
        host = path.split("/")[2]
        prefix, path = f"{prefix}//{host}", path[2 + len(host) :]
    parts = path.split("/")
    for stop in range(len(parts), 0, -1):
        yield prefix + "/".join(parts[:stop])
