"""The results of a run of the demo: the reports, and whether every promise holds."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from examples.fleet.log import week_log
from examples.fleet.mishaps import Gone, InTunnel, Mute, Scrapped, Slow
from examples.fleet.page import Aftermath, euros, hours, km, tenth, times
from examples.fleet.report import Figures, Report
from examples.fleet.road import MISHAPS
from fanin import names

ASKED_IN_VAIN = (Mute, InTunnel)
ABSENT = (*ASKED_IN_VAIN, Gone, Scrapped)


@dataclass(frozen=True)
class Outcome:
    """Everything that the demo knows about one report.

    Attributes:
        report: the report, built when the event Gather Ready arrived.
        again: the same report, built again after late answers.
        aftermath: the replies that do not count.
        events: the events that the office received about it.
        file: path of the page.
    """

    report: Report
    again: Report
    aftermath: Aftermath
    events: list[dict[str, Any]]
    file: Path

    @property
    def title(self) -> str:
        return f"{self.report.fleet.key} {self.report.week}"

    def checks(self) -> dict[str, bool]:
        """Each promise about this report, and whether it holds."""
        report = self.report
        mishaps = {plate: MISHAPS.get(plate) for plate in report.fleet.vehicles}
        absent = {plate for plate, mishap in mishaps.items() if mishap in ABSENT}
        replied = {row.vehicle.plate: row for row in report.rows}
        asked = {one.vehicle.plate: one.asked for one in report.missing}
        logs = [week_log(row.vehicle, report.week) for row in report.rows]
        total = report.total
        return {
            "one Gather Ready, once": [event["detail-type"] for event in self.events] == [names.GATHER_READY],
            "exactly the vehicles that must be missing are missing": (
                asked.keys() == absent and replied.keys() == mishaps.keys() - absent
            ),
            "vehicles without an answer were asked again, as often as allowed": all(
                asked.get(plate) == 1 + report.retries
                for plate, mishap in mishaps.items()
                if mishap in ASKED_IN_VAIN
            ),
            "only slow vehicles had to be asked twice": all(
                row.asked == 1 + (mishaps[plate] is Slow) for plate, row in replied.items()
            ),
            "every row agrees with the log of its vehicle": all(
                (row.figures, row.odometer_m) == (Figures.of(log), log.odometer_m)
                for row, log in zip(report.rows, logs, strict=True)
            ),
            "the total agrees with the logs": (total.distance_m, total.fuel_ml, total.cost_cents)
            == (
                sum(trip.distance_m for log in logs for trip in log.trips),
                sum(trip.fuel_ml for log in logs for trip in log.trips),
                sum(fill_up.cost_cents for log in logs for fill_up in log.fill_ups),
            ),
            "late answers were recognized, and changed nothing": (
                self.aftermath.late == sum(mishap is InTunnel for mishap in mishaps.values())
                and self.again == report
            ),
        }


def summary(outcomes: Sequence[Outcome], together: dict[str, bool], console: Console) -> bool:
    """Print the reports and the checks.

    Args:
        outcomes: the outcome of each report.
        together: checks on all reports together: promise → whether it holds.
        console: where to print.

    Returns:
        Whether all checks hold.
    """
    console.rule("reports")
    console.print(_figures(outcomes))
    for outcome in outcomes:
        missing = ", ".join(
            f"{one.vehicle.plate} {'unreachable' if one.asked is None else f'asked {times(one.asked)}'}"
            for one in outcome.report.missing
        )
        console.print(f"[dim]{outcome.title} lacks[/] {escape(missing)}", highlight=False, soft_wrap=True)
    console.rule("checks")
    checks = [outcome.checks() for outcome in outcomes]
    table = Table.grid(padding=(0, 1))
    for what in checks[0]:
        table.add_row(*(_mark(one[what]) for one in checks), escape(what))
    for what, holds in together.items():
        table.add_row(_mark(holds), *("" for _ in checks[1:]), escape(what))
    console.print(table)
    console.rule("pages")
    for outcome in outcomes:
        console.print(escape(str(outcome.file)), soft_wrap=True, highlight=False)
    return all(holds for one in [*checks, together] for holds in one.values())


def _mark(holds: bool) -> str:
    return "[green]✓[/]" if holds else "[red]✗[/]"


def _figures(outcomes: Sequence[Outcome]) -> Table:
    table = Table(box=None, pad_edge=False)
    table.add_column("report", no_wrap=True)
    for column in ("replied", "trips", "km", "h", "l/100 km", "€", "again", "late"):
        table.add_column(column, justify="right", no_wrap=True)
    for outcome in outcomes:
        report, total, uncounted = outcome.report, outcome.report.total, outcome.aftermath
        table.add_row(
            outcome.title,
            f"{len(report.rows)} of {len(report.fleet.vehicles)}",
            str(total.trips),
            km(total.distance_m),
            hours(total.driving_s),
            tenth(total.litres_per_100_km),
            euros(total.cost_cents),
            str(uncounted.repeated),
            str(uncounted.late),
        )
    return table
