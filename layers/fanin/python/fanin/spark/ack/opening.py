"""Acknowledgements that lie somewhere: opened as rows, and as files that tasks read themselves."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812  as all of Spark's documentation calls it

from fanin.errors import InvalidRequest
from fanin.spark.ack.few import TASKS
from fanin.spark.ack.parquet_files import ParquetFiles
from fanin.spark.inputs.formats import Dataset, DatasetFormat
from fanin.spark.inputs.names import case_sensitive, with_names
from fanin.spark.inputs.opening import Opened, open_input
from fanin.spark.runtime.progress import say
from fanin.spark.runtime.unreadable import marked

SMALL: Final = 4 * 2**20
"""Most bytes of all files for which it is tried whether their rows are few."""


class Acks(NamedTuple):
    """Acknowledgements.

    Attributes:
        rows: with the columns that name items.
        files: that tasks can read themselves; None if Spark reads them.
        small: whether they may be few.
    """

    rows: DataFrame
    files: ParquetFiles | None = None
    small: bool = False


def open_acks(
    spark: SparkSession,
    dataset: Dataset,
    totals: Sequence[str],
    replaced: Mapping[str, str],
    *,
    by_ordinal: bool,
) -> Acks:
    """Open a dataset of acknowledgements.

    Args:
        spark: the session.
        dataset: the dataset.
        totals: that items bring something to.
        replaced: as for ``open_input``.
        by_ordinal: objects of JSON have an ordinal, and no item.

    Raises:
        InvalidRequest: the dataset cannot be read.
    """
    name, other = ("ordinal", "item") if by_ordinal else ("item", "ordinal")
    fields = list(dict.fromkeys((name, other, "batch_id", "reason", *totals)))
    opened = open_input(spark, dataset, fields=fields, replaced=replaced)
    rows = with_names(opened.rows, fields)
    if opened.format is DatasetFormat.JSON:
        _check_totals(rows, dataset.place, totals)
        rows = rows.withColumn(name, F.coalesce(name, other)).drop(other)
    if opened.format in {DatasetFormat.CSV, DatasetFormat.JSON} and name in rows.columns:
        rows = rows.withColumn(name, F.coalesce(marked(), name))
    files = opened.files
    small = files is not None and len(files) <= TASKS and sum(file.size for file in files) <= SMALL
    return Acks(rows, _parquet_files(spark, opened, dataset.place, fields), small)


def _check_totals(rows: DataFrame, path: str, totals: Sequence[str]) -> None:
    """Refuse a total that no object of JSON has, since any text would have it as a field.

    Raises:
        InvalidRequest: no row has a value for a total.
    """
    for total in totals:
        if rows.where(F.col(total).isNotNull()).isEmpty() and not rows.isEmpty():
            raise InvalidRequest(f"no row of {path} has a field {total} with what its item brings")


def _parquet_files(
    spark: SparkSession, opened: Opened, path: str, fields: Sequence[str]
) -> ParquetFiles | None:
    """The files that tasks can read themselves.

    Returns:
        None if folders have columns that the files do not have, or if pyarrow cannot read the files here,
        perhaps because only Spark has the credentials; then Spark reads them.
    """
    if opened.format is not DatasetFormat.PARQUET or not opened.files:
        return None
    folders = {
        part.partition("=")[0].lower()
        for file in opened.files
        for part in file.path.split("/")[:-1]
        if "=" in part
    }
    if folders & set(fields):
        return None
    try:
        files = ParquetFiles(path, opened.files, exact=case_sensitive(spark), spark=spark)
        _ = files.schema  # of the first file, which has to be opened for it
    except (pa.ArrowException, OSError) as error:
        first = opened.files[0].path
        say(f"ack: pyarrow cannot read {first}, so Spark reads all files, slower: {error}", sys.stderr)
        return None
    return files
