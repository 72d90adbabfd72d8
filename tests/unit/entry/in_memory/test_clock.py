"""Clocks of a service in memory."""

from __future__ import annotations

import time

import pytest

from fanin.entry.in_memory import clock as clocks
from fanin.entry.in_memory.clock import RealClock, ServiceClock, StandingClock


def test_on_a_standing_clock_time_passes_at_once_and_never_back() -> None:
    clock = StandingClock(1_000)
    assert clock.now() == clock.now() == 1_000
    clock.pass_until(5_000)
    clock.pass_until(2_000)
    assert clock.now() == 5_000


def test_a_real_clock_sleeps_a_moment_at_the_most(monkeypatch: pytest.MonkeyPatch) -> None:
    slept: list[float] = []
    monkeypatch.setattr(clocks.time, "sleep", slept.append)
    clock = RealClock()
    clock.pass_until(clock.now() + 60_000)
    clock.pass_until(clock.now() - 60_000)
    assert slept == [0.05, 0]
    assert abs(clock.now() - time.time() * 1000) < 60_000


def test_whoever_uses_a_service_gets_the_time_in_the_units_of_the_module_time() -> None:
    waits: list[float] = []
    clock = ServiceClock(StandingClock(1_500), waits.append)
    clock.sleep(2)
    assert (clock.now(), clock.seconds(), clock.monotonic(), waits) == (1_500, 1.5, 1.5, [2])
