"""Putting work in without a key: it is in whole, or its slots are given up."""

from __future__ import annotations

import pytest

from fanin.app.buffers.slots import SEND_MS
from fanin.errors import FaninError, ServiceUnavailable, Throttled
from tests.unit.app.buffers.conftest import Town
from tests.unit.app.conftest import World


@pytest.fixture(autouse=True)
def _jobs(town: Town) -> None:
    town.process().define("jobs", 2)


def fail(error: FaninError) -> None:
    raise error


def test_a_put_that_fails_gives_its_slots_up(world: World, town: Town) -> None:
    for _ in range(3):
        world.at("channels.send", "after", lambda: fail(ServiceUnavailable("no answer")))
        with pytest.raises(ServiceUnavailable):
            town.process().put("jobs", ["a", "b"])

    assert town.process().status("jobs").pending == 0
    assert town.take() == []


def test_a_put_that_takes_too_long_is_not_accepted(world: World, town: Town) -> None:
    world.at("channels.send", "before", lambda: world.clock.advance(SEND_MS + 1))

    with pytest.raises(Throttled, match="again"):
        town.process().put("jobs", ["a"])

    town.process().put("jobs", ["a"])
    assert town.take() == ["a"]
