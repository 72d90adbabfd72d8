"""The report as a page: one file, nothing to load, everything escaped."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Final

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from examples.fleet.report import Report

NOTHING: Final = "\N{EN DASH}"


@dataclass(frozen=True)
class Aftermath:
    """What vehicles said besides, none of which counts.

    Attributes:
        repeated: replies that came again.
        different: those of them that said something else.
        late: replies after the report was ready.
    """

    repeated: int = 0
    different: int = 0
    late: int = 0


def page(report: Report, aftermath: Aftermath | None = None) -> str:
    """Render a report as HTML.

    Args:
        report: what to show.
        aftermath: what came besides; None while nobody knows.
    """
    last_day = report.week.monday + timedelta(days=6)
    return (
        _environment()
        .get_template("report.html")
        .render(
            report=report,
            aftermath=aftermath,
            days=f"{report.week.monday:%-d %B} {NOTHING} {last_day:%-d %B %Y}",
            farthest=max((row.figures.distance_m for row in report.rows), default=0),
        )
    )


def km(metres: int) -> str:
    """Kilometres with a tenth."""
    return f"{metres / 1000:,.1f}"


def whole_km(metres: int) -> str:
    """Kilometres as an odometer shows them."""
    return f"{metres // 1000:,}"


def hours(seconds: int) -> str:
    """Hours and minutes."""
    minutes = round(seconds / 60)
    return f"{minutes // 60}:{minutes % 60:02}"


def litres(millilitres: int) -> str:
    """Litres with a tenth."""
    return f"{millilitres / 1000:,.1f}"


def tenth(value: float | None) -> str:
    """A number with a tenth, or a dash where there is none."""
    return NOTHING if value is None else f"{value:,.1f}"


def euros(cents: int) -> str:
    """Euros with cents."""
    return f"{cents / 100:,.2f}"


def times(count: int) -> str:
    """How often, in words."""
    few = ("never", "once", "twice")
    return few[count] if count < len(few) else f"{count} times"


def _environment() -> Environment:
    environment = Environment(
        loader=FileSystemLoader(Path(__file__).parent),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    for one in (km, whole_km, hours, litres, tenth, euros, times):
        environment.filters[one.__name__] = one
    return environment
