"""Corrections, odometers, the ranking and the period before, all of one report, against pandas."""

from datetime import date
from pathlib import Path

import pandas as pd
import pytest
from pyspark.sql import SparkSession

from examples.fleet.analytics.cars import write
from examples.fleet.analytics.job import JOB
from examples.fleet.analytics.report import DATASETS
from fanin.spark import Summary

SUMS = ["trips", "distance_m", "duration_s"]
WHOSE = ["fleet", "vehicle"]
WEEK, BEFORE = date(2026, 1, 5), date(2025, 12, 29)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three weeks of cars, with mistakes; one odometer is set back, one jumps."""
    folder = tmp_path_factory.mktemp("cars")
    write(folder, 3)
    file = folder / "trips.csv"
    trips = pd.read_csv(file, dtype=str, keep_default_na=False)
    in_week = trips["started_at"].between("2026-01-06", "2026-01-09")
    back = trips.index[in_week & (trips["vehicle"] == "HC-101")][5]
    jump = trips.index[in_week & (trips["vehicle"] == "HC-102")][5]
    trips.loc[back, "odometer_m"] = "1"
    trips.loc[jump, "odometer_m"] = "9000000"
    trips.to_csv(file, index=False)
    return folder


@pytest.fixture(scope="module")
def summary(spark: SparkSession, any_plan: None, folder: Path) -> Summary:
    arguments = ["--trips", f"{folder}/trips.csv", "--fill-ups", f"{folder}/fill_ups.csv", "--no-scatter"]
    arguments += ["--output", f"{folder}/report", "--week", "2026-W02"]
    return JOB.run(spark, JOB.parser().parse_args(arguments))


@pytest.fixture(scope="module")
def valid(folder: Path) -> pd.DataFrame:
    """The trips without a mistake, by pandas, those that were sent last first."""
    rows = pd.read_csv(folder / "trips.csv", dtype=str).dropna(subset=[*WHOSE, "trip_id", "started_at"])
    rows = rows.dropna(subset=["distance_m", "duration_s"])
    for name in ("distance_m", "duration_s", "odometer_m"):
        rows[name] = pd.to_numeric(rows[name])
    rows = rows[(rows["duration_s"] > 0) & (rows["distance_m"] * 3.6 <= rows["duration_s"] * 300)]
    rows["at"] = pd.to_datetime(rows["started_at"])
    rows["sent"] = pd.to_datetime(rows["sent_at"])
    return rows.sort_values(["sent"], ascending=False, na_position="last", kind="stable")


@pytest.fixture(scope="module")
def driven(valid: pd.DataFrame) -> pd.DataFrame:
    """The trips that count, by pandas."""
    rows = valid.drop_duplicates([*WHOSE, "trip_id"]).drop_duplicates([*WHOSE, "at"])
    rows["week"] = (rows["at"].dt.normalize() - pd.to_timedelta(rows["at"].dt.weekday, unit="D")).dt.date
    rows["trips"] = 1
    return rows


def dataset(folder: Path, name: str) -> pd.DataFrame:
    return pd.read_parquet(folder / "report" / name)


def of(driven: pd.DataFrame, week: date, by: list[str]) -> pd.DataFrame:
    return driven[driven["week"] == week].groupby(by)[SUMS].sum()


def test_the_sums_are_those_of_the_rows_that_were_sent_last(
    summary: Summary, folder: Path, driven: pd.DataFrame
) -> None:
    # Given trips of which some were corrected, when the report is made, then its sums are those of pandas
    assert summary["ok"]
    assert summary["rejects"]["corrected"] > 0
    # And the datasets that are looked at before are those that are written
    made = {str(file.parent.relative_to(folder / "report")) for file in folder.rglob("_SUCCESS")}
    assert made == set(DATASETS)
    found = dataset(folder, "vehicle_week").query("trips > 0").set_index([*WHOSE])[SUMS].sort_index()
    pd.testing.assert_frame_equal(found, of(driven, WEEK, WHOSE), check_dtype=False)


def test_a_row_for_each_corrected_one_is_named(summary: Summary, folder: Path, valid: pd.DataFrame) -> None:
    # Given the report, when its rejects and its page are read
    rejects = dataset(folder, "rejects")
    page = (folder / "report" / "report.html").read_text("utf-8")

    # Then each row is corrected that says something else than a later one with its id
    corrected = rejects[rejects["reason"] == "corrected"]
    said = ["started_at", "distance_m", "duration_s", "odometer_m"]
    expected = 0
    for _, rows in valid.groupby([*WHOSE, "trip_id"]):
        last = rows.iloc[0]
        expected += sum(
            row.sent < last.sent and (row[said] != last[said]).any() for _, row in rows.iterrows()
        )
    assert sum("trip_id" in value for value in corrected["value"]) == expected > 0

    # And the summary and the page count all of them
    count = summary["rejects"]["corrected"]
    assert len(corrected) == count
    assert f"{count} row{'s were' if count > 1 else ' was'} corrected" in page


def test_the_ranking_is_that_of_pandas(summary: Summary, folder: Path, driven: pd.DataFrame) -> None:
    # Given the report, when its ranking is read
    found = dataset(folder, "ranking").sort_values("rank").reset_index(drop=True)

    # Then all vehicles are in it, in the order of what they drove
    ours = of(driven, WEEK, WHOSE).reset_index()
    expected = ours.sort_values(
        ["distance_m", "trips", *WHOSE], ascending=[False, False, True, True], ignore_index=True
    )
    assert list(found["rank"]) == list(range(1, 21))
    pd.testing.assert_frame_equal(found[[*WHOSE, *SUMS]], expected[[*WHOSE, *SUMS]], check_dtype=False)

    # And its shares are of the distance of all, and of the week's hours
    assert found["distance_share"].sum() == pytest.approx(1)
    assert list(found["week_share"]) == pytest.approx(list(expected["duration_s"] / (7 * 24 * 3600)))

    # And beside them stands the week before
    before = of(driven, BEFORE, WHOSE).reindex(pd.MultiIndex.from_frame(found[WHOSE]))
    for name in SUMS:
        assert list(found[f"{name}_before"]) == list(before[name])


def test_the_week_before_is_that_of_pandas(summary: Summary, folder: Path, driven: pd.DataFrame) -> None:
    # Given the report, when the fleets of the week before are read, then they are those of pandas
    found = dataset(folder, "fleet_before").set_index("fleet")[SUMS].sort_index()
    pd.testing.assert_frame_equal(found, of(driven, BEFORE, ["fleet"]), check_dtype=False)

    # And the page says which week that is
    assert "before: 2026-W01" in (folder / "report" / "report.html").read_text("utf-8")


def test_odometers_that_disagree_are_named(summary: Summary, folder: Path, driven: pd.DataFrame) -> None:
    # Given the report, when the odometers are checked by pandas, a vehicle at a time
    expected = set()
    compared = 0
    for (_, vehicle), rows in driven.sort_values("at").groupby(WHOSE):
        last = None
        since = 0
        for row in rows.itertuples():
            since += row.distance_m
            if pd.isna(row.odometer_m):
                continue
            if last is not None and row.week == WEEK:
                compared += 1
                shown = row.odometer_m - last
                if shown < 0:
                    expected.add((vehicle, row.trip_id, "backwards"))
                elif abs(shown - since) > max(2_000, since * 0.05):
                    expected.add((vehicle, row.trip_id, "disagrees"))
            last, since = row.odometer_m, 0

    # Then the findings are the same, and those of the two odometers that were tampered with are there
    found = dataset(folder, "odometer")
    assert set(found[["vehicle", "to_trip", "problem"]].itertuples(index=False, name=None)) == expected
    assert {("HC-101", "backwards"), ("HC-102", "disagrees"), ("HC-102", "backwards")} <= {
        (vehicle, problem) for vehicle, _, problem in expected
    }
    assert summary["odometer"] == {
        "compared": compared,
        **{name: sum(one[2] == name for one in expected) for name in ("backwards", "disagrees")},
    }
