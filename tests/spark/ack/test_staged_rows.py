"""Which rows of a run with totals count, with what they bring, and why others are left out."""

from __future__ import annotations

from collections import Counter
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

from fanin.errors import InvalidRequest
from fanin.spark.ack.input_schema import InputSchema
from fanin.spark.ack.staged_rows import stage_rows
from fanin.spark.ack.values import check_columns, sums
from tests.spark.given import Given, batch, block

TOTALS = batch(7, 1_000, totals={"cents": 0, "rows": 0})
PLAIN = batch(8, 1_000)
ROWS_ONLY = batch(9, 1_000, totals={"rows": 0})
SOURCE = Given((TOTALS, PLAIN, ROWS_ONLY))
GROUP = block(TOTALS, 100, 500)
EXACT = 2**53

pytestmark = pytest.mark.usefixtures("any_ansi")


def staged(rows: DataFrame, folder: Path, *totals: str, batch_id: int | None = None) -> list[tuple[Any, ...]]:
    """Batch, ordinal, values and reason of rows, without order."""
    schema = InputSchema.of(rows.columns, batch_id)
    names = check_columns(totals, rows.schema)
    found = stage_rows(rows, schema, SOURCE, str(folder / "rows"), totals=names)
    return [tuple(row) for row in found.select("batch_id", "ordinal", "values", "reason").collect()]


def of_one(spark: SparkSession, folder: Path, kind: str, values: list[Any]) -> dict[Any, tuple[Any, Any]]:
    """What becomes of values of a type: value and reason, by the ordinals that they are given."""
    rows = spark.createDataFrame(list(enumerate(values)), f"ordinal int, rows {kind}")
    names = check_columns(["rows"], rows.schema)
    schema = InputSchema.of(rows.columns, 7)
    found = stage_rows(rows, schema, SOURCE, str(folder / "rows"), totals=names).collect()
    by_value = {}
    for row in found:
        ordinal = int("".join(filter(str.isdigit, row["value"])))
        by_value[values[ordinal]] = (row["values"][0], row["reason"])
        assert (row["ordinal"] is None) == (row["reason"] is not None)
        if row["reason"]:
            assert row["detail"].startswith("total rows is not a whole number within ±2⁵³: ")
    return by_value


@pytest.mark.parametrize(
    ("kind", "good", "bad"),
    [
        ("long", {0: 0, 5: 5, -EXACT: -EXACT, EXACT: EXACT, None: None}, [EXACT + 1, -EXACT - 1, -(2**63)]),
        ("tinyint", {-128: -128, None: None}, []),
        (
            "double",
            {3.0: 3, -0.0: 0, float(EXACT): EXACT, None: None},
            [0.5, -2.5, float(EXACT + 2), 1e300, float("inf"), float("-inf"), float("nan")],
        ),
        ("float", {16.0: 16}, [1.5]),
        (
            "decimal(38,2)",
            {Decimal("812.00"): 812, Decimal(-EXACT): -EXACT, None: None},
            [Decimal("0.01"), Decimal(EXACT + 1), Decimal(10) ** 35],
        ),
        ("decimal(38,38)", {Decimal("0E-38"): 0}, [Decimal("1E-38"), Decimal("1E-4")]),
        ("decimal(4,2)", {Decimal("99.00"): 99}, [Decimal("99.99")]),
        (
            "string",
            {"812": 812, "-7": -7, "5.0": 5, "007": 7, str(EXACT): EXACT, None: None},
            [
                "",
                " 1",
                "1\n",
                "1.5",
                "1e3",
                "x",
                "+1",
                "--1",
                "9" * 18,
                "9" * 40,
                "1_000",
                "٣",
                "NaN",
                "true",
            ],
        ),
        ("void", {None: None}, []),
    ],
    ids=lambda case: case if isinstance(case, str) else "",
)
def test_whole_numbers_count_and_other_values_are_rejects(
    spark: SparkSession, tmp_path: Path, kind: str, good: dict[Any, int | None], bad: list[Any]
) -> None:
    found = of_one(spark, tmp_path, kind, [*good, *bad])

    assert {value: one for value, (one, reason) in found.items() if reason is None} == good
    rejects = {repr(value): reason for value, (_, reason) in found.items() if reason is not None}
    assert rejects == {repr(value): "malformed" for value in bad}


@pytest.mark.parametrize("kind", ["boolean", "binary", "date", "timestamp", "array<int>", "struct<a:int>"])
def test_a_column_that_cannot_hold_numbers_is_refused(spark: SparkSession, kind: str) -> None:
    rows = spark.createDataFrame([], f"item string, rows {kind}")

    with pytest.raises(InvalidRequest, match="the column rows has the type"):
        check_columns(["rows"], rows.schema)


@pytest.mark.parametrize(
    ("totals", "why"),
    [
        (["bytes"], "the input has no column bytes .* it has: item, ordinal, rows"),
        (["ROWS"], "the name of a total has at most 32 lower-case letters"),
        (["rows", "rows"], "each total needs a name of its own"),
        (["a", "b", "c", "d", "e"], "at most 4 totals"),
        (["ordinal"], "the column ordinal does not hold a total"),
    ],
)
def test_totals_need_names_and_columns(spark: SparkSession, totals: list[str], why: str) -> None:
    rows = spark.createDataFrame([], "item string, ordinal long, rows long")

    with pytest.raises(InvalidRequest, match=why):
        check_columns(totals, rows.schema)


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


def test_sums_may_be_larger_than_a_bigint(spark: SparkSession) -> None:
    rows = spark.range(3_000).selectExpr(f"array({EXACT}L, null, -{EXACT}L) AS values")

    assert sums(rows, ("a", "b", "c")) == {"a": 3_000 * EXACT, "b": 0, "c": -3_000 * EXACT}
