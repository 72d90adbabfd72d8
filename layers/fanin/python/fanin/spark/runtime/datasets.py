"""Datasets that a job writes in the place of those of an earlier run, and of nobody else's."""

import json
import re
from collections.abc import Iterable, Sequence
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq
from py4j.protocol import Py4JJavaError
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from fanin.errors import InvalidRequest
from fanin.spark.runtime.failures import root_cause
from fanin.spark.runtime.files import MISSING, UNANSWERED, Folder
from fanin.spark.runtime.places import canonical, escaped, read_here

_SIGN: Final = "fanin"
"""In the metadata of a column, which Spark keeps in every file: a job of fanin wrote this dataset."""
ROW_METADATA: Final = "org.apache.spark.sql.parquet.row.metadata"
"""Where Spark keeps the schema in a file of Parquet, as JSON, with types that Parquet does not have."""
_NOT_PARTS: Final = (
    "{[!p.]*,p,p[!a]*,pa,pa[!r]*,par,par[!t]*,part,part[!-]*,.[!p]*,.p[!a]*,.pa[!r]*,.par[!t]*,.part[!-]*}"
)
"""Names that begin neither with ``part-`` nor with ``.part-``. A glob has no "not", so it lists each way to
differ."""
_OF_SPARK: Final = re.compile(
    r"_(SUCCESS|temporary|started_|committed_|_magic|metadata$|common_metadata$).*"
    r"|\.(_.*\.crc|spark-staging.*|hive-staging.*|emrfs.*|_SUCCESS-[0-9a-f]{32})"
)
"""What Spark, its committers and ``Folder`` write besides."""

_FEW_FILES: Final = 16
_FEW_BYTES: Final = 16 * 2**20
"""Files, and their bytes, that the driver reads by itself."""


def check_replaceable(spark: SparkSession, folder: str, *, columns: Sequence[str] | None = None) -> bool:
    """Refuse a folder that holds something other than a dataset of an earlier run, or is a file.

    A dataset of an earlier run has these columns, or if none are given, the sign of jobs.

    Returns:
        Whether it is there, as far as can be known.
    """
    if not _check_names(spark, folder):
        return False
    for part in Folder(spark, folder).entries("part-*") or ():
        if part.isDirectory():
            raise _in_the_way(folder, f"{part.getPath().getName()} is in it")
        if not part.getLen():
            continue  # of a driver that died
        try:
            names, signed = _footer(spark, part.getPath())
        except Py4JJavaError as error:
            if MISSING.search(str(error)):
                break  # another run is replacing it
            cause = root_cause(error).splitlines()[0]
            raise _in_the_way(folder, f"it cannot be read: {cause}") from error
        if not (signed if columns is None else names == columns):
            told = (
                f"the dataset in it, with the columns {', '.join(names)}, was not written by a job of fanin"
            )
            raise _in_the_way(folder, told)
        break
    return True


def _check_names(spark: SparkSession, folder: str) -> bool:
    """Refuse a folder by the names in it; as ``check_replaceable``."""
    try:
        entries = Folder(spark, folder).entries(_NOT_PARTS)
    except Py4JJavaError as error:
        if UNANSWERED.search(str(error)):
            return False
        raise
    names = (str(one.getPath().getName()) for one in entries or ())
    other = next((name for name in names if not _OF_SPARK.fullmatch(name)), None)
    if other is not None:
        raise _in_the_way(folder, f"{other} is in it")
    return entries is not None


def _footer(spark: SparkSession, file: Any) -> tuple[list[str], bool]:
    """The columns of a file of Parquet, and whether it is signed; that takes no Spark job."""
    context: Any = spark.sparkContext
    parquet = context._jvm.org.apache.parquet.hadoop  # noqa: SLF001  Python has no other way to it
    conf = context._jsc.hadoopConfiguration()  # noqa: SLF001
    reader = parquet.ParquetFileReader.open(parquet.util.HadoopInputFile.fromPath(file, conf))
    try:
        about = reader.getFooter().getFileMetaData()
        columns = [str(field.getName()) for field in about.getSchema().getFields()]
        schema = about.getKeyValueMetaData().get(ROW_METADATA)
    finally:
        reader.close()
    fields = StructType.fromJson(json.loads(schema)) if schema else StructType()
    return columns, any(_SIGN in field.metadata for field in fields)


def _in_the_way(folder: str, why: str) -> InvalidRequest:
    return InvalidRequest(
        f"{folder} is not the folder of an earlier run, which jobs replace: {why}. It was left as it is; name"
        " a folder that this job has for itself, or move what is in this one"
    )


def check_apart(spark: SparkSession, what: str, folder: str, others: Iterable[str]) -> None:
    """Refuse a folder that is one of others that a job writes, is in one, or has one in it."""
    place = _place(spark, folder)
    for other in others:
        there = _place(spark, other)
        if place.startswith(there) or there.startswith(place):
            raise InvalidRequest(
                f"{what} cannot be written to {folder}, since this job writes something else to {other};"
                " name another folder for them, for example a new one beside it"
            )


def _place(spark: SparkSession, folder: str) -> str:
    try:
        return Folder(spark, folder).place
    except Py4JJavaError as error:
        if UNANSWERED.search(str(error)):
            return canonical(folder)
        raise


def replace_dataset(rows: DataFrame, folder: str) -> DataFrame:
    """Write a dataset as Parquet in the place of an earlier one, and give the DataFrame that reads it."""
    spark = rows.sparkSession
    _check_names(spark, folder)
    rows.withMetadata(rows.columns[0], {_SIGN: True}).write.mode("overwrite").parquet(folder)
    return read_dataset(spark, folder, rows.schema)


def read_dataset(spark: SparkSession, folder: str, schema: StructType | str) -> DataFrame:
    """Read a dataset that a job has written; its path is no pattern, whatever signs are in it."""
    return spark.read.schema(schema).parquet(escaped(folder))


def read_few(spark: SparkSession, folder: str, columns: Sequence[str]) -> Any:
    """Read columns of a small dataset as a ``pyarrow.Table``, without a job; None if that cannot be done."""
    parts = list(Folder(spark, folder).entries("part-*") or ())
    if not 0 < len(parts) <= _FEW_FILES or sum(part.getLen() for part in parts) > _FEW_BYTES:
        return None
    paths = [str(part.getPath().toString()) for part in parts]
    tables = read_here(spark, paths, lambda file, _: pq.ParquetFile(file).read(columns=list(columns)))
    return pa.concat_tables(tables) if tables else None
