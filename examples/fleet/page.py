"""Renders the report as an HTML page: one file that loads nothing, with everything escaped."""

from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Final

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from examples.fleet.report import Report

NOTHING: Final = "\N{EN DASH}"


@dataclass(frozen=True)
class Aftermath:
    """Replies that do not count.

    Attributes:
        repeated: how many replies were repeated.
        different: how many of these differed from the first reply.
        late: how many replies came after the report was ready.
    """

    repeated: int = 0
    different: int = 0
    late: int = 0


def page(report: Report, aftermath: Aftermath | None = None) -> str:
    """Render a report as HTML.

    Args:
        report: the report.
        aftermath: the replies that do not count; None if they are not known yet.
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
    """Kilometres with one decimal."""
    return f"{metres / 1000:,.1f}"


def whole_km(metres: int) -> str:
    """Kilometres as an odometer shows them."""
    return f"{metres // 1000:,}"


def hours(seconds: int) -> str:
    """Hours and minutes."""
    minutes = round(seconds / 60)
    return f"{minutes // 60}:{minutes % 60:02}"


def litres(millilitres: int) -> str:
    """Litres with one decimal."""
    return f"{millilitres / 1000:,.1f}"


def tenth(value: float | None) -> str:
    """A number with one decimal, or a dash for None."""
    return NOTHING if value is None else f"{value:,.1f}"


def euros(cents: int) -> str:
    """Euros with two decimals."""
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
