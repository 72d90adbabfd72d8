"""Which rows of a run with totals count, with what they bring, and why others are left out."""

from collections import Counter
from typing import Any

import pytest
from pyspark.sql import DataFrame

from fanin.spark.ack.coalescer import pages_from_rows
from fanin.spark.ack.input_schema import InputSchema, check_columns, normalize
from fanin.spark.ack.page_merger import merge
from tests.spark.given import Given, batch, block, items_of

TOTALS = batch(7, 1_000, totals={"cents": 0, "rows": 0})
PLAIN = batch(8, 1_000)
ROWS_ONLY = batch(9, 1_000, totals={"rows": 0})
SOURCE = Given((TOTALS, PLAIN, ROWS_ONLY))
GROUP = block(TOTALS, 100, 500)

Found = tuple[dict[tuple[int, int], list[Any]], Counter[tuple[str | None, str]]]

pytestmark = pytest.mark.usefixtures("any_ansi")


def merged(rows: DataFrame, *totals: str, batch_id: int | None = None, source: Given = SOURCE) -> Found:
    """What each item brings, and why it failed, by batch and ordinal; and the rejects by value and reason."""
    schema = InputSchema.of(rows.columns, batch_id)
    named = normalize(rows, schema, check_columns(totals, rows.schema))
    found = merge(pages_from_rows(named, schema, source, totals), schema, source).collect()
    marks = items_of(tuple(row)[:4] for row in found if row["mask"])
    items: dict[tuple[int, int], list[Any]] = {item: [] for item in marks}
    for row in found:
        for ordinal, *values in row["brought"] or ():
            items[row["batch_id"], ordinal] = [*values, *([row["why"]] if row["why"] else [])]
    return items, Counter((row["value"], row["reason"]) for row in found if row["reason"])


def test_a_value_for_a_total_that_the_batch_does_not_have_is_a_reject(spark):
    # Given rows of batches with both totals, with one, with none, and without a row
    rows = spark.createDataFrame(
        [(7, 0, 1, 2), (9, 0, 1, None), (9, 1, 1, 0), (8, 0, None, None), (8, 1, 0, None), (5, 0, 1, 1)],
        "batch_id long, ordinal long, rows long, cents long",
    )

    items, rejects = merged(rows, "rows", "cents")

    assert items == {(7, 0): [1, 2], (9, 0): [1, None], (8, 0): []}
    pairs = [(9, 1), (8, 1), (5, 0)]
    assert rejects == {(f'{{"batch_id": {b}, "ordinal": {n}}}', "foreign"): 1 for b, n in pairs}


def test_one_row_of_an_item_counts_unless_their_values_differ(spark):
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

    items, rejects = merged(rows, "rows")

    assert items == {(7, 101): [5], (7, 103): [], (7, 105): [1]}
    told = {(value and value.rpartition(":")[2], reason): count for (value, reason), count in rejects.items()}
    assert told == {
        ("1", "duplicate"): 2,
        ("2", "conflicting"): 3,
        ("3", "duplicate"): 1,
        ("4", "conflicting"): 2,
        ("5", "malformed"): 1,
        ("nonsense", "malformed"): 1,
        (None, "null"): 1,
    }


def test_an_item_that_failed_brings_what_the_failure_brings(spark):
    # Given items that are acknowledged and failed, and failures that disagree
    rows = spark.createDataFrame(
        [(0, None, 5), (0, "torn", 2), (1, None, 5), (1, "torn", 2), (1, "lost", 3), (2, "torn", 4)],
        "ordinal int, reason string, rows int",
    )

    items, rejects = merged(rows, "rows", batch_id=7)

    assert items == {(7, 0): [2, "torn"], (7, 2): [4, "torn"]}
    assert rejects == {('{"ordinal": 0}', "duplicate"): 1, ('{"ordinal": 1}', "conflicting"): 3}


def test_totals_may_have_any_name(spark):
    """Those of columns that the steps make for themselves, too."""
    names = ("value", "values", "name", "index")
    source = Given((batch(7, 1_000, totals=dict.fromkeys(names, 0)),))
    rows = spark.createDataFrame([(3, 1, 2, 3, 4)], f"ordinal int, {', '.join(f'{n} int' for n in names)}")

    items, _ = merged(rows, *names, batch_id=7, source=source)

    assert items == {(7, 3): [1, 2, 3, 4]}
