"""What is on the page of a report."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from typing import Any, Final

from examples.fleet.analytics.asking import AskedFleet
from examples.fleet.analytics.charts import COLOURS
from examples.fleet.analytics.weeks import label

FLEETS: Final = 40
"""Most fleets with a row on the page: those that drove farthest. The datasets have all fleets."""
LISTED: Final = 200
"""Missing vehicles that the page names."""
WEEKS: Final = 106
"""Most weeks that fit in a chart."""
WHY: Final[Mapping[str, str]] = {
    "silent": "did not answer",
    "failed": "could not be asked",
    "unregistered": "unknown to the directory",
    "idle": "no trip in the period",
}

Row = Mapping[str, Any]


@dataclass(frozen=True)
class Odometers:
    """What became of the check of odometers.

    Attributes:
        readings: how many were compared with the trips.
        problems: ``backwards`` and ``disagrees`` → number of findings.
        listed: some of the findings, rows of ``odometer.findings``.
    """

    readings: int
    problems: Mapping[str, int]
    listed: Sequence[Row]


@dataclass(frozen=True)
class Ranked:
    """The ends of the ranking, rows of ``ranking.rank``, of vehicles with a trip in the period.

    Attributes:
        top: those that drove farthest.
        bottom: those that drove least, none of which is in ``top``.
        count: how many there are in all.
    """

    top: Sequence[Row] = ()
    bottom: Sequence[Row] = ()
    count: int = 0


@dataclass(frozen=True)
class Report:
    """What is on the page; it stays small, however much was driven.

    Attributes:
        title: of the page.
        weeks: Mondays of the period's weeks, in order.
        fleets: rows of ``rollups.fleets``, farthest first, at most ``FLEETS``.
        total: the same of all fleets together.
        fleet_count: how many fleets there are in all.
        fleet_weeks: rows of ``rollups.fleet_weeks``, of the fleets with a series of their own.
        other_weeks: the same columns but the fleet, of all other fleets together; empty if there are none.
        missing: fleet → reason → number of missing vehicles, of those fleets.
        missing_count: reason → number of missing vehicles, of all fleets.
        listed: some of the missing, rows of ``rollups.missing``.
        asked: who was asked; empty if nobody was.
        rejects: reason, detail and count of rows that were left out.
        rows: how many rows came in.
        outside: how many of them are of other weeks or fleets.
        currency: as people write it.
        outliers: how many rows are of weeks far from all others, and which; empty if there are none.
        corrected: rows in whose place later ones count.
        weeks_before: Mondays of the period before; empty if the data do not reach back so far.
        total_before: of the period before, like ``total``; None if there is none.
        fleets_before: fleet → the same of that fleet.
        ranked: the ends of the ranking of vehicles.
        odometers: None if there are no readings.
    """

    title: str
    weeks: Sequence[date]
    fleets: Sequence[Row]
    total: Row
    fleet_count: int
    fleet_weeks: Sequence[Row]
    missing: Mapping[str, Mapping[str, int]]
    missing_count: Mapping[str, int]
    listed: Sequence[Row]
    asked: Sequence[AskedFleet]
    rejects: Sequence[Row]
    rows: int
    outside: int
    currency: str
    outliers: str = ""
    other_weeks: Sequence[Row] = ()
    corrected: int = 0
    weeks_before: Sequence[date] = ()
    total_before: Row | None = None
    fleets_before: Mapping[str, Row] = field(default_factory=dict)
    ranked: Ranked = field(default_factory=Ranked)
    odometers: Odometers | None = None
    _by_week: dict[tuple[str, date], Row] = field(init=False, repr=False, default_factory=dict)

    def __post_init__(self) -> None:
        self._by_week.update({(row["fleet"], row["week"]): row for row in self.fleet_weeks})

    @property
    def fuelled(self) -> bool:
        """Whether any vehicle filled up."""
        return bool(self.total["fill_ups"])

    @property
    def labels(self) -> list[str]:
        return [label(week) for week in self.weeks]

    def of(self, fleet: str, value: Callable[[Row], float | None]) -> list[float | None]:
        """A figure of a fleet for each week; None for weeks without data."""
        rows = (self._by_week.get((fleet, week)) for week in self.weeks)
        return [None if row is None else value(row) for row in rows]

    def of_others(self, value: Callable[[Row], float | None]) -> list[float | None]:
        """A figure of the fleets that share a series, for each week."""
        rows = {row["week"]: row for row in self.other_weeks}
        return [value(rows[week]) if week in rows else None for week in self.weeks]


def charted(fleets: Sequence[str]) -> Sequence[str]:
    """The fleets that have a series of their own in charts; the others share one.

    Args:
        fleets: all fleets, the largest first; more than ``COLOURS`` need not be there.
    """
    return fleets if len(fleets) <= COLOURS else fleets[: COLOURS - 1]
