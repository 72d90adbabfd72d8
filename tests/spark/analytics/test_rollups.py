"""Rollups of telemetry, against figures worked out by hand."""

from datetime import UTC, date, datetime

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.testing import assertDataFrameEqual

from examples.fleet.analytics import asking
from examples.fleet.analytics import rollups as fleet
from examples.fleet.analytics.telemetry import FILL_UPS, TRIPS
from examples.fleet.analytics.weeks import SECONDS, Period

W9, W10, W11 = date(2024, 2, 26), date(2024, 3, 4), date(2024, 3, 11)
WEEK10 = Period.parse("2024-W10", "2024-W10")


def at(day: date, hour: int = 8) -> datetime:
    return datetime(day.year, day.month, day.day, hour, tzinfo=UTC)


@pytest.fixture
def trips(spark: SparkSession) -> DataFrame:
    """Two fleets: n1 drives in two weeks, n2 only before, s1 fills up only."""
    return spark.createDataFrame(
        [
            ("north", "n1", "1", at(W10), 30_000, 1_800),
            ("north", "n1", "2", at(W10, 20), 10_000, 1_200),
            ("north", "n1", "3", at(W11), 5_000, 600),
            ("north", "n2", "1", at(W9), 7_000, 700),
            ("south", "s2", "1", at(W10), 100_000, 3_600),
        ],
        TRIPS.schema,
    )


@pytest.fixture
def fill_ups(spark: SparkSession) -> DataFrame:
    return spark.createDataFrame(
        [
            ("north", "n1", "a", at(W10, 9), 2_000, 350),
            ("north", "n1", "b", at(W10, 10), 800, 140),
            ("south", "s1", "a", at(W10), 40_000, 7_000),
        ],
        FILL_UPS.schema,
    )


@pytest.fixture
def weeks(trips: DataFrame, fill_ups: DataFrame) -> DataFrame:
    return fleet.vehicle_weeks(trips, fill_ups).cache()


@pytest.fixture
def vehicles(spark: SparkSession, weeks: DataFrame) -> DataFrame:
    """All vehicles; the directory knows one more of the south."""
    asked = spark.createDataFrame([("south", "s9")], "fleet string, vehicle string")
    return fleet.vehicle_totals(weeks, WEEK10, asked).cache()


def test_fill_ups_do_not_multiply_trips(weeks, spark):
    # Given a vehicle with two trips and two fill-ups in a week, when all is added up
    # Then each is counted once, and a week with only one of both has zeros for the other
    expected = spark.createDataFrame(
        [
            ("north", "n1", W10, 2, 40_000, 3_000, 2, 2_800, 490),
            ("north", "n1", W11, 1, 5_000, 600, 0, 0, 0),
            ("north", "n2", W9, 1, 7_000, 700, 0, 0, 0),
            ("south", "s1", W10, 0, 0, 0, 1, 40_000, 7_000),
            ("south", "s2", W10, 1, 100_000, 3_600, 0, 0, 0),
        ],
        "fleet string, vehicle string, week date, trips long, distance_m long, duration_s long,"
        " fill_ups long, volume_ml long, cost long",
    )
    assertDataFrameEqual(weeks, expected)


def test_the_books_have_every_vehicle_and_only_the_periods_sums(vehicles, spark):
    # Given the weeks of before and after, and a vehicle that never sent anything, when the totals are made
    # Then all vehicles are in them, with what they did in week 10
    expected = spark.createDataFrame(
        [
            ("north", "n1", W11, 2, 40_000, 3_000, 2, 2_800, 490),
            ("north", "n2", W9, 0, 0, 0, 0, 0, 0),
            ("south", "s1", W10, 0, 0, 0, 1, 40_000, 7_000),
            ("south", "s2", W10, 1, 100_000, 3_600, 0, 0, 0),
            ("south", "s9", None, 0, 0, 0, 0, 0, 0),
        ],
        vehicles.schema,
    )
    assertDataFrameEqual(vehicles, expected)


def test_a_fleets_ratios_follow_from_its_sums(weeks, vehicles, spark):
    # Given week 10, when the fleets are rolled up
    by_week = fleet.fleet_weeks(weeks.where(WEEK10.holds("week")), vehicles)
    by_fleet = fleet.fleets(vehicles, 1)
    # Then 2.8 l on 40 km are 7 l per 100 km; south has filled up a vehicle that did not drive: no ratio
    rows = [
        ("north", W10, 2, 1, 2, 40_000, 3_000, 2, 2_800, 490, 40_000, 3_000 / (2 * SECONDS), 7.0, 1225.0),
        ("south", W10, 3, 1, 1, 100_000, 3_600, 1, 40_000, 7_000, 0, 3_600 / (3 * SECONDS), None, None),
    ]
    expected = spark.createDataFrame(rows, by_week.schema)
    assertDataFrameEqual(by_week, expected)
    # And over the period the same, since it has no other week
    assertDataFrameEqual(by_fleet, expected.drop("week"))


def test_a_vehicle_without_fill_ups_does_not_drive_on_nothing(spark):
    # Given two vehicles that drove as far, of which one reports fill-ups
    weeks = spark.createDataFrame(
        [("f", "a", W10, 1, 100_000, 3_600, 1, 6_000, 900), ("f", "b", W10, 1, 100_000, 3_600, 0, 0, 0)],
        "fleet string, vehicle string, week date, trips long, distance_m long, duration_s long,"
        " fill_ups long, volume_ml long, cost long",
    )
    vehicles = fleet.vehicle_totals(weeks, WEEK10, asking.no_answers(spark))
    # When the fleet is rolled up, then it takes 6 l per 100 km, not 3
    for rolled in (fleet.fleet_weeks(weeks, vehicles), fleet.fleets(vehicles, 1)):
        assert [(row["fuelled_m"], row["l_per_100km"]) for row in rolled.collect()] == [(100_000, 6.0)]


def test_the_missing_have_their_reasons(vehicles, spark):
    # Given a north that was not asked, and a south of which one failed, one said nothing, one was not known
    answers = spark.createDataFrame(
        [
            ("south", "s1", "failed", "no such queue", None, None, None, None),
            ("south", "s9", "silent", None, None, None, None, None),
        ],
        asking.ANSWERS,
    )
    # When the missing are looked for
    missing = fleet.missing(vehicles, answers)
    # Then each is there once, with why
    expected = spark.createDataFrame(
        [
            ("north", "n2", "idle", None, W9),
            ("south", "s1", "failed", "no such queue", W10),
            ("south", "s2", "unregistered", None, W10),
            ("south", "s9", "silent", None, None),
        ],
        missing.schema,
    )
    assertDataFrameEqual(missing, expected)
