"""How many rows the footers of Parquet files promise: Spark does not look whether it reads as many.

Nor does it look at the checksums of gzip: of a page that is damaged it reads other values, and says nothing.
So pages of gzip are unpacked here, too.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import SparkSession

from fanin.errors import InvalidRequest
from fanin.spark.inputs.formats import DatasetFormat
from fanin.spark.inputs.opening import Opened
from fanin.spark.runtime.arrow import ArrowBatches, ddl
from fanin.spark.runtime.places import file_system, place_of
from fanin.spark.runtime.session import most_tasks

_FOOTERS: Final = pa.schema([("rows", pa.int64()), ("wrong", pa.string())])
DAMAGED: Final = "the file is damaged, or its writer is wrong: write it anew"
_FILES: Final = 64
"""Files whose footers a task is worth starting for; the driver reads fewer by itself."""
_BYTES: Final = 64 * 2**20
"""Bytes of files for which the same holds, since they may have to be unpacked."""


def check_promised(spark: SparkSession, opened: Opened, read: int) -> None:
    """Refuse files that have other rows than their footers say.

    Footers that only Spark can read, for which pyarrow has no file system or no credentials, are not looked
    at.

    Args:
        spark: the session.
        opened: a dataset; those that are not Parquet files promise nothing.
        read: how many rows Spark has read.

    Raises:
        InvalidRequest: a footer contradicts itself, or all of them promise another number of rows.
    """
    if opened.format is not DatasetFormat.PARQUET or not opened.files:
        return
    try:
        system, _ = file_system(opened.files[0].path, spark)
    except (pa.ArrowException, OSError):
        return
    promised = promised_rows(spark, system, {place_of(file.path): file.size for file in opened.files})
    if promised is not None and promised != read:
        raise InvalidRequest(
            f"the footers of {len(opened.files)} files, {opened.files[0].path} first, promise {promised}"
            f" rows, and Spark reads {read}; {DAMAGED}"
        )


def promised_rows(spark: SparkSession, system: Any, sizes: Mapping[str, int]) -> int | None:
    """How many rows the footers of Parquet files promise.

    Args:
        spark: the session.
        system: the file system.
        sizes: path → bytes of each file.

    Returns:
        None if some footer cannot be read.

    Raises:
        InvalidRequest: a footer contradicts itself; names the file.
    """
    paths = list(sizes)

    def footers(records: Iterable[ArrowBatches]) -> Iterator[ArrowBatches]:
        for record in records:
            found = [_footer(system, paths[number]) for number in record.column(0).to_pylist()]
            yield pa.RecordBatch.from_arrays(list(zip(*found, strict=True)), schema=_FOOTERS)

    if tasks := min(most_tasks(spark), len(paths) // _FILES + sum(sizes.values()) // _BYTES):
        looked = spark.range(0, len(paths), 1, tasks).mapInArrow(footers, ddl(_FOOTERS))
        told: Iterable[tuple[int | None, str | None]] = looked.collect()
    else:
        told = [_footer(system, path) for path in paths]
    for _, wrong in told:
        if wrong is not None:
            raise InvalidRequest(wrong)
    found = [rows for rows, _ in told if rows is not None]
    return sum(found) if len(found) == len(paths) else None


def _footer(system: Any, path: str) -> tuple[int | None, str | None]:
    """How many rows a footer promises, unless it cannot be read; and what is wrong in the file."""
    try:
        with system.open_input_file(path) as opened:
            file = pq.ParquetFile(opened)
            wrong = contradiction(file.metadata, path) or _torn(file, path)
    except (pa.ArrowException, OSError):
        return None, None
    return file.metadata.num_rows, wrong


def _torn(file: Any, path: str) -> str | None:
    """Unpack the columns of gzip; says what is wrong with one, or None."""
    groups = [file.metadata.row_group(number) for number in range(file.metadata.num_row_groups)]
    packed = {
        column.path_in_schema
        for group in groups
        for column in map(group.column, range(group.num_columns))
        if column.compression == "GZIP"
    }
    try:
        for _ in file.iter_batches(columns=sorted(packed)) if packed else ():
            pass
    except OSError as error:
        if "GZipCodec" in str(error):
            return f"{path} has a page that is not what its checksum of gzip says: {error}; {DAMAGED}"
    return None


def contradiction(metadata: Any, path: str) -> str | None:
    """What in a footer cannot all be true: numbers of rows and of values; None if all may be."""
    groups = [metadata.row_group(number) for number in range(metadata.num_row_groups)]
    rows = sum(group.num_rows for group in groups)
    if rows != metadata.num_rows:
        return (
            f"the footer of {path} says that it has {metadata.num_rows} rows, and that its parts have {rows}"
        )
    flat = [
        place
        for place in range(metadata.num_columns)
        if not metadata.schema.column(place).max_repetition_level
    ]
    for group in groups:
        for place in flat:
            column = group.column(place)
            if column.num_values < group.num_rows:
                return (
                    f"the footer of {path} says that a part has {group.num_rows} rows, and that its column"
                    f" {column.path_in_schema} has only {column.num_values} values; {DAMAGED}"
                )
    return None
