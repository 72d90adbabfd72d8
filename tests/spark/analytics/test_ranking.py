"""The ranking of vehicles, against figures worked out by hand."""

from pyspark.sql import SparkSession

from examples.fleet.analytics.ranking import rank
from examples.fleet.analytics.weeks import SECONDS

COLUMNS = "fleet string, vehicle string, trips long, distance_m long, duration_s long"


def test_vehicles_are_ranked_by_distance_then_by_trips_then_by_name(spark: SparkSession) -> None:
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


def test_nobody_drove_and_nothing_was_before(spark: SparkSession) -> None:
    # Given a vehicle that did not drive, when it is ranked, then it has no share of nothing
    (row,) = rank(spark.createDataFrame([("f", "a", 0, 0, 0)], COLUMNS), None, 1).collect()
    assert (row["rank"], row["distance_share"], row["trips_before"]) == (1, None, None)
