"""The report asks the vehicles: who answered, who did not, nobody twice, whatever dies on the way."""

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame

from examples.fleet.analytics import report as reporting
from examples.pipeline.vehicles import Vehicles
from fanin import Tracker
from fanin.spark.runtime.service import Service
from tests.spark import faults
from tests.spark.analytics.weekly import datasets, run

DATASETS = (
    "answers",
    "vehicle",
    "vehicle_week",
    "fleet_week",
    "fleet",
    "missing",
    "rejects",
    "checked/trips",
)

LIVING = (("north", "n1"), ("south", "s1"), ("south", "s2"))


@pytest.fixture
def vehicles(local_environment: None, tmp_path: Path) -> Vehicles:
    """n2 does not listen, n3's queue is gone, n4 is not registered, s2 has sent no trip."""
    made = Vehicles(
        Tracker.from_env(),
        topic=f"{tmp_path.name}-{{fleet}}",
        payload=lambda vehicle: {"odometer_m": 1000 * len(vehicle), "status": "ok"},
    )
    made.register("north", ["n1", "n2", "n3"])
    made.register("south", ["s1", "s2"])
    made.scrap(("north", "n3"))
    return made


def written(dataset: str) -> tuple[pa.Schema, list[str]]:
    """What the columns of a dataset are, and its rows in any order."""
    table = pq.read_table(dataset)
    return table.schema, sorted(map(str, table.to_pylist()))


@pytest.mark.soak
def test_the_report_says_who_did_not_answer_and_asks_nobody_twice(spark, vehicles, tmp_path, monkeypatch):
    # Given two fleets with a vehicle that is dead, one whose queue is gone, one that is not registered
    asking = ["--key", tmp_path.name, "--topic", f"{tmp_path.name}-{{fleet}}", "--max-retries", "1"]
    arguments = [*datasets(tmp_path), *asking, "--timeout", str(vehicles.pace())]
    # When the report is made
    with vehicles.answering(LIVING):
        summary = run(spark, *arguments, "--output", f"{tmp_path}/first")
    # Then it says of each what it said, or why it did not
    answers = pq.read_table(f"{tmp_path}/first/answers").to_pylist()
    assert sorted((row["vehicle"], row["answer"], row["odometer_m"], row["status"]) for row in answers) == [
        ("n1", "answered", 2000, "ok"),
        ("n2", "silent", None, None),
        ("n3", "failed", None, None),
        ("s1", "answered", 2000, "ok"),
        ("s2", "answered", 2000, "ok"),
    ]
    missing = pq.read_table(f"{tmp_path}/first/missing").to_pylist()
    assert sorted((row["vehicle"], row["why"]) for row in missing) == [
        ("n2", "silent"),
        ("n3", "failed"),
        ("n4", "unregistered"),
        ("s2", "idle"),
    ]
    assert summary["ok"]
    assert summary["missing"] == {"silent": 1, "failed": 1, "unregistered": 1, "idle": 1}
    assert (summary["rows"], summary["rejects"], summary["outside"]) == (
        10,
        {"duplicate": 1, "null": 1, "malformed": 1},
        1,
    )
    asked = {one["fleet"]: one for one in summary["asked"]}
    assert {name: (one["recipients"], one["received"], one["failed"]) for name, one in asked.items()} == {
        "north": (3, 1, 1),
        "south": (2, 2, 0),
    }
    assert vehicles.waiting(("north", "n2")) == 2  # it was asked again, as it had not answered
    # When the job is run again, with tasks that die in the middle, twice each
    deaths = tmp_path / "deaths"
    dying = faults.DyingService.of(Service.from_env(), deaths)
    read_rows, through = reporting.read, faults.half_way(str(deaths), "reading")

    def faulty_read(*given: Any) -> DataFrame:
        rows = read_rows(*given)
        return rows.mapInArrow(through, rows.schema)

    monkeypatch.setattr(reporting, "read", faulty_read)
    monkeypatch.setattr(Service, "from_env", lambda: dying)
    again = run(spark, *arguments, "--output", f"{tmp_path}/again")
    # Then they died as they should, and came to an end
    assert faults.happened(deaths) == faults.dying_of("reading", "failures")
    # And it is the same report, of the same scatters, for which nobody was asked again
    same = ("asked", "missing", "rows", "rejects", "outside", "distance_m", "cost", "vehicles")
    assert {name: again[name] for name in same} == {name: summary[name] for name in same}
    for name in DATASETS:
        assert written(f"{tmp_path}/again/{name}") == written(f"{tmp_path}/first/{name}")
    page = Path(f"{tmp_path}/again/report.html").read_bytes()
    assert page == Path(f"{tmp_path}/first/report.html").read_bytes()
    assert [vehicles.asked[one] for one in LIVING] == [1, 1, 1]
    assert vehicles.waiting(("north", "n2")) == 2
