"""What feeds are made of; the rules themselves are tested on Spark."""

from examples.fleet.analytics.telemetry import FLIGHTS, SOURCES, TRIPS


def test_flights_give_the_columns_of_trips() -> None:
    assert FLIGHTS.schema == TRIPS.schema
    assert FLIGHTS.name == TRIPS.name
    assert SOURCES == {"telemetry": TRIPS, "flights": FLIGHTS}


def test_a_dataset_needs_each_source_column_once() -> None:
    assert TRIPS.sources == TRIPS.schema.names
    assert len(FLIGHTS.sources) == len(set(FLIGHTS.sources))
    assert {"carrier", "tailnum", "time_hour", "dep_delay", "minute"} <= set(FLIGHTS.sources)


def test_a_description_has_a_line_for_each_column() -> None:
    lines = TRIPS.described().splitlines()
    assert [line.split()[0] for line in lines] == TRIPS.columns.names
    assert lines[4].split(maxsplit=2) == ["distance_m", "bigint", "metres driven"]
