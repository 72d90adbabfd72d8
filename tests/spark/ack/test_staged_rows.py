"""Which rows of a run with totals count, with what they bring, and why others are left out."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

from fanin.spark.ack.input_schema import InputSchema
from fanin.spark.ack.staged_rows import check_columns, stage_rows
from tests.spark.given import Given, batch, block

TOTALS = batch(7, 1_000, totals={"cents": 0, "rows": 0})
PLAIN = batch(8, 1_000)
ROWS_ONLY = batch(9, 1_000, totals={"rows": 0})
SOURCE = Given((TOTALS, PLAIN, ROWS_ONLY))
GROUP = block(TOTALS, 100, 500)

pytestmark = pytest.mark.usefixtures("any_ansi")


def staged(rows: DataFrame, folder: Path, *totals: str, batch_id: int | None = None) -> list[tuple[Any, ...]]:
    """Batch, ordinal, values and reason of rows, without order."""
    schema = InputSchema.of(rows.columns, batch_id)
    names = check_columns(totals, rows.schema)
    found = stage_rows(rows, schema, SOURCE, str(folder / "rows"), totals=names)
    return [tuple(row) for row in found.select("batch_id", "ordinal", "values", "reason").collect()]


def test_a_value_for_a_total_that_the_batch_does_not_have_is_a_reject(
    spark: SparkSession, tmp_path: Path
) -> None:
    # Given rows of batches with both totals, with one, with none, and without a row
    rows = spark.createDataFrame(
        [(7, 0, 1, 2), (9, 0, 1, None), (9, 1, 1, 0), (8, 0, None, None), (8, 1, 0, None), (5, 0, 1, 1)],
        "batch_id long, ordinal long, rows long, cents long",
    )

    found = staged(rows, tmp_path, "rows", "cents")

    assert sorted(found, key=str) == sorted(
        [
            (7, 0, [1, 2], None),
            (9, 0, [1, None], None),
            (9, None, [1, 0], "foreign"),
            (8, 0, [None, None], None),
            (8, None, [0, None], "foreign"),
            (None, None, [1, 1], "foreign"),
        ],
        key=str,
    )


def test_one_row_of_an_item_counts_unless_their_values_differ(spark: SparkSession, tmp_path: Path) -> None:
    # Given items that several rows name: with the same values, with others, and with a row that is wrong
    rows = spark.createDataFrame(
        [
            *((f"{GROUP.prefix}:1", "5"), (f"{GROUP.prefix}:1", "5"), (f"{GROUP.prefix}:1", "5.0")),
            *((f"{GROUP.prefix}:2", "5"), (f"{GROUP.prefix}:2", "6"), (f"{GROUP.prefix}:2", "5")),
            *((f"{GROUP.prefix}:3", None), (f"{GROUP.prefix}:3", "0")),
            *((f"{GROUP.prefix}:4", None), (f"{GROUP.prefix}:4", "1")),
            *((f"{GROUP.prefix}:5", "x"), (f"{GROUP.prefix}:5", "1")),
            *((None, "1"), ("nonsense", "1")),
        ],
        "item string, rows string",
    )

    found = Counter((ordinal, reason) for _, ordinal, _, reason in staged(rows, tmp_path, "rows"))

    assert found == {
        (101, None): 1,
        (101, "duplicate"): 2,
        (102, "conflicting"): 3,
        (103, None): 1,
        (103, "duplicate"): 1,
        (104, "conflicting"): 2,
        (105, None): 1,
        (None, "malformed"): 2,
        (None, "null"): 1,
    }


def test_an_item_that_failed_brings_what_the_failure_brings(spark: SparkSession, tmp_path: Path) -> None:
    # Given items that are acknowledged and failed, and failures that disagree
    rows = spark.createDataFrame(
        [(0, None, 5), (0, "torn", 2), (1, None, 5), (1, "torn", 2), (1, "lost", 3), (2, "torn", 4)],
        "ordinal int, reason string, rows int",
    )

    found = staged(rows, tmp_path, "rows", batch_id=7)

    assert Counter((ordinal, values[0], reason) for _, ordinal, values, reason in found) == {
        (0, 2, None): 1,
        (0, 5, "duplicate"): 1,
        (1, 5, "conflicting"): 1,
        (1, 2, "conflicting"): 1,
        (1, 3, "conflicting"): 1,
        (2, 4, None): 1,
    }


def test_totals_may_have_any_name(spark: SparkSession, tmp_path: Path) -> None:
    """Those of columns that the steps make for themselves, too."""
    names = ("value", "values", "name", "index")
    source = Given((batch(7, 1_000, totals=dict.fromkeys(names, 0)),))
    rows = spark.createDataFrame([(3, 1, 2, 3, 4)], f"ordinal int, {', '.join(f'{n} int' for n in names)}")

    found = stage_rows(rows, InputSchema.of(rows.columns, 7), source, str(tmp_path / "rows"), totals=names)

    assert [(row["ordinal"], row["values"]) for row in found.collect()] == [(3, [1, 2, 3, 4])]
