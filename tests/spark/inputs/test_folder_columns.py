"""Columns from names of folders; one that the files have, too, would have two values in a row."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from fanin.errors import InvalidRequest
from fanin.spark.inputs.folder_columns import by_layout
from fanin.spark.inputs.formats import DatasetFormat
from fanin.spark.inputs.listing import FoundFile
from fanin.spark.inputs.opening import Input, open_input
from tests.spark.datasets import parquet
from tests.spark.setting import setting


def written(spark: SparkSession, folder: Path, format_: DatasetFormat) -> Input:
    """Two files in folders ``Month=…/Day=…``, of which the second has a column ``day``, too."""
    for number, name in enumerate(("Month=11/Day=3", "Month=11/Day=4")):
        place = folder / name
        if format_ is DatasetFormat.PARQUET:
            parquet(place / "x.parquet", **({"day": [5]} if number else {}), item=["a"])
        elif format_ is DatasetFormat.CSV:
            place.mkdir(parents=True)
            (place / "x.csv").write_text("day,item\n5,a\n" if number else "item\na\n")
        else:
            columns = ["'a' as item", *(["5L as day"] if number else [])]
            spark.range(1).selectExpr(*columns).write.orc(str(place))
    return Input(str(folder), format_)


ALIKE = (DatasetFormat.PARQUET, DatasetFormat.ORC, DatasetFormat.CSV)


@pytest.mark.parametrize("format_", ALIKE)
def test_a_column_of_files_and_folders_is_refused_with_either_reader_of_spark(
    spark: SparkSession, tmp_path: Path, format_: DatasetFormat
) -> None:
    given = written(spark, tmp_path, format_)
    told = "the column Day is in the files and in the names of folders,"
    for fields in ([], ["item", "DAY"]):
        with pytest.raises(InvalidRequest, match=told):
            open_input(spark, given, fields=fields)
    if format_ is not DatasetFormat.CSV:
        with (
            setting(spark, "spark.sql.sources.useV1SourceList", ""),
            pytest.raises(InvalidRequest, match=told),
        ):
            open_input(spark, given, fields=[])


def test_the_error_names_a_folder_whose_own_path_can_be_read(spark: SparkSession, tmp_path: Path) -> None:
    # Given a folder named for a column of its file
    parquet(tmp_path / "in" / "day=3" / "x.parquet", day=[5])
    with pytest.raises(InvalidRequest, match=r"such as file:\S+/in/day=3[;,] .*read one folder by its path"):
        open_input(spark, Input(str(tmp_path / "in")), fields=["day"])

    # When that folder is the dataset, then the column is the file's
    rows = open_input(spark, Input(str(tmp_path / "in" / "day=3")), fields=["day"]).rows
    assert [row["day"] for row in rows.collect()] == [5]


@pytest.mark.parametrize("format_", ALIKE[:2])
def test_a_column_that_the_job_does_not_need_may_be_in_both(
    spark: SparkSession, tmp_path: Path, format_: DatasetFormat
) -> None:
    given = written(spark, tmp_path, format_)
    rows = open_input(spark, given, fields=["item"]).rows
    assert [row["item"] for row in rows.collect()] == ["a", "a"]


def test_names_are_compared_as_the_session_does(spark: SparkSession, tmp_path: Path) -> None:
    parquet(tmp_path / "Day=3" / "x.parquet", day=[5])
    with setting(spark, "spark.sql.caseSensitive", "true"):
        rows = open_input(spark, Input(str(tmp_path)), fields=[]).rows
        assert [(row["day"], row["Day"]) for row in rows.collect()] == [(5, 3)]


def test_files_in_folders_and_files_with_the_column_may_be_together(
    spark: SparkSession, tmp_path: Path
) -> None:
    parquet(tmp_path / "day=3" / "x.parquet", item=["a"])
    parquet(tmp_path / "y.parquet", day=[5], item=["b"])
    rows = open_input(spark, Input(str(tmp_path)), fields=[]).rows
    assert sorted((row["item"], row["day"]) for row in rows.collect()) == [("a", 3), ("b", 5)]


def test_files_are_told_apart_by_the_columns_of_their_folders() -> None:
    day, month, bare = (
        FoundFile(f"file:/in=1/{name}", 1, 1) for name in ("day=1/x", "m%3Dy=2/sub/day=1/x", "sub/x")
    )

    assert by_layout("file:/in=1", [day, month, bare]) == {
        ("day",): [day],
        ("m=y", "day"): [month],
        (): [bare],
    }
    assert by_layout(day.path, [day]) == {(): [day]}
