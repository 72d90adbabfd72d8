"""ISO weeks in Spark, against Python's."""

from datetime import date

from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812

from examples.fleet.analytics.weeks import Period, label, monday, week_of

MOMENTS = {
    "2018-12-31T00:00:00Z": "2019-W01",
    "2018-12-30T23:59:59Z": "2018-W52",
    "2018-12-31T01:00:00+02:00": "2018-W52",
    "2021-01-03T23:00:00Z": "2020-W53",
    "2021-01-03T23:00:00-02:00": "2021-W01",
    "2024-12-30T00:00:00Z": "2025-W01",
    "2012-12-31T12:00:00Z": "2013-W01",
}
"""Moments at the turn of a year, and their weeks."""


def test_weeks_are_those_of_iso_8601_in_utc(spark: SparkSession) -> None:
    moments = spark.createDataFrame([(moment,) for moment in MOMENTS], "moment string")
    found = moments.select("moment", F.col("moment").cast("timestamp").alias("at"))

    weeks = {row[0]: row[1] for row in found.select("moment", week_of("at")).collect()}

    # Then Spark and Python say the same Monday
    assert weeks == {moment: monday(week) for moment, week in MOMENTS.items()}
    assert {moment: label(week) for moment, week in weeks.items()} == MOMENTS


def test_a_period_holds_its_weeks(spark: SparkSession) -> None:
    week = date(2024, 3, 4)
    periods = (Period(), Period(week), Period(last=week), Period(week, week))
    weeks = [(1, date(2024, 2, 26)), (2, week), (3, date(2024, 3, 11)), (4, None)]
    rows = spark.createDataFrame(weeks, "n int, week date").orderBy("n")

    found = rows.select(*(period.holds("week") for period in periods)).collect()

    # Then a week that is null is held by a period without ends only
    assert [tuple(row) for row in found] == [
        (True, False, True, False),
        (True, True, True, True),
        (True, True, False, False),
        (True, None, None, None),
    ]
