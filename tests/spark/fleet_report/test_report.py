"""The report on real data: flights that left New York in 2013, against pandas."""

from pathlib import Path

import pandas as pd
import pytest
from pyspark.sql import SparkSession

from examples.pipeline.flights import unpack
from fanin.spark.fleet_report.report import DATASETS
from fanin.spark.fleet_report.weeks import SECONDS
from fanin.spark.jobs.report import JOB
from fanin.spark.jobs.running import Summary

SUMS = ["trips", "distance_m", "duration_s"]


MONTHS = {"first and last month": ("1", "12"), "whole year": tuple(str(month + 1) for month in range(12))}


@pytest.fixture(
    scope="module",
    params=[one if "month" in one else pytest.param(one, marks=pytest.mark.soak) for one in MONTHS],
)
def flights(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = unpack(tmp_path_factory.mktemp("flights"))
    rows = pd.read_csv(file, dtype=str, keep_default_na=False)
    rows[rows["month"].isin(MONTHS[request.param])].to_csv(file, index=False)
    return file


@pytest.fixture(scope="module")
def output(flights: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("report")


@pytest.fixture(scope="module")
def summary(spark: SparkSession, as_deployed: None, flights: Path, output: Path) -> Summary:
    arguments = ["--trips", str(flights), "--trips-are", "flights", "--no-scatter", "--output", str(output)]
    arguments += ["--from", "2013-W01", "--to", "2013-W52"]
    return JOB.run(spark, JOB.parser().parse_args(arguments))


@pytest.fixture(scope="module")
def flown(flights: Path) -> pd.DataFrame:
    """The same by pandas: flights that arrived where they should, in the weeks of the report."""
    rows = pd.read_csv(flights).dropna(subset=["tailnum", "air_time"])
    minutes = pd.to_timedelta(rows["minute"] + rows["dep_delay"], unit="min")
    rows["at"] = pd.to_datetime(rows["time_hour"], utc=True) + minutes
    rows["week"] = (rows["at"].dt.normalize() - pd.to_timedelta(rows["at"].dt.weekday, unit="D")).dt.date
    rows["distance_m"] = (rows["distance"] * 1609.344).round().astype("int64")
    rows["duration_s"] = (rows["air_time"] * 60).astype("int64")
    rows["trips"] = 1
    return rows.rename(columns={"carrier": "fleet", "tailnum": "vehicle"})


def inside(flown: pd.DataFrame) -> pd.DataFrame:
    return flown[(flown["at"] >= "2012-12-31T00:00Z") & (flown["at"] < "2013-12-30T00:00Z")]


def test_every_flight_is_counted_or_left_out(summary: Summary, flights: Path, flown: pd.DataFrame) -> None:
    # Given flights up to the last day of the year, when the report is made
    # Then each is a trip, or was cancelled or diverted, or is of the week that 2014 begins with
    rows = len(pd.read_csv(flights))
    assert summary["ok"]
    assert summary["rows"] == rows
    assert summary["rejects"] == {"null": rows - len(flown)}
    assert summary["trips"] == len(inside(flown))
    assert summary["outside"] == len(flown) - len(inside(flown)) > 0
    assert summary["fleets"] == flown["fleet"].nunique() >= 15
    assert summary["vehicles"] == len(flown.groupby(["fleet", "vehicle"]))
    assert summary["distance_m"] == inside(flown)["distance_m"].sum()


def test_the_datasets_that_are_looked_at_before_are_those_that_are_written(
    summary: Summary, output: Path
) -> None:
    assert {str(file.parent.relative_to(output)) for file in output.rglob("_SUCCESS")} == set(DATASETS)


def test_each_week_of_a_vehicle_is_that_of_pandas(
    spark: SparkSession, summary: Summary, output: Path, flown: pd.DataFrame
) -> None:
    # Given the report, when its vehicles' weeks are compared, then all are the same, to the metre
    keys = ["fleet", "vehicle", "week"]
    written = spark.read.parquet(f"{output}/vehicle_week").select(*keys, *SUMS).toPandas()
    expected = inside(flown).groupby(keys)[SUMS].sum().reset_index()
    pd.testing.assert_frame_equal(written.sort_values(keys, ignore_index=True), expected, check_exact=True)


def test_each_fleet_is_that_of_pandas(
    spark: SparkSession, summary: Summary, output: Path, flown: pd.DataFrame
) -> None:
    # Given the report, when its fleets are compared
    by_fleet = {row["fleet"]: row for row in spark.read.parquet(f"{output}/fleet").collect()}

    # Then sums, vehicles and utilisation are those of pandas, vehicles being all that ever flew for them
    known = flown.groupby("fleet")["vehicle"].nunique()
    sums = inside(flown).groupby("fleet")[SUMS].sum()
    for name, trips, distance_m, duration_s in sums.itertuples(name=None):
        row = by_fleet.pop(name)
        assert [row[one] for one in SUMS] == [trips, distance_m, duration_s]
        assert row["vehicles"] == known[name]
        assert row["utilisation"] == pytest.approx(duration_s / (known[name] * 52 * SECONDS))
    assert not by_fleet


def test_those_that_never_fly_again_are_missing(
    spark: SparkSession, summary: Summary, output: Path, flown: pd.DataFrame
) -> None:
    # Given aircraft that flew only in the week after the report, when the missing are read
    pairs = lambda rows: set(zip(rows["fleet"], rows["vehicle"], strict=True))  # noqa: E731
    missing = spark.read.parquet(f"{output}/missing").toPandas()

    # Then they are there, and no other
    assert pairs(missing) == pairs(flown) - pairs(inside(flown))
    assert set(missing["why"]) <= {"idle"}
    assert sum(summary["missing"].values()) == len(missing)


def test_the_page_is_there(summary: Summary, output: Path) -> None:
    # Given the report, when its page is read, then it has its charts
    page = (output / "report.html").read_text("utf-8")
    assert page.count("<svg") >= 2
    assert "the flight was cancelled" in page
