"""Consumers that wait are counted as long as they do, and a little longer if they die."""

from __future__ import annotations

import pytest

from fanin.app.buffers.waiters import Waiters
from tests.unit.app.conftest import Crash, World


@pytest.fixture
def waiters(world: World) -> Waiters:
    return Waiters(world.ports)


def test_each_counts_as_long_as_it_waits(world: World, waiters: Waiters) -> None:
    until = world.clock.at + 20_000
    with waiters.waiting("jobs", until):
        assert waiters.count("jobs") == 1
        with waiters.waiting("jobs", until):
            assert waiters.count("jobs") == 2
        assert (waiters.count("jobs"), waiters.count("others")) == (1, 0)
    assert waiters.count("jobs") == 0


def test_one_that_fails_waits_no_more(world: World, waiters: Waiters) -> None:
    with pytest.raises(ValueError, match="x"), waiters.waiting("jobs", world.clock.at + 20_000):
        raise ValueError("x")
    assert waiters.count("jobs") == 0


def test_one_that_dies_counts_a_few_seconds_longer_than_it_would_have_waited(
    world: World, waiters: Waiters
) -> None:
    world.crash_at("directory.delete", "before")
    with pytest.raises(Crash), waiters.waiting("jobs", world.clock.at + 20_000):
        pass

    world.clock.advance(20_000)
    assert waiters.count("jobs") == 1
    world.clock.advance(5_000)
    assert waiters.count("jobs") == 0
