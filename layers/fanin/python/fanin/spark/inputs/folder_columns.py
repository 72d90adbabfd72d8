"""Columns that come from names of folders, such as ``day=1/``."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final
from urllib.parse import unquote

from pyspark.sql import DataFrame, SparkSession

from fanin.errors import InvalidRequest
from fanin.spark.inputs.listing import FoundFile
from fanin.spark.inputs.names import folded

_SECOND: Final = "DataSourceV2Relation"
"""What Spark reads files with if ``spark.sql.sources.useV1SourceList`` leaves out their format."""


def by_layout(base: str, files: Sequence[FoundFile]) -> dict[tuple[str, ...], list[FoundFile]]:
    """The files of each layout of folders that are columns; Spark reads files of only one at a time.

    Args:
        base: the folder whose subfolders may be columns, or the only file.
        files: below it.

    Returns:
        Names of columns → the files whose folders have them.
    """
    layouts: dict[tuple[str, ...], list[FoundFile]] = {}
    for file in files:
        folders = file.path.removeprefix(base).split("/")[:-1]
        names = tuple(unquote(folder.partition("=")[0]) for folder in folders if "=" in folder)
        layouts.setdefault(names, []).append(file)
    return layouts


def file_columns(rows: DataFrame) -> list[str]:
    """The columns that some of the files have of which a DataFrame was made; nothing is read for it."""
    execution: Any = rows._jdf.queryExecution()  # noqa: SLF001  Python has no other way to plans
    plan = execution.analyzed()
    source = plan.table() if plan.getClass().getSimpleName() == _SECOND else plan.relation()
    return [str(name) for name in source.dataSchema().fieldNames()]


def refuse_twice(
    spark: SparkSession,
    file: str,
    folders: Sequence[str],
    columns: Iterable[str],
    *,
    needed: Sequence[str] = (),
) -> None:
    """Refuse a column that files and the names of their folders have: Spark takes that of the folder's name.

    Args:
        spark: the session.
        file: path of a file whose folders have the columns.
        folders: columns that come from the names of its folders.
        columns: of the files.
        needed: the columns that the job needs; if there are none, all are.

    Raises:
        InvalidRequest: there is such a column; names it and a folder.
    """
    inside = {folded(spark, name) for name in columns}
    if needed:
        inside &= {folded(spark, name) for name in needed}
    for name in folders:
        if folded(spark, name) in inside:
            raise InvalidRequest(
                f"the column {name} is in the files and in the names of folders, such as"
                f" {_folder(file, name)}, so a row has two values of it; leave it out of the files, rename"
                " the folders, or read one folder by its path, whose own name is no column"
            )


def _folder(file: str, name: str) -> str:
    """The folder of a file whose name is that column."""
    parts = file.split("/")[:-1]
    last = max(at for at, part in enumerate(parts) if unquote(part.partition("=")[0]) == name)
    return "/".join(parts[: last + 1])
