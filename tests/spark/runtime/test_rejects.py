"""Rejects as a dataset, counted by reason."""

from pathlib import Path

from pyspark.sql import SparkSession

from fanin.spark.runtime.rejects import SCHEMA, Reason, write_none, write_rejects


def test_rejects_are_written_and_counted_by_reason(spark: SparkSession, tmp_path: Path) -> None:
    rows = [
        ("x", Reason.NULL.value, "why"),
        (None, Reason.NULL.value, None),
        ("y", Reason.GONE.value, "late"),
    ]

    counts = write_rejects(spark.createDataFrame(rows, SCHEMA), f"{tmp_path}/rejects")

    assert counts == {"null": 2, "gone": 1}
    written = spark.read.parquet(f"{tmp_path}/rejects")
    assert set(map(tuple, written.collect())) == {
        ("x", "null", "why"),
        (None, "null", None),
        ("y", "gone", "late"),
    }


def test_rejects_of_an_earlier_run_are_replaced(spark: SparkSession, tmp_path: Path) -> None:
    folder = f"{tmp_path}/rejects"
    write_rejects(spark.createDataFrame([("x", Reason.NULL.value, None)], SCHEMA), folder)

    assert write_rejects(spark.createDataFrame([], SCHEMA), folder) == {}
    assert spark.read.schema(SCHEMA).parquet(folder).count() == 0


def test_no_rejects_are_written_as_an_empty_dataset_is(spark: SparkSession, tmp_path: Path) -> None:
    # Given rejects of an earlier run
    folder = f"{tmp_path}/rejects"
    write_rejects(spark.createDataFrame([("x", Reason.NULL.value, None)], SCHEMA), folder)

    # When this run has none
    assert write_none(spark, folder) == {}

    # Then a dataset without rows is there, of the same columns
    written = spark.read.parquet(folder)
    assert written.count() == 0
    assert [(field.name, field.dataType) for field in written.schema] == [
        (field.name, field.dataType) for field in SCHEMA
    ]
