"""Reading a dataset, or an empty folder, or a path where nothing is."""

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from fanin.errors import InvalidRequest
from fanin.spark.runtime.formats import load


def test_a_dataset_is_read(spark: SparkSession, tmp_path: Path) -> None:
    spark.range(3).write.parquet(f"{tmp_path}/rows")
    assert load(spark, "rows", lambda: spark.read.parquet(f"{tmp_path}/rows"), "id long").count() == 3


def test_a_folder_without_files_has_no_rows_and_the_columns_that_are_given(
    spark: SparkSession, tmp_path: Path
) -> None:
    rows = load(spark, str(tmp_path), lambda: spark.read.parquet(str(tmp_path)), "id long, text string")
    assert (rows.columns, rows.count()) == (["id", "text"], 0)


def test_a_path_where_nothing_is_is_refused_by_its_name(spark: SparkSession, tmp_path: Path) -> None:
    path = f"{tmp_path}/nowhere"
    with pytest.raises(InvalidRequest, match=f"{path} cannot be read: "):
        load(spark, path, lambda: spark.read.parquet(path), "id long")
