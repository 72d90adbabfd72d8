"""Consumers that wait are counted as long as they do, and a little longer if they die."""

from __future__ import annotations

import pytest

from fanin.app.buffers.waiting_consumers import WaitingConsumers
from tests.unit.app.conftest import Crash, World


@pytest.fixture
def consumers(world: World) -> WaitingConsumers:
    return WaitingConsumers(world.ports)


def test_each_counts_as_long_as_it_waits(world: World, consumers: WaitingConsumers) -> None:
    until = world.clock.at + 20_000
    with consumers.waiting("jobs", until):
        assert consumers.count("jobs") == 1
        with consumers.waiting("jobs", until):
            assert consumers.count("jobs") == 2
        assert (consumers.count("jobs"), consumers.count("others")) == (1, 0)
    assert consumers.count("jobs") == 0


def test_one_that_fails_waits_no_more(world: World, consumers: WaitingConsumers) -> None:
    with pytest.raises(ValueError, match="x"), consumers.waiting("jobs", world.clock.at + 20_000):
        raise ValueError("x")
    assert consumers.count("jobs") == 0


def test_one_that_dies_counts_a_few_seconds_longer_than_it_would_have_waited(
    world: World, consumers: WaitingConsumers
) -> None:
    world.crash_at("directory.delete", "before")
    with pytest.raises(Crash), consumers.waiting("jobs", world.clock.at + 20_000):
        pass

    world.clock.advance(20_000)
    assert consumers.count("jobs") == 1
    world.clock.advance(5_000)
    assert consumers.count("jobs") == 0
