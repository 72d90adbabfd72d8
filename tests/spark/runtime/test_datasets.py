"""A dataset replaces that of an earlier run, and nothing else."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from fanin.errors import InvalidRequest
from fanin.spark.runtime.datasets import replace_dataset
from fanin.spark.runtime.files import Folder
from tests.spark.datasets import parquet
from tests.unit.spark.runtime.file_systems import Raised


def test_a_dataset_replaces_that_of_an_earlier_run(spark: SparkSession, tmp_path: Path) -> None:
    folder = tmp_path / "made"
    for count in (3, 2):
        made = replace_dataset(spark.range(count), str(folder))
        assert {row["id"] for row in made.collect()} == set(range(count))
    (folder / "_temporary").mkdir()  # of a driver that died
    assert replace_dataset(spark.range(1), f"file:{folder}/").count() == 1


def test_the_name_of_a_folder_is_no_pattern(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "a1").mkdir()
    for _ in range(2):
        assert replace_dataset(spark.range(3), f"{tmp_path}/a[1] {{x}}*").count() == 3
    assert not list((tmp_path / "a1").iterdir())


def test_a_file_system_that_does_not_answer_is_left_to_spark(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Given a volume of Databricks, which only Spark itself reads and writes
    def look(_folder: Folder, _pattern: str) -> None:
        raise Raised("java.lang.UnsupportedOperationException: No operations allowed on this path")

    monkeypatch.setattr(Folder, "look", look)
    assert replace_dataset(spark.range(3), f"{tmp_path}/made").count() == 3


@pytest.mark.parametrize(
    "name", ["orders.csv", "day=1/part-0.parquet", "2026/x", "partition", "part", "pa", "_delta_log/0.json"]
)
def test_a_folder_with_anything_else_stays_as_it_is(spark: SparkSession, tmp_path: Path, name: str) -> None:
    # Given a folder with a dataset, and something of somebody's
    replace_dataset(spark.range(3), str(tmp_path))
    mine = tmp_path / name
    mine.parent.mkdir(exist_ok=True)
    mine.write_text("mine")
    before = sorted(tmp_path.rglob("*"))

    # When a dataset is to replace it, then nothing is deleted, and the error names what is in the way
    with pytest.raises(
        InvalidRequest, match=f"/{name.partition('/')[0]} is not part of a dataset that Spark wrote"
    ):
        replace_dataset(spark.range(2), str(tmp_path))
    assert sorted(tmp_path.rglob("*")) == before


def test_a_file_is_not_replaced_by_a_dataset(spark: SparkSession, tmp_path: Path) -> None:
    parquet(tmp_path / "part-0.parquet", item=["x"])
    with pytest.raises(InvalidRequest, match=r"part-0\.parquet is not part of a dataset that Spark wrote"):
        replace_dataset(spark.range(2), str(tmp_path / "part-0.parquet"))
    assert (tmp_path / "part-0.parquet").is_file()
