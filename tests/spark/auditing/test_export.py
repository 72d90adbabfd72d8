"""Exports as a job reads them: exactly what the manifest names."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from fanin.errors import ExportDamaged
from fanin.spark.auditing import export
from fanin.spark.auditing.export import line
from tests.spark.export_writer import write_export

AT = 1_790_000_000_123


def rows(*numbers: int) -> list[str]:
    return [line({"n": {"N": str(n)}}) for n in numbers]


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return write_export(tmp_path, "words", [rows(1, 2), [], rows(3)], at=AT, prefix="daily")


def test_an_export_is_read_by_its_folder(spark: SparkSession, home: Path) -> None:
    found = export.read(spark, f"{home}/")

    assert (found.folder, found.at, sorted(found.items.values())) == (str(home), AT, [0, 1, 2])
    lines = found.lines(spark)
    assert sorted(json.loads(row["value"])["Item"]["n"]["N"] for row in lines.collect()) == ["1", "2", "3"]
    assert lines.select("source").distinct().count() == 2
    found.check(lines)


def test_files_that_the_manifest_does_not_name_are_ignored(spark: SparkSession, home: Path) -> None:
    (home / "data" / "stray.json").write_text(rows(9)[0])

    found = export.read(spark, str(home))

    assert found.lines(spark).count() == 3


def test_an_export_of_an_empty_table_has_no_lines(spark: SparkSession, tmp_path: Path) -> None:
    found = export.read(spark, str(write_export(tmp_path, "words", [[]], at=AT)))
    lines = found.lines(spark)
    assert (lines.columns, lines.count()) == (["value", "source"], 0)
    found.check(lines)


def test_a_folder_without_an_export_is_refused_with_what_to_name(spark: SparkSession, tmp_path: Path) -> None:
    with pytest.raises(ExportDamaged, match="name the folder AWSDynamoDB/<id> of one"):
        export.read(spark, str(tmp_path))
