"""DataFrames that are nothing but Parquet files, so that tasks may read the files themselves."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Final

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from fanin.spark.ack.parquet_files import ParquetFiles
from fanin.spark.inputs.listing import FoundFile
from fanin.spark.inputs.names import case_sensitive, folded
from fanin.spark.runtime.object_store import S3

_RELATION: Final = "org.apache.spark.sql.execution.datasources.LogicalRelation"
_FILES: Final = "org.apache.spark.sql.execution.datasources.HadoopFsRelation"
_FORMAT: Final = "org.apache.spark.sql.execution.datasources.parquet.ParquetFileFormat"
_INDEX: Final = "org.apache.spark.sql.execution.datasources.InMemoryFileIndex"
_PROJECT: Final = "org.apache.spark.sql.catalyst.plans.logical.Project"
_COLUMN: Final = "org.apache.spark.sql.catalyst.expressions.AttributeReference"
_OPTIONS: Final = frozenset({"path", "paths", "mergeschema", "pathglobfilter", "recursivefilelookup"})
"""Options that say which files are read. Others say how, such as dates of another calendar."""
_LENIENT: Final = ("spark.sql.files.ignoreCorruptFiles", "spark.sql.files.ignoreMissingFiles")
_REACHED: Final = ("file:", *(f"{scheme}://" for scheme in S3))
"""What tasks reach without the libraries of Hadoop."""


def bare_files(rows: DataFrame) -> ParquetFiles | None:
    """The files of a DataFrame that is a scan of Parquet files, with all columns or some, and nothing more.

    Delta and Iceberg have other formats, and tables of a catalog have other plans; so these are none.

    Args:
        rows: of a classic session.

    Returns:
        None if it is anything else, if columns come from names of folders, if the rows leave out the files'
        ``reason``, which tasks refuse to overlook, or if pyarrow cannot read the files here, perhaps because
        only Spark has the credentials.
    """
    spark = rows.sparkSession
    if rows.is_cached or any(spark.conf.get(name, "false") == "true" for name in _LENIENT):
        return None
    execution: Any = rows._jdf.queryExecution()  # noqa: SLF001  Python has no other way to plans
    relation = _relation(execution.analyzed())
    if relation is None:
        return None
    found = [
        FoundFile(str(file.getPath()), int(file.getLen()), int(file.getModificationTime()))
        for file in _each(relation.location().allFiles())
        if file.getLen()
    ]
    if not found or not all(file.path.startswith(_REACHED) for file in found):
        return None
    try:
        files = ParquetFiles(found[0].path, sorted(found), exact=case_sensitive(spark), spark=spark)
        there = _names(spark, [*relation.schema().names(), *files.schema.names])
    except (pa.ArrowException, OSError):
        return None
    return None if "reason" in there - _names(spark, rows.columns) else files


def _relation(plan: Any) -> Any:
    """The relation of Parquet files that a plan reads as it is; None if there is none."""
    while _class(plan) == _PROJECT and all(_class(one) == _COLUMN for one in _each(plan.projectList())):
        plan = plan.child()
    if _class(plan) != _RELATION or plan.isStreaming():
        return None
    relation = plan.relation()
    if _class(relation) != _FILES or not relation.partitionSchema().isEmpty():
        return None
    bare = _class(relation.fileFormat()) == _FORMAT and _class(relation.location()) == _INDEX
    options = {str(pair._1()).lower() for pair in _each(relation.options().toSeq())}  # noqa: SLF001
    return relation if bare and options <= _OPTIONS else None


def _names(spark: SparkSession, names: Iterable[str]) -> set[str]:
    return {folded(spark, str(name)) for name in names}


def _each(sequence: Any) -> Iterator[Any]:
    """The elements of a sequence of Scala."""
    return (sequence.apply(at) for at in range(sequence.size()))


def _class(of: Any) -> str:
    return str(of.getClass().getName())
