"""Columns from names of folders, and names of columns, compared as the session does."""

import pytest

from fanin.errors import InvalidRequest
from fanin.spark.inputs.formats import Dataset
from fanin.spark.inputs.listing import FoundFile
from fanin.spark.inputs.names import quoted, with_names
from fanin.spark.inputs.opening import _by_layout, open_input
from tests.spark.datasets import parquet
from tests.spark.setting import setting


def test_of_a_column_in_the_files_too_the_folder_has_the_value(spark, tmp_path):
    parquet(tmp_path / "day=3" / "x.parquet", day=[5], item=["a"])
    rows = open_input(spark, Dataset(tmp_path), fields=[]).rows
    assert [(row["day"], row["item"]) for row in rows.collect()] == [(3, "a")]


def test_in_csv_it_is_refused_since_spark_would_shift_the_columns(spark, tmp_path):
    (tmp_path / "Day=3").mkdir()
    (tmp_path / "Day=3" / "x.csv").write_text("day,item\n5,a\n")
    told = "the column Day is in the header of .*x.csv and in the names of its folders"
    with pytest.raises(InvalidRequest, match=told):
        open_input(spark, Dataset(str(tmp_path), "csv"), fields=["item"])
    # And that folder by its path is read, whose own name is no column
    rows = open_input(spark, Dataset(str(tmp_path / "Day=3"), "csv"), fields=["item"]).rows
    assert [(row["day"], row["item"]) for row in rows.collect()] == [("5", "a")]


def test_names_are_compared_as_the_session_does(spark, tmp_path):
    parquet(tmp_path / "Day=3" / "x.parquet", day=[5])
    with setting(spark, "spark.sql.caseSensitive", "true"):
        rows = open_input(spark, Dataset(tmp_path), fields=[]).rows
        assert [(row["day"], row["Day"]) for row in rows.collect()] == [(5, 3)]


def test_files_in_folders_and_files_with_the_column_may_be_together(spark, tmp_path):
    parquet(tmp_path / "day=3" / "x.parquet", item=["a"])
    parquet(tmp_path / "y.parquet", day=[5], item=["b"])
    rows = open_input(spark, Dataset(tmp_path), fields=[]).rows
    assert sorted((row["item"], row["day"]) for row in rows.collect()) == [("a", 3), ("b", 5)]


def test_files_are_told_apart_by_the_columns_of_their_folders():
    day, month, bare = (
        FoundFile(f"file:/in=1/{name}", 1, 1) for name in ("day=1/x", "m%3Dy=2/sub/day=1/x", "sub/x")
    )

    assert _by_layout("file:/in=1", [day, month, bare]) == {
        ("day",): [day],
        ("m=y", "day"): [month],
        (): [bare],
    }
    assert _by_layout(day.path, [day]) == {(): [day]}


def test_columns_get_the_names_that_a_job_knows(spark):
    frame = spark.createDataFrame([("a", 1, 2)], "ITEM string, `a.b` int, A int")

    assert with_names(frame, ["item", "reason"]).columns == ["item", "a.b", "A"]
    with setting(spark, "spark.sql.caseSensitive", "true"):
        assert with_names(frame, ["item"]).columns == ["ITEM", "a.b", "A"]


def test_two_columns_of_one_name_are_refused(spark):
    with setting(spark, "spark.sql.caseSensitive", "true"):
        frame = spark.createDataFrame([("a", "b")], "item string, Item string")
        assert with_names(frame, ["item"]).columns == ["item", "Item"]
    with pytest.raises(InvalidRequest, match="two columns 'item': 'item' and 'Item'"):
        with_names(frame, ["item"])


def test_a_name_is_quoted():
    assert quoted("a`b.c") == "`a``b.c`"
