"""Figures as text, with units that people know."""

from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple

NOTHING: Final = "\N{EN DASH}"
_LEAST: Final = 0.0005
"""Share below which a change would be shown as 0.0 %."""


class Before(NamedTuple):
    """A figure of the period before.

    Attributes:
        value: as text.
        change: from it to that of the period; empty if there is nothing to divide by.
    """

    value: str
    change: str

    def __str__(self) -> str:
        return f"{self.value}, {self.change}" if self.change else self.value


def before(now: Mapping[str, Any], earlier: Mapping[str, Any] | None) -> dict[str, Before | None]:
    """The figures of the period before, each with its change; None where there is none.

    Args:
        now: sums and ratios of the period.
        earlier: the same of the period before; None if there is none.
    """
    return {
        name: None
        if earlier is None or earlier.get(name) is None
        else Before(shown(earlier[name]), _change(name, now.get(name), earlier[name]))
        for name, shown in _SHOWN.items()
    }


def _change(name: str, now: float | None, earlier: float) -> str:
    if now is None:
        return ""
    if name in _SHARES:
        points = (now - earlier) * 100
        return "unchanged" if abs(points) < _LEAST * 100 else f"{points:+.1f} points"
    if not earlier:
        return ""
    share = (now - earlier) / earlier
    return "unchanged" if abs(share) < _LEAST else f"{share * 100:+,.1f} %"


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


_SHARES: Final = frozenset({"utilisation"})
_SHOWN: Final[Mapping[str, Callable[[Any], str]]] = {
    "active": whole,
    "trips": whole,
    "distance_m": km,
    "duration_s": hours,
    "utilisation": percent,
    "volume_ml": litres,
    "l_per_100km": tenth,
    "cost": money,
    "cost_per_100km": money,
}
"""The figures that are compared, and how they are shown."""
