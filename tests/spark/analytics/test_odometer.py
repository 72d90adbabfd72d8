"""The fleet's figures, against those worked out by hand, and ISO weeks, against Python's."""

from datetime import UTC, date, datetime

from pyspark.sql import functions as F  # noqa: N812

from examples.fleet.analytics.odometer import findings, readings, within
from examples.fleet.analytics.ranking import rank
from examples.fleet.analytics.telemetry import TRIPS
from examples.fleet.analytics.weeks import SECONDS, Period, label, monday, week_of


def test_readings_are_compared_with_all_trips_between_them(spark):
    # Given a vehicle whose second trip has no reading; then one within the tolerance, one beyond, one back
    shown = [(4, 10_000, 100_000), (5, 50_000, None), (6, 10_000, 160_000), (7, 10_000, 172_000)]
    shown += [(8, 10_000, 184_001), (9, 1_000, 184_000)]
    rows = [
        ("f", "v", str(day), datetime(2024, 3, day, 8, tzinfo=UTC), driven, 9_000, odometer, None)
        for day, driven, odometer in shown
    ]
    read = readings(spark.createDataFrame(rows, TRIPS.columns))
    # When they are compared, then the trip without a reading counts as driven, and two pairs are findings
    pairs = read.orderBy("to_at").select("from_m", "to_m", "driven_m").collect()
    assert tuple(pairs[0]) == (None, 100_000, None)
    assert tuple(pairs[1]) == (100_000, 160_000, 60_000)
    found = findings(read).orderBy("to_at").select("from_trip", "to_trip", "problem").collect()
    assert [tuple(row) for row in found] == [("7", "8", "disagrees"), ("8", "9", "backwards")]
    # And of a week the first reading is compared with the last before it
    week = within(read, Period.parse("2024-W11", "2024-W11"))
    assert week.count() == 0
    assert within(read, Period.parse("2024-W10", None)).count() == 5


COLUMNS = "fleet string, vehicle string, trips long, distance_m long, duration_s long"


def test_vehicles_are_ranked_by_distance_then_by_trips_then_by_name(spark):
    # Given vehicles of which some drove as far, and one that did not exist before
    vehicles = spark.createDataFrame(
        [("f", "b", 2, 100, SECONDS), ("f", "a", 2, 100, 0), ("e", "c", 3, 100, 0), ("f", "d", 1, 200, 0)],
        COLUMNS,
    )
    earlier = spark.createDataFrame([("f", "b", 1, 50, 9), ("g", "x", 7, 7, 7)], COLUMNS)
    # When they are ranked
    rows = rank(vehicles, earlier, 2).orderBy("rank").collect()
    # Then the order has no ties, shares are of all and of two weeks, and only "b" has figures of before
    assert [(row["rank"], row["vehicle"]) for row in rows] == [(1, "d"), (2, "c"), (3, "a"), (4, "b")]
    assert [row["distance_share"] for row in rows] == [0.4, 0.2, 0.2, 0.2]
    assert [row["week_share"] for row in rows] == [0, 0, 0, 0.5]
    assert [row["distance_m_before"] for row in rows] == [None, None, None, 50]


def test_nobody_drove_and_nothing_was_before(spark):
    # Given a vehicle that did not drive, when it is ranked, then it has no share of nothing
    (row,) = rank(spark.createDataFrame([("f", "a", 0, 0, 0)], COLUMNS), None, 1).collect()
    assert (row["rank"], row["distance_share"], row["trips_before"]) == (1, None, None)


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


def test_weeks_are_those_of_iso_8601_in_utc(spark):
    moments = spark.createDataFrame([(moment,) for moment in MOMENTS], "moment string")
    found = moments.select("moment", F.col("moment").cast("timestamp").alias("at"))

    weeks = {row[0]: row[1] for row in found.select("moment", week_of("at")).collect()}
    # Then Spark and Python say the same Monday
    assert weeks == {moment: monday(week) for moment, week in MOMENTS.items()}
    assert {moment: label(week) for moment, week in weeks.items()} == MOMENTS


def test_a_period_holds_its_weeks(spark):
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
