"""The report as a page: one HTML file that holds its charts, loads nothing and escapes everything."""

from collections.abc import Callable, Sequence
from datetime import date
from functools import partial
from importlib import resources
from typing import Final, NamedTuple

import jinja2
from markupsafe import Markup

from examples.fleet.analytics import odometer
from examples.fleet.analytics.charts import SIZE, Chart, Series, bars, horizontal_bars, lines
from examples.fleet.analytics.contents import WEEKS, WHY, Report, Row, charted
from examples.fleet.analytics.formats import before, hours, km, litres, money, percent, short, tenth, whole
from examples.fleet.analytics.weeks import label

OTHERS: Final = "others"


def render_page(report: Report) -> str:
    """Render a report as HTML; the same report gives the same page."""
    environment = jinja2.Environment(
        autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    amounts = {"km": km, "hours": hours, "percent": percent, "litres": litres, "tenth": tenth, "money": money}
    environment.filters.update(**amounts, whole=whole, counted=_counted, span=_span, week=label)
    environment.globals.update(before=before)
    page: str = environment.from_string(_text("report.html")).render(
        report=report,
        charts=[(about, chart.legend, Markup(draw(chart))) for about, chart, draw in _charts(report)],  # noqa: S704  pygal escapes
        why=WHY,
        tolerance=f"{odometer.TOLERANCE_M // 1000} km or {odometer.TOLERANCE_PERCENT} %",
        missing=sum(report.missing_count.values()),
        asked=sum(one.recipients for one in report.asked),
        received=sum(one.received for one in report.asked),
        fewer=report.fleet_count - len(report.fleets),
    )
    return page


class About(NamedTuple):
    """What stands over a chart."""

    title: str
    unit: str


Drawing = tuple[About, Chart, Callable[[Chart], str]]


def _charts(report: Report) -> list[Drawing]:
    """The charts that have data; the first is as wide as the page, and so is one without a neighbour."""
    if not report.weeks or len(report.weeks) > WEEKS or not report.fleets:
        return []
    of = partial(_by_week, report)
    found: list[Drawing] = [
        (
            About("Distance", "thousand kilometres a week"),
            of("distance", lambda row: row["distance_m"] / 1e6, short),
            bars,
        ),
        (
            About("Utilisation", "share of the week's hours that vehicles were under way"),
            of("utilisation", lambda row: _times(row["utilisation"], 100), lambda v: f"{short(v)} %"),
            lines,
        ),
    ]
    if report.fuelled:
        found += [
            (
                About("Consumption", "litres per 100 km, of vehicles that filled up"),
                of("consumption", lambda row: row["l_per_100km"], lambda v: f"{short(v)} l"),
                lines,
            ),
            (
                About("Cost", f"{report.currency} for fuel a week"),
                of("cost", lambda row: row["cost"] / 100, short),
                bars,
            ),
        ]
    names = [row["fleet"] for row in report.fleets if row["fleet"] in report.missing]
    if names:
        series = [
            Series(text, [report.missing[name].get(why, 0) or None for name in names])
            for why, text in WHY.items()
            if report.missing_count.get(why)
        ]
        of_missing = Chart("missing", names, series, lambda v: f"{v:,.0f}")
        found.append((About("Missing vehicles", "by fleet and reason"), of_missing, horizontal_bars))
    wide = {0, len(found) - 1} if len(found) % 2 == 0 else {0}
    return [
        (about, chart._replace(size=SIZE) if place in wide else chart, draw)
        for place, (about, chart, draw) in enumerate(found)
    ]


def _times(value: float | None, factor: float) -> float | None:
    return None if value is None else value * factor


def _by_week(
    report: Report, id_: str, value: Callable[[Row], float | None], shown: Callable[[float], str]
) -> Chart:
    """A figure of the fleets by week.

    Args:
        report: where it is from.
        id_: of the chart.
        value: gives the figure of a fleet's week.
        shown: gives it as text.
    """
    names = charted([row["fleet"] for row in report.fleets])
    series = [Series(name, report.of(name, value)) for name in names]
    if report.other_weeks:
        series.append(Series(OTHERS, report.of_others(value)))
    return Chart(id_, report.labels, series, shown)


def _span(weeks: Sequence[date]) -> str:
    """The first and the last of some weeks, as people write them."""
    return label(weeks[0]) + (f" to {label(weeks[-1])}" if len(weeks) > 1 else "")


def _counted(count: int, one: str, many: str = "") -> str:
    """A count, and what it counts: ``1 row``, ``1,200 rows``."""
    return f"{count:,} {one if count == 1 else many or one + 's'}"


def _text(name: str) -> str:
    """The text of a file next to this module, even if the package is a zip."""
    return resources.files("examples.fleet.analytics").joinpath(name).read_text("utf-8")
