from __future__ import annotations

import re

import pytest

from fanin.console.pictures.gauge import gauge


def dashes(svg: str) -> dict[str, tuple[float, float]]:
    """Class of each part of the arc → where it starts, and how long it is, of 100."""
    found = re.findall(
        r'class="(\w+)" d="[^"]*" pathLength="100" stroke-dasharray="0 ([\d.]+) ([\d.]+) ', svg
    )
    return {name: (float(start), float(length)) for name, start, length in found}


def test_parts_follow_each_other_from_the_left() -> None:
    drawn = dashes(gauge({"taken": 10, "waiting": 25}, 100, "x"))
    assert (drawn["taken"], drawn["waiting"]) == ((0, 10), (10, 25))
    assert drawn["limit"][1] == 0


def test_above_the_limit_a_tick_shows_where_the_limit_is() -> None:
    # Given 50 where 20 are allowed
    drawn = dashes(gauge({"taken": 10, "waiting": 40}, 20, "x"))
    # Then the arc is full with what there is
    assert (drawn["taken"], drawn["waiting"]) == ((0, 20), (20, 80))
    # And the tick is at two fifths of it
    start, length = drawn["limit"]
    assert length > 0
    assert start + length / 2 == pytest.approx(40)


def test_a_gauge_of_nothing_is_empty() -> None:
    assert {length for _, length in dashes(gauge({"taken": 0, "waiting": 0}, 0, "x")).values()} == {0}


def test_little_of_very_much_is_not_shown_as_nothing_in_words() -> None:
    drawn = dashes(gauge({"taken": 0, "waiting": 10}, 1_000_000, "10 of 1,000,000"))
    assert drawn["waiting"] == (0, 0)


def test_the_shape_is_the_same_whatever_is_in_it() -> None:
    """A live view then changes attributes only."""
    empty, full = (re.findall(r"<\w+", gauge({"taken": taken, "waiting": 0}, 5, "x")) for taken in (0, 9))
    assert empty == full


def test_the_label_is_escaped() -> None:
    assert '<b>"' not in gauge({}, 1, '<b>"')
