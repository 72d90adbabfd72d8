"""The report as a page: one HTML file that holds its charts, loads nothing and escapes everything."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from functools import partial
from importlib import resources
from typing import Any, Final

from fanin.spark.fleet_report import extra
from fanin.spark.fleet_report.asking import AskedFleet
from fanin.spark.fleet_report.charts import COLOURS, SIZE, Chart, Series, bars, horizontal_bars, lines
from fanin.spark.fleet_report.weeks import label

NOTHING: Final = "\N{EN DASH}"
OTHERS: Final = "all others"
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
class Report:
    """What is on the page; it stays small, however much was driven.

    Attributes:
        title: of the page.
        weeks: Mondays of the period's weeks, in order.
        fleets: rows of ``rollups.fleets``, farthest first, at most ``FLEETS``.
        total: the same of all fleets together.
        fleet_count: how many fleets there are in all.
        fleet_weeks: rows of ``rollups.fleet_weeks``, of those fleets.
        missing: fleet → reason → number of missing vehicles, of those fleets.
        missing_count: reason → number of missing vehicles, of all fleets.
        listed: some of the missing, rows of ``rollups.missing``.
        asked: who was asked; empty if nobody was.
        rejects: reason, detail and count of rows that were left out.
        rows: how many rows came in.
        outside: how many of them are of other weeks or fleets.
        currency: as people write it.
        outliers: how many rows are of weeks far from all others, and which; empty if there are none.
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

    def top(self) -> list[str]:
        """The fleets that have a series of their own in charts."""
        names = [row["fleet"] for row in self.fleets]
        return names if len(names) <= COLOURS else names[: COLOURS - 1]


def render_page(report: Report) -> str:
    """Render a report as HTML; the same report gives the same page.

    Raises:
        NotConfigured: the extra ``fanin[report]`` is not installed.
    """
    jinja2, markup = extra.load("jinja2"), extra.load("markupsafe").Markup
    environment = jinja2.Environment(
        autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    environment.filters.update(
        km=km, hours=hours, percent=percent, litres=litres, tenth=tenth, money=money, whole=whole, week=label
    )
    page: str = environment.from_string(_text("report.html")).render(
        report=report,
        charts={name: markup(svg) for name, svg in _charts(report).items()},  # pygal escapes
        why=WHY,
        missing=sum(report.missing_count.values()),
        asked=sum(one.recipients for one in report.asked),
        received=sum(one.received for one in report.asked),
        fewer=report.fleet_count - len(report.fleets),
    )
    return page


def _charts(report: Report) -> dict[str, str]:
    """Draw the charts that have data."""
    if not report.weeks or len(report.weeks) > WEEKS or not report.fleets:
        return {}
    of = partial(_by_week, report)
    drawn = {
        "distance": bars(
            of("distance", lambda row: row["distance_m"] / 1e6, short, others=True)._replace(size=SIZE)
        ),
        "utilisation": lines(
            of("utilisation", lambda row: row["utilisation"] * 100, lambda v: f"{short(v)} %")
        ),
    }
    if report.fuelled:
        drawn["consumption"] = lines(
            of("consumption", lambda row: row["l_per_100km"], lambda v: f"{short(v)} l")
        )
        drawn["cost"] = bars(of("cost", lambda row: row["cost"] / 100, short, others=True))
    if report.missing:
        names = [row["fleet"] for row in report.fleets if row["fleet"] in report.missing]
        series = [
            Series(text, [report.missing[name].get(why, 0) or None for name in names])
            for why, text in WHY.items()
            if report.missing_count.get(why)
        ]
        if names:
            drawn["missing"] = horizontal_bars(Chart("missing", names, series, lambda v: f"{v:,.0f}"))
    return drawn


def _by_week(
    report: Report,
    id_: str,
    value: Callable[[Row], float | None],
    shown: Callable[[float], str],
    *,
    others: bool = False,
) -> Chart:
    """A figure of the fleets by week.

    Args:
        report: where it is from.
        id_: of the chart.
        value: gives the figure of a fleet's week.
        shown: gives it as text.
        others: add a series with the sum of all other fleets; for ratios a sum would be meaningless.
    """
    top = report.top()
    series = [Series(name, report.of(name, value)) for name in top]
    rest = [row["fleet"] for row in report.fleets[len(top) :]]
    if others and rest:
        columns = zip(*(report.of(name, value) for name in rest), strict=True)
        series.append(Series(OTHERS, [sum(filter(None, column)) for column in columns]))
    return Chart(id_, report.labels, series, shown)


def short(value: float) -> str:
    """A number as an axis shows it: with three significant figures, or without decimals."""
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"  # noqa: PLR2004


def km(metres: int) -> str:
    """Whole kilometres."""
    return f"{round(metres / 1000):,}"


def hours(seconds: int) -> str:
    """Whole hours."""
    return f"{round(seconds / 3600):,}"


def percent(share: float | None) -> str:
    """A share in per cent with one decimal, or a dash if it is None."""
    return NOTHING if share is None else f"{share * 100:.1f} %"


def litres(millilitres: int) -> str:
    """Whole litres."""
    return f"{round(millilitres / 1000):,}"


def tenth(value: float | None) -> str:
    """A number with one decimal, or a dash if it is None."""
    return NOTHING if value is None else f"{value:,.1f}"


def money(hundredths: float | None) -> str:
    """An amount with two decimals, or a dash if it is None."""
    return NOTHING if hundredths is None else f"{hundredths / 100:,.2f}"


def whole(number: int) -> str:
    """A number with commas between thousands."""
    return f"{number:,}"


def _text(name: str) -> str:
    """The text of a file next to this module, even if the package is a zip."""
    return resources.files("fanin.spark.fleet_report").joinpath(name).read_text("utf-8")
