"""Times, durations and rates as people read them."""

import time

import pytest

from fanin.cli.times import Pace, age, clock, now_ms, relative, when
from fanin.wire.typed import duration

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
        (7_500, "2 h 5 min"),
        (90_000, "1 d 1 h"),
        (86_400 + 60, "1 d"),
    ],
)
def test_a_duration_has_its_two_largest_units(seconds, words):
    assert duration(seconds) == words


def test_one_unit_is_enough_for_an_age():
    assert duration(7_500, units=1) == "2 h"
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


def test_one_look_tells_nothing():
    pace = Pace()
    assert (pace.rate, pace.seconds_left(5)) == (None, None)
    pace.record(10, 100)
    assert (pace.rate, pace.seconds_left(5)) == (None, None)


def test_a_steady_rate():
    pace = Pace()
    for second in range(100):
        pace.record(second, 20 * second)
    assert pace.rate == pytest.approx(20)
    assert pace.seconds_left(100) == pytest.approx(5)


def test_what_lies_before_the_window_is_forgotten():
    pace = Pace(window=10)
    for second in range(50):
        pace.record(second, 1_000 * second)
    for second in range(50, 80):
        pace.record(second, 49_000)
    assert pace.rate == 0
    assert pace.seconds_left(1) is None


def test_looks_far_apart_still_make_a_rate():
    pace = Pace(window=1)
    pace.record(0, 0)
    pace.record(60, 600)
    pace.record(120, 1_800)
    assert pace.rate == pytest.approx(20)
