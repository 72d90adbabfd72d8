"""A figure: what was measured, and its bound."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Figure:
    """One row of the table.

    Attributes:
        name: what was measured.
        measured: its value.
        at_most: upper bound.
        at_least: lower bound. A figure without bounds is for comparison.
        note: how the value came about, such as the worst case of many.
    """

    name: str
    measured: float
    at_most: float | None = None
    at_least: float | None = None
    note: str = ""

    @property
    def bounded(self) -> bool:
        return self.at_most is not None or self.at_least is not None

    @property
    def ok(self) -> bool:
        low_enough = self.at_most is None or self.measured <= self.at_most
        return low_enough and (self.at_least is None or self.measured >= self.at_least)

    @property
    def must_be(self) -> str:
        if self.at_most is not None:
            return f"≤ {number(self.at_most)}" if self.at_most else "0"
        return f"≥ {number(self.at_least)}" if self.at_least is not None else ""

    def as_json(self) -> dict[str, Any]:
        return {
            "figure": self.name,
            "measured": self.measured,
            "at_most": self.at_most,
            "at_least": self.at_least,
            "ok": self.ok,
            "note": self.note,
        }


def number(value: float) -> str:
    """Format a number: whole and large ones with thousands separators, others with four digits."""
    return f"{value:,.0f}" if value == int(value) or abs(value) >= 10_000 else f"{value:.4g}"


def worst(figures: Iterable[Figure]) -> Figure:
    """The worst of several measurements: the lowest if there is a lower bound, otherwise the highest."""
    return max(figures, key=lambda figure: figure.measured if figure.at_least is None else -figure.measured)
