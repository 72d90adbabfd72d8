"""Opens a dataset of any format, the same way for all jobs."""

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import reduce
from typing import Any, Final
from urllib.parse import unquote

import pyarrow.parquet as pq
from py4j.protocol import Py4JJavaError
from pyspark.errors import ParseException, PySparkException
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812  as all of Spark's documentation calls it
from pyspark.sql.types import StructType

from fanin.domain import ids
from fanin.errors import InvalidRequest
from fanin.spark.inputs.csv_files import read_csv
from fanin.spark.inputs.formats import Dataset, DatasetFormat, format_of_path
from fanin.spark.inputs.json_lines import TEXT, read_json
from fanin.spark.inputs.listing import (
    FoundFile,
    as_literal,
    check_not_replaced,
    check_outside,
    find_files,
    find_table,
    fingerprint,
    literal_root,
    load,
    same_file,
    table_at,
)
from fanin.spark.runtime.datasets import ROW_METADATA
from fanin.spark.runtime.failures import root_cause
from fanin.spark.runtime.files import Folder
from fanin.spark.runtime.places import escaped, read_here
from fanin.spark.runtime.unreadable import LINE, PROBLEM, UNKNOWN, readable_columns

_FRAMED: Final = (".lz4", ".snappy")  # Hadoop unpacks its own blocks of them, and takes all else for the end
_VERIFIED: Final = "parquet.page.verify-checksum.enabled"
"""Spark writes checksums of pages, and by default does not look at them: of a damaged page of gzip it reads
other values, and says nothing."""
_ADVICE: Final = {
    "TIMESTAMP(NANOS": (
        ". Spark reads no times in nanoseconds; write the files with microseconds, in pandas by"
        ' to_parquet(..., coerce_timestamps="us")'
    ),
    ".DefaultSource": ". Start Spark with the package of this format, or on EMR with the release's own",
}


@dataclass(frozen=True)
class Opened:
    """A dataset that was opened.

    Attributes:
        rows: its columns; and ``LINE`` and ``PROBLEM``, which say what cannot be read and why. Rows of JSON
            also have ``TEXT``, the object as it came.
        format: of the dataset.
        files: its files; None if it is a table.
        promised: how many rows the footers of its files say that it has; None if they do not, or not all can
            be read by pyarrow.
    """

    rows: DataFrame
    format: DatasetFormat
    files: Sequence[FoundFile] | None
    promised: int | None = None

    @property
    def columns(self) -> list[str]:
        """The columns of the dataset itself."""
        return readable_columns(self.rows)

    @property
    def unreadable(self) -> Column:
        """The text of a row that cannot be read in its format; null for all others."""
        return F.col(LINE)


def open_input(
    spark: SparkSession, given: Dataset, *, fields: Sequence[str], replaced: Mapping[str, str] | None = None
) -> Opened:
    """Open a dataset.

    Args:
        spark: the session.
        given: the dataset.
        fields: what the job needs, which is read of JSON, and is the columns of a dataset without files; with
            none it needs all columns.
        replaced: folders that the job replaces, folder → the argument that names it, as errors say it.

    Raises:
        InvalidRequest: the dataset does not exist, is a table that was not asked for as such, is not of its
            format, its files do not fit together, or are in a folder that the job replaces; or its format
            does not take a schema. Says which file, where Spark does.
    """
    path, format_ = given.place, _format(spark, given)
    types = _types(spark, given.schema, format_)
    if not format_.of_files:
        table = _table(spark, path, format_)
        if replaced:
            held = (FoundFile(same_file(uri), 0, 0) for uri in table.inputFiles())
            check_not_replaced(spark, path, held, replaced)
        return Opened(readable(table), format_, None)
    files = find_files(spark, path)
    if replaced:
        check_not_replaced(spark, path, files, replaced)
        check_outside(spark, path, files, replaced)
    if found := find_table(spark, files):
        raise found.refusal(path)
    literal = as_literal(spark, path)
    # The folder whose subfolders may be columns, such as ``day=1``, or the only file.
    root = path.rstrip("/") if literal != path else literal_root(path)
    base = Folder(spark, root, only_read=True).uri
    layouts = _by_layout(base, files)
    framed = next((file.path for file in files if file.path.lower().endswith(_FRAMED)), None)
    if framed and format_ in {DatasetFormat.CSV, DatasetFormat.JSON}:
        raise InvalidRequest(
            f"Spark reads {framed} only as Hadoop packs it, and nothing of what others pack; use gzip"
        )
    promised, alike = _footers(spark, files) if format_ is DatasetFormat.PARQUET else (None, False)
    whole = literal if list(layouts) == [()] else None

    def part(folders: Sequence[str], some: Sequence[FoundFile]) -> list[DataFrame]:
        under = base if folders else None
        if format_ is DatasetFormat.CSV:
            return read_csv(spark, some, given, types=types, folders=folders, base=under, whole=whole)
        if format_ is DatasetFormat.JSON:
            return [read_json(spark, [file.path for file in some], given, fields, whole)]
        return [_read(spark, some, format_, under, whole, alike=alike)]

    with _explained(path):
        frames = [frame for folders, some in layouts.items() for frame in part(folders, some)]
    if frames:
        rows = reduce(lambda a, b: a.unionByName(b, allowMissingColumns=True), frames)
    else:
        names = [*fields, *([TEXT] if format_ is DatasetFormat.JSON else [])]
        rows = spark.createDataFrame([], types or ", ".join(f"`{name}` string" for name in names))
    return Opened(readable(rows), format_, files, promised)


def fingerprint_of(spark: SparkSession, given: Dataset) -> dict[str, Any] | None:
    """What tells the data from other data of the same name, as JSON; None for tables of unknown files."""
    format_ = _format(spark, given)
    if format_.of_files:
        return fingerprint(find_files(spark, given.place))
    # A table of Delta never writes a file of the same name again.
    names = sorted(_table(spark, given.place, format_).inputFiles())
    return fingerprint([FoundFile(name, 0, 0) for name in names]) if names else None


def _format(spark: SparkSession, given: Dataset) -> DatasetFormat:
    if given.known is not None:
        return given.known
    table = table_at(spark, given.place) if "/" in given.place else None
    if table is None:
        return format_of_path(given.place)
    if table.format is None:
        raise table.refusal(given.place)
    return table.format


def _types(spark: SparkSession, schema: str | None, format_: DatasetFormat) -> StructType | None:
    if schema is None:
        return None
    if format_ is not DatasetFormat.CSV:
        raise InvalidRequest(f"a {format_} dataset takes no schema, since it has its own; only CSV does")
    try:
        return spark.createDataFrame([], schema).schema
    except ParseException as error:
        why = str(error).splitlines()[0]
        raise InvalidRequest(
            f"the schema {schema!r} is not DDL, such as 'id BIGINT, name STRING': {why}"
        ) from error


def _by_layout(base: str, files: Sequence[FoundFile]) -> dict[tuple[str, ...], list[FoundFile]]:
    """The files of each layout of folders that are columns, such as ``day=1/``; Spark reads one at a time."""
    layouts: dict[tuple[str, ...], list[FoundFile]] = {}
    for file in files:
        folders = file.path.removeprefix(base).split("/")[:-1]
        names = tuple(unquote(folder.partition("=")[0]) for folder in folders if "=" in folder)
        layouts.setdefault(names, []).append(file)
    return layouts


def _read(
    spark: SparkSession,
    files: Sequence[FoundFile],
    format_: DatasetFormat,
    base: str | None,
    whole: str | None,
    *,
    alike: bool,
) -> DataFrame:
    paths = [file.path for file in files]
    reader = spark.read.format(format_.value).option("mergeSchema", not alike).option(_VERIFIED, True)
    if base is not None:
        reader = reader.option("basePath", base)
    if alike and whole is not None:
        # Without the schema of one Spark would look for it in all that is there, also in empty files.
        reader = reader.schema(reader.load(escaped(paths[0])).schema)
    rows = load(reader, whole if alike else None, paths)
    if json.dumps(UNKNOWN)[1:-1] in rows.schema.json():
        raise InvalidRequest(
            f"the name of a column in {files[0].path}, or in another file, has bytes that are not UTF-8; the"
            f" columns are {', '.join(rows.columns)}. Write the files anew"
        )
    return rows


def _table(spark: SparkSession, path: str, format_: DatasetFormat) -> DataFrame:
    with _explained(path):
        return spark.table(path) if format_ is DatasetFormat.TABLE else spark.read.load(path, format_.value)


@contextmanager
def _explained(path: str) -> Iterator[None]:
    """Say which dataset cannot be opened, whose schema Spark may have to look up in its files."""
    try:
        yield
    except (PySparkException, Py4JJavaError) as error:
        cause = root_cause(error)
        advice = next((told for sign, told in _ADVICE.items() if sign in cause), "")
        raise InvalidRequest(f"{path} cannot be read: {cause}{advice}") from error


def readable(rows: DataFrame) -> DataFrame:
    """Say of all rows that they can be read, where a format has no text that may be wrong."""
    if LINE in rows.columns:
        return rows
    nothing = F.lit(None).cast("string")
    return rows.withColumns({LINE: nothing, PROBLEM: nothing})


DAMAGED: Final = "the file is damaged, or its writer is wrong: write it anew"


def _footers(spark: SparkSession, files: Sequence[FoundFile]) -> tuple[int | None, bool]:
    """How many rows the footers of all files promise; whether all have the same schema, also for Spark.

    Nobody knows if pyarrow has no credentials, or a footer is damaged.
    """
    if (told := read_here(spark, [file.path for file in files], _footer)) is None:
        return None, False
    return sum(rows for rows, _ in told), len({schema for _, schema in told}) == 1


def _footer(opened: Any, path: str) -> tuple[int, str]:
    """How many rows a footer promises, and a digest of its schema."""
    metadata = pq.read_metadata(opened)
    if wrong := contradiction(metadata, path):
        raise InvalidRequest(wrong)
    columns = repr(metadata.schema).partition("\n")[2]  # the first line says where the object is
    schema = columns.encode() + (metadata.metadata or {}).get(ROW_METADATA.encode(), b"")
    return metadata.num_rows, ids.digest(schema)


def check_promised(opened: Opened, read: int) -> None:
    """Refuse files of which Spark reads other rows than all their footers promise."""
    if opened.files and opened.promised not in {None, read}:
        raise InvalidRequest(
            f"the footers of {len(opened.files)} files, {opened.files[0].path} first, promise"
            f" {opened.promised} rows, and Spark reads {read}; {DAMAGED}"
        )


def contradiction(metadata: Any, path: str) -> str | None:
    """What in a footer cannot all be true: numbers of rows and of values; None if all may be."""
    groups = [metadata.row_group(number) for number in range(metadata.num_row_groups)]
    rows = sum(group.num_rows for group in groups)
    if rows != metadata.num_rows:
        return (
            f"the footer of {path} says that it has {metadata.num_rows} rows, and that its parts have {rows}"
        )
    flat = [at for at in range(metadata.num_columns) if not metadata.schema.column(at).max_repetition_level]
    for group in groups:
        for column in map(group.column, flat):
            if column.num_values < group.num_rows:
                return (
                    f"the footer of {path} says that a part has {group.num_rows} rows, and that its column"
                    f" {column.path_in_schema} has only {column.num_values} values; {DAMAGED}"
                )
    return None
