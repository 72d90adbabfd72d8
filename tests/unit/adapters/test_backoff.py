"""Waits between tries: how long, and how many."""

import pytest

from fanin.adapters.backoff import Backoff
from fanin.errors import ServiceUnavailable, Throttled


def test_waits_grow_to_the_cap_and_precede_every_try_but_the_first():
    waits: list[float] = []
    backoff = Backoff(tries=6, base=0.1, cap=0.5, sleep=waits.append, fraction=lambda: 1.0)

    tries = list(backoff)

    assert tries == [0, 1, 2, 3, 4, 5]
    assert waits == [0.1, 0.2, 0.4, 0.5, 0.5]


def test_waits_are_a_random_part_of_the_bound():
    waits: list[float] = []

    list(Backoff(tries=2, base=0.1, sleep=waits.append, fraction=lambda: 0.25))

    assert waits == [0.025]


@pytest.mark.parametrize(("attempt", "seconds"), [(0, 2.0), (1, 4.0), (2, 8.0), (3, 10.0), (10_000, 10.0)])
def test_the_bound_of_a_wait_doubles_with_each_attempt_up_to_the_cap(attempt, seconds):
    assert Backoff(base=2.0, cap=10.0, fraction=lambda: 1.0).delay(attempt) == seconds


@pytest.mark.parametrize(("asked", "seconds"), [(None, 1.0), (0.2, 1.0), (3, 3), (60, 10.0)])
def test_a_wait_is_no_shorter_than_the_service_asked_for_and_no_longer_than_the_cap(asked, seconds):
    assert Backoff(base=2.0, cap=10.0, fraction=lambda: 0.5).delay(0, asked) == seconds


class Clock:
    """Waits take as long as they are drawn; so does what adds to ``now``."""

    def __init__(self) -> None:
        self.now = 0.0

    def sleep(self, seconds: float) -> None:
        self.now += seconds


@pytest.mark.parametrize("refusal", [Throttled, ServiceUnavailable])
def test_what_is_refused_is_called_again_until_it_is_answered(refusal):
    clock, refusals = Clock(), iter([refusal("busy")] * 3)

    def call() -> int:
        for error in refusals:
            raise error
        return 7

    backoff = Backoff(base=1, cap=8, sleep=clock.sleep, fraction=lambda: 1.0, clock=lambda: clock.now)
    assert backoff.patiently(call, 60) == 7
    assert clock.now == 1 + 2 + 4


@pytest.mark.parametrize(("seconds", "calls"), [(0, 1), (25, 4), (1_000, 6)], ids=("none", "time", "tries"))
def test_patience_ends_with_the_time_of_the_clock_or_with_the_tries(seconds, calls):
    clock, called = Clock(), []

    def call() -> None:
        called.append(clock.now)
        clock.now += 10  # the call waits itself
        raise Throttled("busy")

    backoff = Backoff(tries=6, sleep=lambda _: None, clock=lambda: clock.now)
    with pytest.raises(Throttled, match="busy"):
        backoff.patiently(call, seconds)
    assert len(called) == calls


def test_another_error_is_raised_at_once():
    def call() -> None:
        raise ValueError("wrong")

    with pytest.raises(ValueError, match="wrong"):
        Backoff(sleep=lambda _: pytest.fail("slept")).patiently(call, 60)
