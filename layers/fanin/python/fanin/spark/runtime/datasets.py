"""Datasets that a job writes in the place of those of an earlier run."""

from __future__ import annotations

import re
from typing import Final

from py4j.protocol import Py4JJavaError
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from fanin.errors import InvalidRequest
from fanin.spark.runtime.files import Folder
from fanin.spark.runtime.patterns import escaped

NAME_ANOTHER: Final = "This folder was left as it is; name one that this job has for itself"
_OTHERS: Final = "{[!p._]*,p,p[!a]*,pa,pa[!r]*,par,par[!t]*,part,part[!-]*,_delta_log,.hoodie}"
"""Names that do not begin with ``part-``, ``_`` or a dot, as those of a dataset do; and what makes a folder a
table. A glob has no "not", so it lists each way to differ."""
_UNANSWERED: Final = re.compile("UnsupportedOperationException|UC volume")
"""What Hadoop's file systems say of volumes of Databricks, which only Spark itself reads and writes."""


def check_replaceable(spark: SparkSession, folder: str) -> bool:
    """Refuse a folder that holds something other than a dataset, or is a file.

    Returns:
        Whether it is there, as far as can be known.

    Raises:
        InvalidRequest: names what is in the way.
    """
    try:
        there, other = Folder(spark, folder).look(_OTHERS)
    except Py4JJavaError as error:
        if _UNANSWERED.search(str(error)):
            return False
        raise
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
    return read_dataset(spark, folder, rows.schema)


def read_dataset(spark: SparkSession, folder: str, schema: StructType | str) -> DataFrame:
    """Read a dataset that a job has written; its path is no pattern, whatever signs are in it."""
    return spark.read.schema(schema).parquet(escaped(folder))
