"""ISO weeks in Spark, against Python's."""

from datetime import date

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812

from fanin.spark.fleet_report.weeks import Period, label, monday, week_of


@pytest.mark.parametrize(
    ("moment", "week"),
    [
        ("2018-12-31T00:00:00Z", "2019-W01"),
        ("2018-12-30T23:59:59Z", "2018-W52"),
        ("2018-12-31T01:00:00+02:00", "2018-W52"),
        ("2021-01-03T23:00:00Z", "2020-W53"),
        ("2021-01-03T23:00:00-02:00", "2021-W01"),
        ("2024-12-30T00:00:00Z", "2025-W01"),
        ("2012-12-31T12:00:00Z", "2013-W01"),
    ],
)
def test_weeks_are_those_of_iso_8601_in_utc(spark: SparkSession, moment: str, week: str) -> None:
    # Given a moment at the turn of a year, when Spark and Python are asked for its week
    found = (
        spark.range(1).select(F.lit(moment).cast("timestamp").alias("at")).select(week_of("at").alias("week"))
    )

    # Then both say the same Monday
    (row,) = found.collect()
    assert label(row["week"]) == week
    assert row["week"] == monday(week)


@pytest.mark.parametrize(
    ("period", "held"),
    [
        (Period(), [True, True, True, None]),
        (Period(date(2024, 3, 4)), [False, True, True, None]),
        (Period(last=date(2024, 3, 4)), [True, True, False, None]),
        (Period(date(2024, 3, 4), date(2024, 3, 4)), [False, True, False, None]),
    ],
)
def test_a_period_holds_its_weeks(spark: SparkSession, period: Period, held: list[bool | None]) -> None:
    weeks = [(1, date(2024, 2, 26)), (2, date(2024, 3, 4)), (3, date(2024, 3, 11)), (4, None)]
    rows = spark.createDataFrame(weeks, "n int, week date").orderBy("n")

    found = [row[0] for row in rows.select(period.holds("week")).collect()]

    # A week that is null is held by a period without ends only
    assert found == (held if period.first or period.last else [True] * 4)
