"""Columns of totals: which values count, and which names and types a total may have."""

from decimal import Decimal

import pytest

from fanin.errors import InvalidRequest
from fanin.spark.ack.coalescing import sum_of
from fanin.spark.ack.input_schema import check_columns, with_values

EXACT = 2**53

pytestmark = pytest.mark.usefixtures("any_ansi")


@pytest.mark.parametrize(
    ("kind", "good", "bad"),
    [
        ("long", {0: 0, 5: 5, -EXACT: -EXACT, EXACT: EXACT, None: None}, [EXACT + 1, -EXACT - 1, -(2**63)]),
        (
            "double",
            {3.0: 3, -0.0: 0, float(EXACT - 1): EXACT - 1, None: None},
            [0.5, -2.5, float(EXACT), -float(EXACT), float(EXACT + 2), 1e300, *map(float, ("inf", "nan"))],
        ),
        (
            "float",
            {16.0: 16, 2.0**24 - 1: 2**24 - 1, 1 - 2.0**24: 1 - 2**24},
            [1.5, 2.0**24, -(2.0**24), 2.0**53],
        ),
        (
            "decimal(38,2)",
            {Decimal("812.00"): 812, Decimal(-EXACT): -EXACT, None: None},
            [Decimal("0.01"), Decimal(EXACT + 1), Decimal(10) ** 35],
        ),
        ("decimal(38,38)", {Decimal("0E-38"): 0}, [Decimal("1E-38"), Decimal("1E-4")]),
        (
            "string",
            {"812": 812, "-7": -7, "5.0": 5, "007": 7, str(EXACT): EXACT, None: None},
            ["", " 1", "1\n", "1.5", "1e3", "x", "+1", "--1", "9" * 18, "9" * 40, "1_000", "٣", "NaN"],
        ),
        ("void", {None: None}, []),
    ],
    ids=lambda case: case if isinstance(case, str) else "",
)
def test_whole_numbers_count_and_other_values_are_odd(spark, kind, good, bad):
    rows = spark.createDataFrame(list(enumerate([*good, *bad])), f"at int, rows {kind}")

    found = with_values(rows, check_columns(["rows"], rows.schema)).orderBy("at").collect()

    values = dict(zip([*map(repr, good), *map(repr, bad)], found, strict=True))
    assert {value: row["values"][0] for value, row in values.items() if row["odd"] is None} == {
        repr(value): number for value, number in good.items()
    }
    odd = {value: row["odd"] for value, row in values.items() if row["odd"] is not None}
    assert odd.keys() == set(map(repr, bad))
    assert all(why.startswith("total rows is not a whole number within ±2⁵³: ") for why in odd.values())


@pytest.mark.parametrize("kind", ["boolean", "date", "array<int>"])
def test_a_column_that_cannot_hold_numbers_is_refused(spark, kind):
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
def test_totals_need_names_and_columns(spark, totals, why):
    rows = spark.createDataFrame([], "item string, ordinal long, rows long")

    with pytest.raises(InvalidRequest, match=why):
        check_columns(totals, rows.schema)


def test_sums_may_be_larger_than_a_bigint(spark):
    rows = spark.range(3_000).selectExpr(f"array(array(id, {EXACT}L, null, -{EXACT}L)) AS brought")
    assert list(rows.agg(*map(sum_of, (1, 2, 3))).collect()[0]) == [3_000 * EXACT, 0, -3_000 * EXACT]
