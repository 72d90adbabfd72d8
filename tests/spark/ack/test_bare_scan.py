"""Which DataFrames are nothing but Parquet files."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession

from fanin.spark.ack.bare_scan import bare_files
from tests.spark.datasets import parquet
from tests.spark.setting import setting

Made = Callable[[SparkSession, str], DataFrame]


@pytest.fixture(scope="module")
def folder(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> str:
    """Two files with the columns ``ordinal`` and ``day``, in a folder with a space in its name."""
    folder = f"{tmp_path_factory.mktemp('scan')}/two files"
    spark.range(100).selectExpr("id AS ordinal", "id % 2 AS day").repartition(2).write.parquet(folder)
    return folder


@pytest.mark.parametrize(
    "made",
    [
        lambda spark, folder: spark.read.parquet(folder),
        lambda spark, folder: spark.read.parquet(folder).select("ordinal"),
        lambda spark, folder: spark.read.parquet(folder).drop("day"),
        lambda spark, folder: spark.read.option("mergeSchema", True).parquet(folder),
        lambda spark, folder: spark.read.parquet(f"{folder}/*.parquet"),
        lambda spark, folder: spark.read.schema("ordinal bigint").parquet(folder),
    ],
    ids=["as it is", "columns", "without a column", "merged", "pattern", "schema"],
)
def test_a_scan_of_files_has_them(spark: SparkSession, folder: str, made: Made) -> None:
    files = bare_files(made(spark, folder))
    assert files is not None
    assert files.sizes == {str(path): path.stat().st_size for path in Path(folder).glob("*.parquet")}


@pytest.mark.parametrize(
    "made",
    [
        lambda spark, folder: spark.read.parquet(folder).where("ordinal > 3"),
        lambda spark, folder: spark.read.parquet(folder).limit(3),
        lambda spark, folder: spark.read.parquet(folder).distinct(),
        lambda spark, folder: spark.read.parquet(folder).selectExpr("day AS ordinal"),
        lambda spark, folder: spark.read.parquet(folder).selectExpr("ordinal + 1 AS ordinal"),
        lambda spark, folder: spark.read.parquet(folder).union(spark.read.parquet(folder)),
        lambda spark, folder: spark.read.option("datetimeRebaseMode", "LEGACY").parquet(folder),
        lambda spark, folder: spark.read.parquet(folder).cache(),
        lambda spark, folder: spark.read.text(folder),
        lambda spark, folder: spark.range(3),
    ],
    ids=["rows", "some", "once", "renamed", "sum", "twice", "calendar", "cached", "text", "no files"],
)
def test_anything_else_has_none(spark: SparkSession, folder: str, made: Made) -> None:
    rows = made(spark, folder)
    assert bare_files(rows) is None
    rows.unpersist()


def test_columns_from_names_of_folders_are_not_in_the_files(spark: SparkSession, tmp_path: Path) -> None:
    parquet(tmp_path / "day=0" / "x.parquet", ordinal=[1])
    assert bare_files(spark.read.parquet(f"{tmp_path}")) is None
    assert bare_files(spark.read.parquet(f"{tmp_path}/day=0")) is not None


def test_rows_that_leave_out_the_reasons_of_the_files_are_left_to_spark(
    spark: SparkSession, tmp_path: Path
) -> None:
    parquet(tmp_path / "x.parquet", ordinal=[1], Reason=["torn"])
    rows = spark.read.parquet(f"{tmp_path}")
    assert bare_files(rows) is not None
    assert bare_files(rows.drop("Reason")) is None
    assert bare_files(spark.read.schema("ordinal bigint").parquet(f"{tmp_path}")) is None


def test_files_that_spark_may_skip_are_left_to_spark(spark: SparkSession, folder: str) -> None:
    with setting(spark, "spark.sql.files.ignoreCorruptFiles", "true"):
        assert bare_files(spark.read.parquet(folder)) is None


def test_files_that_cannot_be_read_here_are_left_to_spark(spark: SparkSession, tmp_path: Path) -> None:
    parquet(tmp_path / "x.parquet", ordinal=[1])
    rows = spark.read.parquet(f"{tmp_path}")
    (tmp_path / "x.parquet").write_bytes(b"not Parquet any more")
    assert bare_files(rows) is None
