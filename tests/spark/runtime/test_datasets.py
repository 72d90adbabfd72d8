"""A dataset replaces that of an earlier run, and nothing else."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from fanin.errors import InvalidRequest
from fanin.spark.runtime.datasets import replace_dataset
from tests.spark.datasets import parquet


def test_a_dataset_replaces_that_of_an_earlier_run(spark: SparkSession, tmp_path: Path) -> None:
    folder = tmp_path / "made"
    for count in (3, 2):
        made = replace_dataset(spark.range(count), str(folder))
        assert {row["id"] for row in made.collect()} == set(range(count))
    (folder / "_temporary").mkdir()  # of a driver that died
    assert replace_dataset(spark.range(1), f"file:{folder}/").count() == 1


@pytest.mark.parametrize("name", ["orders.csv", "day=1/part-0.parquet", "2026/x", "partition", "part", "pa"])
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
