"""Which rows of telemetry count, and why the others do not; no row is lost, and no row is fatal."""

import json
from datetime import UTC, datetime

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.testing import assertDataFrameEqual

from examples.fleet.analytics.checking import check, read, rejected_rows, valid_rows
from examples.fleet.analytics.telemetry import FILL_UPS, TRIPS
from fanin.errors import InvalidRequest
from fanin.spark import Dataset

GOOD = {
    "fleet": "north",
    "vehicle": "n1",
    "trip_id": "1",
    "started_at": "2024-03-04T08:00:00Z",
    "distance_m": "12000",
    "duration_s": "900",
}
CASES = [
    ({}, None, None),
    ({"distance_m": "12000.0", "vehicle": "n2"}, None, None),
    ({"distance_m": "0", "vehicle": "n3"}, None, None),
    ({"started_at": "2024-03-04T10:00:00+02:00", "vehicle": "n4"}, None, None),
    ({"started_at": "2024-03-04 08:00:00", "vehicle": "n5"}, None, None),
    ({"odometer_m": "far", "vehicle": "n6"}, "malformed", "odometer_m is not a number within ±2⁶³"),
    ({"sent_at": "late", "vehicle": "n6"}, "malformed", "sent_at is not a timestamp"),
    ({"odometer_m": "-1", "vehicle": "n6"}, "implausible", "odometer_m is not within 0 to 10,000,000,000 m"),
    ({"vehicle": None}, "null", "vehicle is null"),
    ({"vehicle": "  "}, "null", "vehicle is null"),
    ({"fleet": None, "vehicle": None}, "null", "fleet is null"),
    ({"distance_m": None}, "null", "distance_m is null"),
    ({"distance_m": "far"}, "malformed", "distance_m is not a number within ±2⁶³"),
    ({"distance_m": "NaN"}, "malformed", "distance_m is not a number within ±2⁶³"),
    ({"duration_s": "1e300"}, "malformed", "duration_s is not a number within ±2⁶³"),
    ({"started_at": "yesterday"}, "malformed", "started_at is not a timestamp"),
    ({"started_at": "1969-12-31T23:59:59Z"}, "implausible", "started_at is not within 1970 to 2199"),
    ({"started_at": "+54000-01-01"}, "implausible", "started_at is not within 1970 to 2199"),
    ({"distance_m": "-1"}, "implausible", "distance_m is not within 0 to 25,000,000 m"),
    ({"distance_m": "9000000000000000000"}, "implausible", "distance_m is not within 0 to 25,000,000 m"),
    ({"duration_s": "0"}, "implausible", "duration_s is not within 1 to 604,800 s"),
    ({"distance_m": "75001"}, "implausible", "the trip is faster than 300 km/h"),
]


def verdicts(judged: DataFrame) -> list[tuple]:
    return sorted(tuple(row) for row in rejected_rows(judged).select("reason", "detail").collect())


def test_each_row_counts_or_says_why_not(spark, any_ansi, tmp_path):
    # Given rows of text, good ones and bad ones, with a column too many
    names = ["more", "odometer_m", "sent_at", *reversed(GOOD)]
    rows = [{**GOOD, **change} for change, *_ in CASES]
    lines = [",".join(names), *(",".join(row.get(name) or "" for name in names) for row in rows)]
    (tmp_path / "trips.csv").write_text("\n".join(lines))
    # When they are checked
    judged = check(read(spark, Dataset(f"{tmp_path}/trips.csv"), TRIPS), TRIPS).cache()
    # Then the bad ones have their reason, and each of all is there once
    assert verdicts(judged) == sorted((why, detail) for _, why, detail in CASES if why)
    assert judged.count() == len(CASES)
    # And the good ones are measurements, in UTC
    expected = spark.createDataFrame(
        [
            ("north", f"n{n}", "1", datetime(2024, 3, 4, 8, tzinfo=UTC), 0 if n == 3 else 12_000, 900)
            for n in range(1, 6)
        ],
        TRIPS.schema,
    )
    assertDataFrameEqual(valid_rows(judged, TRIPS), expected)


def test_types_of_parquet_are_taken_as_they_are(spark, any_ansi, tmp_path):
    # Given Parquet with other numeric types, a number as the vehicle, and values that are null
    rows = spark.sql(
        "SELECT 'f' fleet, id vehicle, 'x' trip_id, TIMESTAMP_NTZ '2024-03-04 08:00:00' started_at,"
        " element_at(array(12000.4D, double('NaN'), double(null)), cast(id AS int)) distance_m,"
        " cast(900 AS smallint) duration_s FROM range(1, 4)"
    )
    rows.write.parquet(str(tmp_path / "trips"))
    # When they are checked
    judged = check(read(spark, Dataset(str(tmp_path / "trips")), TRIPS), TRIPS)
    # Then the first counts
    (row,) = valid_rows(judged, TRIPS).collect()
    assert (row["vehicle"], row["distance_m"]) == ("1", 12_000)
    assert verdicts(judged) == [
        ("malformed", "distance_m is not a number within ±2⁶³"),
        ("null", "distance_m is null"),
    ]


def test_of_rows_with_one_key_the_smallest_counts(spark):
    # Given a trip that came three times, once with another distance, in other orders of the partitions;
    # and the same number of another vehicle's trip
    rows = [
        GOOD,
        {**GOOD, "distance_m": "11000"},
        GOOD,
        {**GOOD, "vehicle": "n2"},
        {**GOOD, "vehicle": None},
        {**GOOD, "vehicle": None},
    ]
    schema = ", ".join(f"{name} string" for name in [*TRIPS.sources, "_corrupt"])
    ways = [
        check(spark.createDataFrame(some, schema).repartition(partitions), TRIPS)
        for some, partitions in ((rows, 1), (rows[::-1], 3))
    ]
    # When they are checked, then one of each counts, whatever the order
    for judged in ways:
        found = valid_rows(judged, TRIPS).select("vehicle", "distance_m").collect()
        assert sorted(map(tuple, found)) == [("n1", 11000), ("n2", 12000)]
        assert verdicts(judged) == [
            *[("duplicate", "another row has the same trip_id")] * 2,
            *[("null", "vehicle is null")] * 2,
        ]


def test_a_line_that_is_not_json_is_kept_as_it_came(spark, tmp_path):
    # Given a file with a broken line
    file = tmp_path / "trips.jsonl"
    file.write_text(json.dumps(GOOD) + '\n{"fleet": "nor\n')
    # When it is checked
    judged = check(read(spark, Dataset(str(file)), TRIPS), TRIPS)
    # Then the line is among those left out, as text
    assert [tuple(row) for row in rejected_rows(judged).collect()] == [
        ('{"fleet": "nor', "malformed", "the line cannot be read in its format")
    ]


def test_a_dataset_of_other_columns_is_refused(spark, tmp_path):
    # Given a file that lacks a column
    file = tmp_path / "trips.csv"
    file.write_text("fleet,vehicle,started_at,duration_s\n")
    # When it is read, then the error says which, before anything runs
    with pytest.raises(InvalidRequest, match="has no trip_id, distance_m; its columns are fleet, vehicle"):
        read(spark, Dataset(str(file)), TRIPS)
    # And a path at which there is nothing
    with pytest.raises(InvalidRequest, match=r"cannot be read.*PATH_NOT_FOUND"):
        read(spark, Dataset(str(tmp_path / "nowhere")), TRIPS)


def test_fill_ups_have_bounds_of_their_own(spark):
    # Given fill-ups: a good one, one of nothing, one that costs less than nothing
    base = {"fleet": "f", "vehicle": "v", "filled_at": "2024-03-04"}
    rows = [
        {**base, "fill_up_id": "1", "volume_ml": "40000", "cost": "6960"},
        {**base, "fill_up_id": "2", "volume_ml": "0", "cost": "0"},
        {**base, "fill_up_id": "3", "volume_ml": "40000", "cost": "-1"},
    ]
    schema = ", ".join(f"{name} string" for name in [*FILL_UPS.sources, "_corrupt"])
    # When they are checked
    judged = check(spark.createDataFrame(rows, schema), FILL_UPS)
    # Then the first counts
    assert [row["fill_up_id"] for row in valid_rows(judged, FILL_UPS).collect()] == ["1"]
    assert [detail for _, detail in verdicts(judged)] == [
        "cost is not within 0 to 100,000,000 hundredths",
        "volume_ml is not within 1 to 2,000,000 ml",
    ]


def sent(spark: SparkSession, rows: list[dict], partitions: int) -> DataFrame:
    schema = ", ".join(f"{name} string" for name in [*TRIPS.columns.names, "_corrupt"])
    return check(spark.createDataFrame(rows, schema).repartition(partitions), TRIPS)


def test_of_a_trip_that_is_sent_again_the_latest_row_counts(spark):
    # Given a trip sent three times, the last of them twice; one sent again with another number, and one as it
    # was; and one without a time of sending, which then comes with one
    early, late, last = (f"2024-03-05T0{hour}:00:00Z" for hour in (1, 2, 3))
    rows = [
        {**GOOD, "sent_at": late, "distance_m": "2"},
        {**GOOD, "sent_at": last, "distance_m": "9"},
        {**GOOD, "sent_at": last, "distance_m": "9"},
        {**GOOD, "sent_at": early, "distance_m": "1"},
        {**GOOD, "vehicle": "n2", "trip_id": "7", "sent_at": early, "distance_m": "3"},
        {**GOOD, "vehicle": "n2", "trip_id": "8", "sent_at": late, "distance_m": "4"},
        {**GOOD, "vehicle": "n3", "sent_at": early},
        {**GOOD, "vehicle": "n3", "sent_at": late},
        {**GOOD, "vehicle": "n4", "distance_m": "1"},
        {**GOOD, "vehicle": "n4", "distance_m": "5", "sent_at": early},
    ]
    # When they are checked, in whatever order they come
    for judged in (sent(spark, rows, 1), sent(spark, rows[::-1], 3)):
        found = sorted(map(tuple, valid_rows(judged, TRIPS).select("vehicle", "distance_m").collect()))
        # Then the row that was sent last counts
        assert found == [("n1", 9), ("n2", 4), ("n3", 12_000), ("n4", 5)]
        # And those that said something else are corrected, the others come twice
        assert verdicts(judged) == [
            *[("corrected", "a row with the same started_at was sent later")],
            *[("corrected", "a row with the same trip_id was sent later")] * 3,
            *[("duplicate", "another row has the same trip_id")] * 2,
        ]
