"""Folders that are tables are not read as plain files."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from fanin.errors import InvalidRequest
from tests.spark.datasets import opened, parquet


@pytest.fixture
def delta(tmp_path: Path) -> Path:
    """A Delta table as its log describes it: of its two files one counts."""
    parquet(tmp_path / "t" / "day=1" / "old.parquet", item=["deleted"])
    parquet(tmp_path / "t" / "day=1" / "new.parquet", item=["kept"])
    log = tmp_path / "t" / "_delta_log"
    log.mkdir()
    add = {"add": {"path": "day=1/new.parquet", "dataChange": True}}
    (log / "00000000000000000000.json").write_text(json.dumps(add))
    return tmp_path / "t"


@pytest.fixture
def iceberg(tmp_path: Path) -> Path:
    """The folders of an Iceberg table, with one snapshot."""
    parquet(tmp_path / "i" / "data" / "a.parquet", item=["a"])
    (tmp_path / "i" / "metadata").mkdir()
    (tmp_path / "i" / "metadata" / "v1.metadata.json").write_text('{"format-version": 2}')
    return tmp_path / "i"


@pytest.mark.parametrize("below", ["", "day=1", "day=1/old.parquet", "*", ".."])
def test_files_of_a_delta_table_are_not_read_as_they_are(
    spark: SparkSession, delta: Path, below: str
) -> None:
    with pytest.raises(InvalidRequest, match="t is a table of Delta, whose files also hold rows"):
        opened(spark, f"{delta}/{below}".rstrip("/"), "parquet")


@pytest.mark.parametrize("below", ["", "data", "data/a.parquet", ".."])
def test_files_of_an_iceberg_table_are_not_read_as_they_are(
    spark: SparkSession, iceberg: Path, below: str
) -> None:
    with pytest.raises(InvalidRequest, match="i is a table of Iceberg, whose files also hold rows"):
        opened(spark, f"{iceberg}/{below}".rstrip("/"), "parquet")


def test_a_hudi_table_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    parquet(tmp_path / "a.parquet", item=["a"])
    (tmp_path / ".hoodie").mkdir()
    with pytest.raises(InvalidRequest, match="--format table"):
        opened(spark, tmp_path)
