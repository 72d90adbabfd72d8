"""Values that are remembered for a while."""

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
def test_a_value_is_fresh_for_half_a_minute(clock, fresh, value):
    assert fresh.remember("a", value) == value

    clock.advance(FRESH_MS - 1)
    assert fresh.get("a") == value
    clock.advance(1)
    assert fresh.get("a") is None


def test_a_value_that_is_remembered_again_is_fresh_from_then(clock, fresh):
    fresh.remember("a", 1)
    clock.advance(FRESH_MS - 1)
    fresh.remember("a", 2)
    clock.advance(FRESH_MS - 1)

    assert fresh.get("a") == 2


def test_reading_a_value_keeps_it_no_longer(clock, fresh):
    fresh.remember("a", 1)
    for _ in range(3):
        fresh.get("a")
        clock.advance(FRESH_MS // 3)

    assert fresh.get("a") is None


def test_keys_are_apart(clock, fresh):
    fresh.remember("a", 1)
    clock.advance(FRESH_MS // 2)
    fresh.remember("b", 2)
    clock.advance(FRESH_MS // 2)

    assert (fresh.get("a"), fresh.get("b"), fresh.get("c")) == (None, 2, None)


def test_a_value_is_forgotten_at_once(fresh):
    fresh.remember("a", 1)
    fresh.forget("a")
    fresh.forget("never remembered")

    assert fresh.get("a") is None
