"""Values that are remembered for a while."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from time import sleep

import pytest

from fanin.adapters.memory import FixedClock
from fanin.app.fresh import FRESH_MS, Fresh


@pytest.fixture
def clock() -> FixedClock:
    return FixedClock()


@pytest.fixture
def fresh(clock: FixedClock) -> Fresh[str, object]:
    return Fresh(clock)


@pytest.mark.parametrize("value", [1, ()])
@pytest.mark.parametrize(("choice", "fresh_ms"), [({}, FRESH_MS), ({"fresh_ms": 5}, 5)])
def test_a_value_is_fresh_for_half_a_minute_or_as_long_as_the_caller_says(clock, value, choice, fresh_ms):
    fresh: Fresh[str, object] = Fresh(clock, **choice)
    assert fresh.remember("a", value) == value

    clock.advance(fresh_ms - 1)
    assert fresh.get("a") == value
    clock.advance(1)
    assert fresh.get("a") is None


def test_a_value_that_is_remembered_again_is_fresh_from_then(clock, fresh):
    fresh.remember("a", 1)
    clock.advance(FRESH_MS - 1)
    fresh.remember("a", 2)
    clock.advance(FRESH_MS - 1)

    assert fresh.get("a") == 2


def test_reading_a_value_keeps_it_no_longer(clock: FixedClock, fresh: Fresh[str, object]) -> None:
    fresh.remember("a", 1)
    for _ in range(3):
        fresh.get("a")
        clock.advance(FRESH_MS // 3)

    assert fresh.get("a") is None


def test_keys_are_apart(clock: FixedClock, fresh: Fresh[str, object]) -> None:
    fresh.remember("a", 1)
    clock.advance(FRESH_MS // 2)
    fresh.remember("b", 2)
    clock.advance(FRESH_MS // 2)

    assert (fresh.get("a"), fresh.get("b"), fresh.get("c")) == (None, 2, None)


def test_a_value_is_forgotten_at_once(fresh: Fresh[str, object]) -> None:
    fresh.remember("a", 1)
    fresh.forget("a")
    fresh.forget("never remembered")

    assert fresh.get("a") is None


class SwitchingClock(FixedClock):
    """Lets another thread go on whenever it is asked."""

    def now(self) -> int:
        sleep(0)
        return super().now()


def test_threads_that_find_the_same_value_stale_do_not_fall_over_it() -> None:
    clock = SwitchingClock()
    fresh: Fresh[str, int] = Fresh(clock)

    def use(number: int) -> int:
        clock.advance(FRESH_MS)
        fresh.get("a")
        return fresh.remember("a", number)

    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(use, range(500))) == list(range(500))
