"""Datasets that a job writes in the place of those of an earlier run."""

from __future__ import annotations

from pyspark.sql import DataFrame

from fanin.spark.runtime.files import Folder


def replace_dataset(rows: DataFrame, folder: str) -> DataFrame:
    """Write a dataset as Parquet, and give the DataFrame that reads it.

    Args:
        rows: of the dataset.
        folder: where to write it; a dataset that is there is deleted.

    Raises:
        InvalidRequest: there is something else in the folder; says what. Nothing was deleted.
    """
    spark = rows.sparkSession
    Folder(spark, folder).refuse_others()
    rows.write.mode("overwrite").parquet(folder)
    return spark.read.schema(rows.schema).parquet(folder)
