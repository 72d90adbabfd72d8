"""Pairs of odometer readings, against figures worked out by hand."""

from datetime import UTC, datetime

from pyspark.sql import SparkSession

from examples.fleet.analytics.odometer import findings, readings, within
from examples.fleet.analytics.telemetry import TRIPS
from examples.fleet.analytics.weeks import Period


def test_readings_are_compared_with_all_trips_between_them(spark: SparkSession) -> None:
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
