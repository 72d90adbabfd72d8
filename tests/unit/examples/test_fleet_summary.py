"""The demo's own checks: they hold for a good run, and each fails for the fault that it looks for."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from rich.console import Console

from examples.fleet.log import Week, week_log
from examples.fleet.mishaps import Gone, Scrapped, Slow
from examples.fleet.page import Aftermath
from examples.fleet.report import Figures, Missing, Report, Row
from examples.fleet.road import MISHAPS
from examples.fleet.roster import HARBOUR
from examples.fleet.summary import ABSENT, Outcome, summary

WEEK = Week(2026, 46)


def good() -> Outcome:
    """A run in which everybody behaves as badly as is planned."""
    rows, missing = [], []
    for plate, vehicle in HARBOUR.vehicles.items():
        mishap = MISHAPS.get(plate)
        if mishap in ABSENT:
            missing.append(Missing(vehicle, "?", {Gone: 0, Scrapped: None}.get(mishap, 2)))
        else:
            log = week_log(vehicle, WEEK)
            rows.append(Row(vehicle, Figures.of(log), log.odometer_m, 1 + (mishap is Slow)))
    report = Report(HARBOUR, WEEK, 1, "c", "now", 11, 1, tuple(rows), tuple(missing))
    return Outcome(report, report, Aftermath(2, 1, 1), [{"detail-type": "Gather Ready"}], Path("x.html"))


def changed(**report: object) -> Outcome:
    outcome = good()
    other = replace(outcome.report, **report)
    return replace(outcome, report=other, again=other)


def with_row(**row: object) -> Outcome:
    first, *others = good().report.rows
    return changed(rows=(replace(first, **row), *others))


def with_missing(plate: str, **missing: object) -> Outcome:
    found = good().report.missing
    return changed(
        missing=tuple(replace(one, **missing) if one.vehicle.plate == plate else one for one in found)
    )


def shown(outcome: Outcome, together: dict[str, bool] | None = None) -> tuple[bool, str]:
    console = Console(record=True, width=100, file=open("/dev/null", "w"))  # noqa: PTH123, SIM115
    return summary([outcome, outcome], together or {}, console), console.export_text()


def test_a_good_run_is_good():
    held, said = shown(good(), {"a promise on all": True})
    assert held
    assert "✗" not in said
    assert said.count("✓") == 15
    assert "HC-104 asked twice" in said
    assert "HC-112 unreachable" in said


@pytest.mark.parametrize(
    ("outcome", "promise"),
    [
        (replace(good(), events=good().events * 2), "one Gather Ready"),
        (replace(good(), events=[{"detail-type": "Batch Completed"}]), "one Gather Ready"),
        (changed(missing=good().report.missing[1:]), "vehicles that must be missing"),
        (changed(rows=good().report.rows[1:]), "vehicles that must be missing"),
        (with_missing("HC-104", asked=1), "without an answer were asked again"),
        (with_row(asked=2), "only slow vehicles"),
        (with_row(odometer_m=1), "every row"),
        (with_row(figures=Figures(1)), "the total"),
        (replace(good(), aftermath=Aftermath(2, 1, 0)), "late answers"),
        (replace(good(), again=replace(good().report, rows=())), "late answers"),
    ],
)
def test_each_fault_is_found(outcome, promise):
    held, said = shown(outcome)
    assert not held
    assert [line for line in said.splitlines() if promise in line and line.startswith("✗ ✗")]


def test_a_promise_on_all_counts_too():
    assert not shown(good(), {"a promise on all": False})[0]
