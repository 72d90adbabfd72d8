"""Waits between tries: how long, and how many."""

from __future__ import annotations

import pytest

from fanin.adapters.backoff import Backoff


def test_waits_grow_to_the_cap_and_precede_every_try_but_the_first() -> None:
    waits: list[float] = []
    backoff = Backoff(tries=6, base=0.1, cap=0.5, sleep=waits.append, fraction=lambda: 1.0)

    tries = list(backoff)

    assert tries == [0, 1, 2, 3, 4, 5]
    assert waits == [0.1, 0.2, 0.4, 0.5, 0.5]


def test_waits_are_a_random_part_of_the_bound() -> None:
    waits: list[float] = []

    list(Backoff(tries=2, base=0.1, sleep=waits.append, fraction=lambda: 0.25))

    assert waits == [0.025]


@pytest.mark.parametrize(("attempt", "seconds"), [(0, 2.0), (1, 4.0), (2, 8.0), (3, 10.0), (10_000, 10.0)])
def test_the_bound_of_a_wait_doubles_with_each_attempt_up_to_the_cap(attempt: int, seconds: float) -> None:
    assert Backoff(base=2.0, cap=10.0, fraction=lambda: 1.0).delay(attempt) == seconds


@pytest.mark.parametrize(("asked", "seconds"), [(None, 1.0), (0.2, 1.0), (3, 3), (60, 10.0)])
def test_a_wait_is_no_shorter_than_the_service_asked_for_and_no_longer_than_the_cap(
    asked: float | None, seconds: float
) -> None:
    assert Backoff(base=2.0, cap=10.0, fraction=lambda: 0.5).delay(0, asked) == seconds


def test_wait_sleeps_for_that_delay() -> None:
    waits: list[float] = []
    Backoff(base=2.0, cap=10.0, sleep=waits.append, fraction=lambda: 0.5).wait(1, at_least=3)
    assert waits == [3]


def test_one_try_waits_for_nothing() -> None:
    assert list(Backoff(tries=1, sleep=lambda _: pytest.fail("slept"))) == [0]
