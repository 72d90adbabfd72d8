"""Figures as text; those of the period before have their change, where there is one."""

import pytest

from examples.fleet.analytics.formats import before, short


@pytest.mark.parametrize(
    ("value", "text"), [(0, "0"), (0.25, "0.25"), (8.0, "8"), (12345.6, "12,346"), (99.95, "100")]
)
def test_axes_show_short_numbers(value: float, text: str) -> None:
    # Given a value, when an axis shows it, then without an exponent
    assert short(value) == text


@pytest.mark.parametrize(
    ("now", "earlier", "text"),
    [
        ({"trips": 6}, {"trips": 5}, "5, +20.0 %"),
        ({"trips": 5}, {"trips": 5}, "5, unchanged"),
        ({"trips": 5}, {"trips": 0}, "0"),
        ({"trips": 5}, {"trips": None}, "None"),
        ({"trips": 5}, None, "None"),
        ({"trips": None}, {"trips": 5}, "5"),
    ],
)
def test_a_change_needs_something_to_change_from(now: dict, earlier: dict | None, text: str) -> None:
    # Given a figure and that of the period before, when they are compared, then nothing is divided by zero
    assert str(before(now, earlier)["trips"]) == text


def test_a_share_changes_by_points() -> None:
    # Given shares of hours, when they are compared, then the change is not a share of a share
    assert str(before({"utilisation": 0.04}, {"utilisation": 0.05})["utilisation"]) == "5.0 %, -1.0 points"
