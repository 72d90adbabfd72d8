"""Datasets that a job writes in the place of those of an earlier run."""

from __future__ import annotations

from typing import Final

from pyspark.sql import DataFrame, SparkSession

from fanin.errors import InvalidRequest
from fanin.spark.runtime.files import Folder

NAME_ANOTHER: Final = "This folder was left as it is; name one that this job has for itself"
_OTHERS: Final = "{[!p._]*,p,p[!a]*,pa,pa[!r]*,par,par[!t]*,part,part[!-]*}"
"""Names that do not begin with ``part-``, ``_`` or a dot, as those of a dataset do. A glob has no "not", so
it lists each way to differ."""


def check_replaceable(spark: SparkSession, folder: str) -> bool:
    """Refuse a folder that holds something other than a dataset, or is a file.

    Returns:
        Whether it is there.

    Raises:
        InvalidRequest: names what is in the way.
    """
    there, other = Folder(spark, folder).look(_OTHERS)
    if other is not None:
        raise InvalidRequest(
            f"{folder} would be replaced by a dataset, but {other} is not part of a dataset that Spark wrote."
            f" {NAME_ANOTHER}"
        )
    return there


def replace_dataset(rows: DataFrame, folder: str) -> DataFrame:
    """Write a dataset as Parquet.

    Args:
        rows: what to write.
        folder: where to write it; a dataset that is there is deleted.

    Returns:
        The DataFrame that reads it.

    Raises:
        InvalidRequest: there is something else in the folder, which stays as it is.
    """
    spark = rows.sparkSession
    check_replaceable(spark, folder)
    rows.write.mode("overwrite").parquet(folder)
    return spark.read.schema(rows.schema).parquet(folder)
