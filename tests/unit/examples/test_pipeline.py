"""The pipeline's demo: its checks hold for a good run and each fails for its fault; its data is made well."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from examples.fleet.analytics.cars import spoilt, telemetry, write
from examples.fleet.analytics.telemetry import FILL_UPS, TRIPS
from examples.pipeline.flights import FILE, ROWS, unpack
from examples.pipeline.summary import Outcome, summary
from fanin.domain.batch import Batch, State
from fanin.domain.reports import Progress, Verdict

BATCH = Batch(1, b"", 0, 0, 0, 0, 0, state=State.COMPLETE, items=100)
TOLD = {"detail-type": "Batch Completed", "detail": {"failed": 14}}


def good() -> Outcome:
    """A run in which every promise was held."""
    asked = [{"fleet": "HA", "recipients": 10, "received": 8, "failed": 1}]
    reported = {
        "ok": True,
        "rows": 100,
        "rejects": {"null": 7},
        "distance_m": 10**9,
        "vehicles": 11,
        "page": "p.html",
        "asked": asked,
        "missing": {"silent": 1, "failed": 1, "unregistered": 1, "idle": 2},
        "seconds": 3.2,
    }
    return Outcome(
        rows=100,
        sent={"ok": True, "rows": 100, "sent": 100, "requests": 10},
        consumers=Counter(done=50, failed=10, left=40),
        acked={"ok": True, "first": 40, "distinct": 36, "failed": 4, "writes": 2},
        again={"ok": True, "first": 0, "distinct": 36, "failed": 4, "writes": 0},
        progress=Progress(BATCH, 100, 100),
        verdict=Verdict(BATCH, 0),
        events=[TOLD],
        audited={"ok": True, "wrong": 0, "batches": 1},
        reported=reported,
        repeated={**reported, "seconds": 2.9},
        living=8,
        silent=1,
        scrapped=1,
        unknown=1,
        asked=Counter({f"N{n}": 1 for n in range(8)}),
    )


def told(outcome: Outcome) -> tuple[bool, str]:
    console = Console(file=StringIO(), width=200)
    return summary(outcome, console), console.file.getvalue()


def test_a_good_run_is_told_to_be_good() -> None:
    # Given a run in which every promise was held, when it is summed up, then every check holds
    holds, said = told(good())
    assert holds
    assert said.count("✓") == 12
    assert "p.html" in said


def test_the_registrar_may_have_dropped_a_scrapped_aircraft() -> None:
    # Given a run so slow that the registrar came by, when it is summed up, then every check holds
    reported = {**good().reported, "missing": {"silent": 1, "unregistered": 2, "idle": 2}}
    assert told(replace(good(), reported=reported, repeated=reported))[0]


@pytest.mark.parametrize(
    "fault",
    [
        {"sent": {"ok": True, "rows": 100, "sent": 99, "requests": 10}},
        {"acked": {"ok": True, "first": 40, "distinct": 35, "failed": 4, "writes": 2}},
        {"again": {"ok": True, "first": 1, "failed": 4, "writes": 1}},
        {"progress": Progress(replace(BATCH, state=State.CLOSED), 100, 100)},
        {"progress": Progress(BATCH, 99, 99)},
        {"events": [TOLD, TOLD]},
        {"events": [{**TOLD, "detail-type": "Batch Orphaned"}]},
        {"events": [{**TOLD, "detail": {"failed": 13}}]},
        {"verdict": Verdict(BATCH, 1)},
        {"verdict": Verdict(BATCH, 0, ("level 1",))},
        {"audited": {"ok": False, "wrong": 1, "batches": 1}},
        {"reported": {**good().reported, "rows": 99}, "repeated": {**good().reported, "rows": 99}},
        {"living": 9},
        {"asked": Counter({f"N{n}": 2 for n in range(8)})},
        {"silent": 2},
        {"scrapped": 2},
        {"unknown": 2},
        {"repeated": {**good().reported, "distance_m": 1}},
    ],
)
def test_each_fault_is_found(fault: dict[str, Any]) -> None:
    # Given a run with one fault, when it is summed up, then one check fails, and so does the demo
    holds, said = told(replace(good(), **fault))
    assert not holds
    assert said.count("✗") == 1


def test_cars_are_made_up_but_always_the_same(tmp_path: Path) -> None:
    # Given the cars' telemetry, when it is written twice
    written = [write(tmp_path / name, 2) for name in ("one", "two")]

    # Then it is the same, with the columns that the report takes
    assert written[0] == written[1]
    for feed in (TRIPS, FILL_UPS):
        one, two = (tmp_path / name / f"{feed.name}.csv" for name in ("one", "two"))
        assert one.read_bytes() == two.read_bytes()
        assert one.read_text().splitlines()[0].split(",") == feed.columns.names


def test_some_rows_arrive_spoilt_and_none_is_lost() -> None:
    # Given the rows as they are
    trips, _ = telemetry(3)

    # When they arrive
    arrived = list(spoilt(trips, "seed"))

    # Then a few are there twice, a few are not as they were, and the others are
    good_ones = {tuple(row.values()) for row in trips}
    hurt = [row for row in arrived if tuple(row.values()) not in good_ones]
    twice = len(arrived) - len(trips)
    assert 0 < twice < len(trips) / 50
    assert 0 < len(hurt) < len(trips) / 50


def test_the_flights_are_all_there(tmp_path: Path) -> None:
    # Given the package of flights, when it is unpacked, then its file has a line for each, and a header
    file = unpack(tmp_path)
    assert file.name == FILE
    with file.open() as lines:
        assert sum(1 for _ in lines) == ROWS + 1
