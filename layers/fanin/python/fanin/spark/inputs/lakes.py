"""Folders that are tables of Delta, Iceberg or Hudi: their Parquet files also hold rows that were deleted.

Such a table says in a log which files, and which rows of them, count. Read as plain Parquet, deleted and
replaced rows come back.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import chain
from typing import Any, Final, NamedTuple

from py4j.protocol import Py4JJavaError
from pyspark.sql import SparkSession

from fanin.errors import InvalidRequest
from fanin.spark.inputs.formats import DatasetFormat
from fanin.spark.inputs.listing import FoundFile
from fanin.spark.runtime.files import is_denied
from fanin.spark.runtime.places import escaped

_AT_ONCE: Final = 16
"""Folders that are looked at at the same time; on S3 each takes a tenth of a second."""
_LOGS: Final = {"_delta_log/*": "Delta", ".hoodie/*": "Hudi", "metadata/*.metadata.json": "Iceberg"}
"""What makes a table of the folder it is in. A list is allowed in more places than a look at an object."""
_LOCAL: Final = "file:"
"""Where threads gain nothing: to connect each to Java takes longer than to look at a folder."""
_PAGE: Final = 1_000
"""Files that S3 lists by one call."""


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
    paths = [file.path for file in files]
    holding = Counter(path.rpartition("/")[0] for path in {*paths, *map(_followed, paths)})
    listed = {folder for folder, count in holding.items() if count <= _PAGE}
    asked = {folder for one in holding for folder in _upwards(one)} - listed
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        each = map if all(path.startswith(_LOCAL) for path in paths) else pool.map
        found = chain(each(look.listed, sorted(listed)), each(look.at, sorted(asked)))
        try:
            return next(filter(None, found), None)
        finally:
            pool.shutdown(cancel_futures=True)


class _Look:
    def __init__(self, spark: SparkSession) -> None:
        context: Any = spark.sparkContext  # Python has no other way to Hadoop's file systems
        self._path = context._jvm.org.apache.hadoop.fs.Path  # noqa: SLF001
        self._conf = context._jsc.hadoopConfiguration()  # noqa: SLF001

    def at(self, folder: str) -> TableFolder | None:
        """The table that a folder is, which may hold anything, as a whole bucket does: it is not listed."""
        for pattern, kind in _LOGS.items():
            if self._has(f"{escaped(folder)}/{pattern}"):
                return TableFolder(folder, kind)
        return None

    def listed(self, folder: str) -> TableFolder | None:
        """The same of a folder of few files, of which one list is fewer calls than three in it."""
        names = ",".join(pattern.partition("/")[0] for pattern in _LOGS)
        return self.at(folder) if self._has(f"{escaped(folder)}/{{{names}}}") else None

    def _has(self, pattern: str) -> bool:
        place = self._path(pattern)
        try:
            return bool(place.getFileSystem(self._conf).globStatus(place))
        except Py4JJavaError as error:
            if is_denied(error):
                return False  # a folder above the dataset, which the job may not look into
            raise


def _followed(path: str) -> str:
    """The path of the file itself, where links of this machine lead to it."""
    local = path.removeprefix(_LOCAL)
    return path if local == path else _LOCAL + os.path.realpath(local)


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
