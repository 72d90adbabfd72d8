"""What feeds are made of; the rules themselves are tested on Spark."""

from pyspark.sql.types import LongType, StringType, TimestampType

from fanin.spark.fleet_report.telemetry import FILL_UPS, FLIGHTS, SOURCES, TRIPS, Measure, within
from fanin.spark.runtime.rejects import Reason


def test_the_first_three_columns_identify_a_row_and_the_fourth_says_when() -> None:
    assert (TRIPS.key, TRIPS.at) == (["fleet", "vehicle", "trip_id"], "started_at")
    assert (FILL_UPS.key, FILL_UPS.at) == (["fleet", "vehicle", "fill_up_id"], "filled_at")


def test_flights_give_the_columns_of_trips() -> None:
    assert FLIGHTS.schema == TRIPS.schema
    assert FLIGHTS.name == TRIPS.name
    assert SOURCES == {"telemetry": TRIPS, "flights": FLIGHTS}


def test_a_dataset_needs_each_source_column_once() -> None:
    assert TRIPS.sources == TRIPS.schema.names
    assert len(FLIGHTS.sources) == len(set(FLIGHTS.sources))
    assert {"carrier", "tailnum", "time_hour", "dep_delay", "minute"} <= set(FLIGHTS.sources)


def test_a_measure_is_its_column_unless_it_takes_others() -> None:
    own = Measure("distance_m", LongType(), "metres")
    taken = Measure("duration_s", LongType(), "seconds", "`minutes` * 60", ("minutes",))

    assert own.sources == ("distance_m",)
    assert own.sql == "try_cast(round(try_cast((`distance_m`) AS double)) AS bigint)"
    assert taken.sources == ("minutes",)
    assert "`minutes` * 60" in taken.sql


def test_values_are_cast_without_failing() -> None:
    assert Measure("a", StringType(), "").sql == "nullif(trim(cast((`a`) AS string)), '')"
    assert Measure("a", TimestampType(), "").sql == "try_cast((`a`) AS timestamp)"


def test_bounds_name_the_column_and_the_unit() -> None:
    rule = within("volume_ml", 1, 2_000_000, "ml")
    assert rule.reason is Reason.IMPLAUSIBLE
    assert rule.when == "NOT volume_ml BETWEEN 1 AND 2000000"
    assert rule.detail == "volume_ml is not within 1 to 2,000,000 ml"


def test_a_description_has_a_line_for_each_column() -> None:
    lines = TRIPS.described().splitlines()
    assert [line.split()[0] for line in lines] == TRIPS.columns.names
    assert lines[4].split(maxsplit=2) == ["distance_m", "bigint", "metres driven"]
