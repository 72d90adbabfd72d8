"""How many rows the footers of Parquet files promise: Spark does not look whether it reads as many."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import SparkSession

from fanin.errors import InvalidRequest
from fanin.spark.inputs.formats import DatasetFormat
from fanin.spark.inputs.opening import Opened
from fanin.spark.runtime.arrow import ArrowBatches, ddl, page
from fanin.spark.runtime.places import file_system, place_of
from fanin.spark.runtime.session import most_tasks

_FOOTERS: Final = pa.schema([("rows", pa.int64()), ("wrong", pa.string())])
DAMAGED: Final = "the file is damaged, or its writer is wrong: write it anew"
_FILES: Final = 64
"""Files whose footers a task is worth starting for; the driver reads fewer by itself."""


def check_promised(spark: SparkSession, opened: Opened, read: int) -> None:
    """Refuse files that have other rows than their footers say.

    Footers that only Spark can read, for which pyarrow has no file system or no credentials, are not looked
    at; files that are not Parquet promise nothing.

    Raises:
        InvalidRequest: a footer contradicts itself, or all of them promise another number of rows.
    """
    if opened.format is not DatasetFormat.PARQUET or not opened.files:
        return
    paths = [place_of(file.path) for file in opened.files]
    try:
        system, _ = file_system(opened.files[0].path, spark)
    except (pa.ArrowException, OSError):
        return

    def footers(records: Iterable[ArrowBatches]) -> Iterator[ArrowBatches]:
        for record in records:
            yield page(_FOOTERS, [_footer(system, paths[one]) for one in record.column(0).to_pylist()])

    if tasks := min(most_tasks(spark), len(paths) // _FILES):
        looked = spark.range(0, len(paths), 1, tasks).mapInArrow(footers, ddl(_FOOTERS))
        told: Iterable[tuple[int | None, str | None]] = looked.collect()
    else:
        told = [_footer(system, path) for path in paths]
    promised = 0
    for rows, wrong in told:
        if wrong is not None:
            raise InvalidRequest(wrong)
        if rows is None:
            return
        promised += rows
    if promised != read:
        raise InvalidRequest(
            f"the footers of {len(paths)} files, {opened.files[0].path} first, promise {promised}"
            f" rows, and Spark reads {read}; {DAMAGED}"
        )


def _footer(system: Any, path: str) -> tuple[int | None, str | None]:
    """How many rows a footer promises, unless it cannot be read; and what is wrong in it."""
    try:
        with system.open_input_file(path) as opened:
            metadata = pq.ParquetFile(opened).metadata
    except (pa.ArrowException, OSError):
        return None, None
    return metadata.num_rows, contradiction(metadata, path)


def contradiction(metadata: Any, path: str) -> str | None:
    """What in a footer cannot all be true: numbers of rows and of values; None if all may be."""
    groups = [metadata.row_group(number) for number in range(metadata.num_row_groups)]
    rows = sum(group.num_rows for group in groups)
    if rows != metadata.num_rows:
        return (
            f"the footer of {path} says that it has {metadata.num_rows} rows, and that its parts have {rows}"
        )
    for group in groups:
        for place in range(metadata.num_columns):
            column = group.column(place)
            if metadata.schema.column(place).max_repetition_level:
                continue
            if column.num_values < group.num_rows:
                return (
                    f"the footer of {path} says that a part has {group.num_rows} rows, and that its column"
                    f" {column.path_in_schema} has only {column.num_values} values; {DAMAGED}"
                )
    return None
