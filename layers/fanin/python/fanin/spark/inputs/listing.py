"""The files of a dataset, found once and given to every reader, so that all of them read the same ones.

Folders that are tables of Delta, Iceberg or Hudi are found, too. Such a table says in a log which files, and
which rows of them, count. Read as plain Parquet, deleted and replaced rows come back.
"""

import hashlib
import json
import os
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import chain
from typing import Any, Final, NamedTuple
from urllib.parse import unquote

import pyarrow as pa
from py4j.protocol import Py4JJavaError
from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, DataFrameReader, SparkSession
from pyspark.sql import functions as F  # noqa: N812  as all of Spark's documentation calls it

from fanin.errors import InvalidRequest
from fanin.spark.inputs.formats import DatasetFormat
from fanin.spark.runtime.failures import root_cause
from fanin.spark.runtime.files import DENIED, Folder
from fanin.spark.runtime.places import canonical, escaped, file_system, is_local, is_pattern, place_of

_FEW: Final = 64
"""Files of another machine that are looked at one by one."""


class FoundFile(NamedTuple):
    """A file of a dataset.

    Attributes:
        path: its URI, with spaces and the like as they are.
        size: bytes.
        modified: milliseconds since the epoch.
    """

    path: str
    size: int
    modified: int


def find_files(spark: SparkSession, path: str) -> list[FoundFile]:
    """Find the files of a dataset: those of all folders below it, in order of their paths.

    As everywhere in Spark, names that begin with a dot or an underscore are hidden, and so are empty files.
    On S3 the executors look up the files. A file or folder of that very name comes before a pattern.
    """
    return _found(spark, as_literal(spark, path), path)


def _found(spark: SparkSession, paths: str | list[str], told: str) -> list[FoundFile]:
    try:
        files = spark.read.format("binaryFile").option("recursiveFileLookup", True).load(paths)
        if (looked := _looked_up(spark, paths_of(files))) is not None:
            return looked
        rows = files.select("path", "length", F.unix_millis("modificationTime").alias("modified"))
        return sorted(FoundFile(*row) for row in rows.collect())
    except AnalysisException as error:
        raise InvalidRequest(f"{told} cannot be read: {str(error).splitlines()[0]}") from error
    except Py4JJavaError as error:
        raise InvalidRequest(f"{told} cannot be read: {root_cause(error)}") from error


def _looked_up(spark: SparkSession, paths: Sequence[str]) -> list[FoundFile] | None:
    """Look at files of this machine, or at a few of another, without a job; None if pyarrow cannot."""
    if not paths:
        return []
    if len(paths) > _FEW and not all(map(is_local, paths)):
        return None
    try:
        system = file_system(paths[0], spark)
        each = system.get_file_info([place_of(path) for path in paths])
    except (pa.ArrowException, OSError):
        return None
    if not all(one.is_file for one in each):
        return None
    there = zip(paths, each, strict=True)
    return sorted(FoundFile(path, one.size, one.mtime_ns // 10**6) for path, one in there if one.size)


def paths_of(rows: DataFrame) -> list[str]:
    """The paths of the files that a DataFrame reads, as a ``FoundFile`` has them."""
    java: Any = rows.sparkSession._jvm  # noqa: SLF001  a list of Python asks Java for each name
    mapper = java.com.fasterxml.jackson.databind.ObjectMapper()
    return [same_file(uri) for uri in json.loads(mapper.writeValueAsString(rows._jdf.inputFiles()))]  # noqa: SLF001


def files_of(rows: DataFrame) -> list[FoundFile]:
    """Find the files that the rows of a DataFrame are read from; none if it is not made of files."""
    paths = paths_of(rows)
    if (looked := _looked_up(rows.sparkSession, paths)) is not None:
        return looked
    return _found(rows.sparkSession, [escaped(path) for path in paths], "a file of the DataFrame")


def load(reader: DataFrameReader, folder: str | None, paths: Sequence[str]) -> DataFrame:
    """Read files by their paths, in order; or all that are in a folder, if the reader finds the same there.

    To give Spark 2,000 names takes it a second.
    """
    if folder is not None:
        rows = reader.option("recursiveFileLookup", True).load(folder)
        if sorted(paths_of(rows)) == paths:
            return rows
    return reader.load([escaped(path) for path in paths])


def fingerprint(files: Sequence[FoundFile]) -> dict[str, Any]:
    """What tells the files of a dataset from others at the same path: names, sizes and times, as JSON."""
    digest = hashlib.sha256()
    for file in files:
        digest.update(f"{file.path}\0{file.size}\0{file.modified}\n".encode())
    return {"files": len(files), "bytes": sum(file.size for file in files), "digest": digest.hexdigest()}


def same_file(uri: str) -> str:
    """The path of a ``FoundFile``, from the URI that Spark's column of metadata has."""
    path = unquote(uri)
    return f"file:/{path[8:]}" if path.startswith("file:///") else path


def as_literal(spark: SparkSession, path: str) -> str:
    """The path as Spark takes it; escaped if something has this very name, and no pattern is meant."""
    if not is_pattern(path):
        return path
    return escaped(path) if Folder(spark, path, only_read=True).there() else path


def check_not_replaced(
    spark: SparkSession, path: str, files: Iterable[FoundFile], replaced: Mapping[str, str]
) -> None:
    """Refuse a dataset that has files in a folder that the job replaces."""
    places = [canonical(folder) for folder in {file.path.rpartition("/")[0] for file in files}]
    for folder, argument in replaced.items():
        place = Folder(spark, folder).place
        if any(one.startswith(place) for one in places):
            raise InvalidRequest(
                f"the input {path} has files in {folder}, which this job replaces; name another folder with"
                f" {argument}, or copy these files to a folder of their own"
            )


def check_outside(
    spark: SparkSession, path: str, files: Sequence[FoundFile], replaced: Mapping[str, str]
) -> None:
    """Refuse a folder of the job in the dataset, of which it would become a part."""
    whole = Folder(spark, path, only_read=True)
    if is_pattern(path) or [file.path for file in files] == [whole.uri]:
        return
    root = whole.place
    for folder, argument in replaced.items():
        place = Folder(spark, folder).place
        hidden = any(part.startswith(("_", ".")) for part in place.removeprefix(root).split("/"))
        if place.startswith(root) and not hidden:
            raise InvalidRequest(
                f"{folder} is in the input {path}, so the next run would read what this one writes; name a"
                f" folder outside of it with {argument}"
            )


def literal_root(path: str) -> str:
    """The folders of a path that are not a pattern, without a slash at the end."""
    parts = path.rstrip("/").split("/")
    stop = next((at for at, part in enumerate(parts) if is_pattern(part)), len(parts))
    return "/".join(parts[:stop])


_AT_ONCE: Final = 16
"""Folders that are looked at at the same time; on S3 each takes a tenth of a second."""
_LOGS: Final = {"_delta_log/*": "Delta", ".hoodie/*": "Hudi", "metadata/*.metadata.json": "Iceberg"}
"""What makes a table of the folder it is in. A list is allowed in more places than a look at an object."""
_LOCAL: Final = "file:"
"""Where threads gain nothing: to connect each to Java takes longer than to look at a folder."""
_PAGE: Final = 1_000
"""Files that S3 lists by one call."""
_ROOT: Final = re.compile("^([^/:]+:(?=/))?(//[^/]*)?")
"""The scheme and the host of a URI."""


class TableFolder(NamedTuple):
    """A folder that is a table."""

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
            if DENIED.search(str(error)):
                return False  # a folder above the dataset, which the job may not look into
            raise


def _followed(path: str) -> str:
    """The path of the file itself, where links of this machine lead to it."""
    local = path.removeprefix(_LOCAL)
    return path if local == path else _LOCAL + os.path.realpath(local)


def _upwards(folder: str) -> Iterator[str]:
    """A folder and those above it, up to the root of its file system."""
    path = _ROOT.sub("", folder)
    parts = path.split("/")
    for stop in range(len(parts), 0, -1):
        yield folder.removesuffix(path) + "/".join(parts[:stop])
