"""The rate of a batch, from samples of what is done."""

from __future__ import annotations

import pytest

from fanin.cli.pace import Pace


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
