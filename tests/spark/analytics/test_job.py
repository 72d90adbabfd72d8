"""The report job: what it needs to know, and that it needs no stack where nobody is asked."""

import os

import pyarrow.parquet as pq
import pytest

from examples.fleet.analytics.job import JOB
from examples.fleet.analytics.report import DATASETS
from fanin.errors import InvalidRequest, NotConfigured
from tests.spark.analytics.weekly import datasets, run


def test_without_a_stack_nobody_is_asked_and_the_first_week_has_nothing_before(spark, tmp_path, monkeypatch):
    # Given an environment that names no stack
    for name in [name for name in os.environ if name.startswith("FANIN_")]:
        monkeypatch.delenv(name)

    given = datasets(tmp_path)
    # When vehicles are to be asked, then the error says what to set
    with pytest.raises(NotConfigured, match="no stack to talk to"):
        run(spark, *given, "--output", f"{tmp_path}/out")
    # And nobody need be: then the fleets that are named are all there is
    summary = run(spark, *given, "--output", f"{tmp_path}/out", "--no-scatter", "--fleets", "south, west")
    assert (summary["ok"], summary["fleets"], summary["vehicles"], summary["asked"]) == (True, 1, 1, [])
    assert (summary["rows"], summary["outside"]) == (10, 6)
    # And of data that begin with the week of the report, and have no odometer, it says nothing of a week
    # before, nor of odometers
    assert "odometer" not in summary
    for name in ("fleet_before", "odometer"):
        assert pq.read_table(tmp_path / "out" / name).num_rows == 0
    page = (tmp_path / "out" / "report.html").read_text("utf-8")
    for absent in ("before:", "dometer", "NaN", "nan", "inf ", "None", "corrected"):
        assert absent not in page


def test_a_trip_of_a_clock_that_was_wrong_does_not_hide_the_others(spark, tmp_path):
    # Given the trips of some weeks, and one of 1971
    given = datasets(tmp_path)[:4]
    with (tmp_path / "trips.csv").open("a") as file:
        file.write("north,n9,1,1971-03-04T08:00:00Z,1000,60\n")
    # When all of it is reported
    summary = run(spark, *given, "--output", f"{tmp_path}/out", "--no-scatter")
    # Then the charts are there, the outlier is named, and every row is accounted for
    assert summary["balanced"]
    assert summary["outliers"] == {"rows": 1, "weeks": ["1971-W09"]}
    assert (summary["weeks"], summary["outside"]) == (2, 1)
    page = (tmp_path / "out" / "report.html").read_text()
    assert "far from all other weeks: 1 of 1971-W09" in page
    assert "<svg" in page


def test_corrections_odometers_and_the_week_before_are_in_the_report(spark, tmp_path):
    # Given two weeks of a vehicle, a trip that was corrected, and an odometer that goes backwards
    datasets(tmp_path)
    (tmp_path / "trips.csv").write_text(
        "fleet,vehicle,trip_id,started_at,distance_m,duration_s,odometer_m,sent_at\n"
        "north,n1,0,2024-02-27T08:00:00Z,20000,1200,100000,2024-02-28T00:00:00Z\n"
        "north,n1,1,2024-03-04T08:00:00Z,90000,1800,130000,2024-03-05T00:00:00Z\n"
        "north,n1,1,2024-03-04T08:00:00Z,30000,1800,130000,2024-03-06T00:00:00Z\n"
        "north,n1,2,2024-03-05T08:00:00Z,10000,1200,1,2024-03-06T00:00:00Z\n"
    )
    # When a report of the second is made
    out = tmp_path / "out"
    given = ["--trips", f"{tmp_path}/trips.csv", "--fill-ups", f"{tmp_path}/fill_ups.csv"]
    summary = run(spark, *given, "--week", "2024-W10", "--output", str(out), "--no-scatter")
    # Then summary, datasets and page say so, and what was before; and the job names its datasets
    assert (summary["ok"], summary["rejects"]) == (True, {"corrected": 1})
    assert summary["odometer"] == {"compared": 2, "backwards": 1, "disagrees": 0}
    assert {str(file.parent.relative_to(out)) for file in out.rglob("_SUCCESS")} == set(DATASETS)
    (before,), (ranked,), (odometer,), (rejected,) = (
        pq.read_table(out / name).to_pylist() for name in ("fleet_before", "ranking", "odometer", "rejects")
    )
    assert (before["trips"], before["distance_m"]) == (1, 20_000)
    assert (ranked["trips"], ranked["distance_m"], ranked["distance_m_before"]) == (2, 40_000, 20_000)
    assert (odometer["to_trip"], odometer["problem"], rejected["reason"]) == ("2", "backwards", "corrected")
    page = (out / "report.html").read_text("utf-8")
    assert "before: 2024-W09" in page
    assert "1 row was corrected" in page


@pytest.mark.parametrize(
    "names", [["trips.csv", "fleet/notes.txt"], ["trips.csv", "report.html"], ["trips.csv", "report.html/a"]]
)
def test_nothing_of_somebodys_is_replaced(spark, tmp_path, *, names):
    # Given files of somebody's in the folder that is named for the report
    datasets(tmp_path)
    for name in names:
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text((tmp_path / "trips.csv").read_text())
    before = sorted(tmp_path.rglob("*"))
    # When a report is made there, then it is refused, and all of them are as they were
    with pytest.raises(InvalidRequest, match="is not the folder of a report, and has "):
        run(spark, "--trips", f"{tmp_path}/{names[0]}", "--output", f"{tmp_path}", "--no-scatter")
    assert sorted(tmp_path.rglob("*")) == before


@pytest.mark.parametrize(
    ("words", "why"),
    [
        ("", "name the report by --key"),
        ("--key k --topic all", "must have {fleet} in it"),
        ("--week 2024-W10 --to 2024-W11", "leave out --from and --to"),
        ("--week 2024-W60", "2024-W60"),
        ("--week 2024-W10 --max-rejects some", "some"),
    ],
)
def test_arguments_that_do_not_go_together_start_nothing(capsys, words, why):
    with pytest.raises(SystemExit) as ended:
        JOB.main(["--trips", "a", "--output", "nowhere", *words.split()])
    assert ended.value.code == 2
    assert why in capsys.readouterr().err
