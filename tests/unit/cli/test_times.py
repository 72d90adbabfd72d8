"""Times and durations as people read them, and as programs do."""

from __future__ import annotations

import time

import pytest

from fanin.cli.times import about, age, clock, now_ms, relative, when

NOW = 1_795_000_000_000
HOUR = 3_600_000


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (-5, "0 s"),
        (0.9, "0 s"),
        (59.9, "59 s"),
        (60, "1 min"),
        (3_599, "59 min 59 s"),
        (3_600, "1 h"),
        (3_601, "1 h"),
        (7_500, "2 h 5 min"),
        (86_400 * 40, "40 d"),
    ],
)
def test_a_duration_has_its_two_largest_units(seconds, words):
    assert about(seconds) == words


def test_one_unit_is_enough_for_an_age():
    assert about(7_500, units=1) == "2 h"
    assert age(NOW - 2 * HOUR - 300_000, NOW) == ("2 h ago", "2026-11-18T09:01:40.000Z")


def test_a_time_is_seen_from_now():
    assert relative(NOW + HOUR, NOW) == "in 1 h"
    assert relative(NOW - HOUR, NOW) == "1 h ago"
    assert relative(NOW, NOW) == "0 s ago"


def test_programs_get_the_time_without_words():
    found = when(NOW, NOW + HOUR, ", or later")
    assert found.plain == "2026-11-18T11:06:40.000Z"
    assert found.shown == f"{found.plain} (1 h ago, or later)"
    assert when(None, NOW) is None


@pytest.mark.parametrize(
    ("seconds", "shown"),
    [(0, "0:00"), (7.9, "0:07"), (599, "9:59"), (3_600, "1:00:00"), (360_000, "100:00:00")],
)
def test_a_clock(seconds, shown):
    assert clock(seconds) == shown


def test_the_present_is_in_milliseconds():
    assert int(time.time() * 1000) <= now_ms() <= time.time() * 1000
