"""Putting work in without a key: it is in whole, or its slots are given up.

Consumers that wait are counted as long as they do, and a little longer if they die.
"""

from contextlib import suppress

import pytest

from fanin.app.buffers.records import BufferRecords
from fanin.app.buffers.slots import MARGIN_MS, SEND_MS
from fanin.errors import ChannelRefused, FaninError, LimitReached, ServiceUnavailable, Throttled
from tests.unit.app.buffers.conftest import Town
from tests.unit.app.conftest import World


@pytest.fixture(autouse=True)
def _jobs(town: Town) -> None:
    town.process().define("jobs", 2)


def fail(error: FaninError) -> None:
    raise error


def test_a_put_that_fails_gives_its_slots_up(world, town):
    for _ in range(3):
        world.at("channels.send", "after", lambda: fail(ServiceUnavailable("no answer")))
        with pytest.raises(ServiceUnavailable):
            town.process().put("jobs", ["a", "b"])

    assert town.pending() == 0
    assert town.take() == []


def test_a_put_into_a_queue_that_is_gone_takes_no_slot(world, town):
    world.memory.channels.queues.clear()
    buffers = town.process()

    with pytest.raises(ChannelRefused):
        buffers.put("jobs", ["a", "b"])

    assert buffers._slots.pending(buffers.list().buffers[0])[1] == 0


def test_a_put_that_takes_too_long_is_not_accepted(world, town):
    world.at("channels.send", "before", lambda: world.clock.advance(SEND_MS + 1))

    with pytest.raises(Throttled, match="again"):
        town.process().put("jobs", ["a"])

    town.process().put("jobs", ["a"])
    assert town.take() == ["a"]


def test_a_producer_may_die_at_every_step_and_its_slots_come_back(world, town):
    for name in town.die_at_every_step(
        lambda name: town.process().define(name, 2), lambda buffers, name: buffers.put(name, ["a", "b"])
    ):
        # Given a buffer that another put finds full, and messages that are all taken, or never came
        with suppress(LimitReached):
            town.process().put(name, ["c", "d"])
        town.take(name)
        # When no message can exist any more
        world.clock.advance(world.memory.queues.retention * 1000 + MARGIN_MS)
        # Then there is as much room as at first
        town.process().put(name, ["e", "f"])
        assert town.take(name) == ["e", "f"]
        assert town.pending(name) == 0


@pytest.fixture
def consumers(world: World) -> BufferRecords:
    return BufferRecords(world.ports)


def test_each_counts_until_it_has_left(world, consumers):
    until = world.clock.at + 20_000
    for waiter in ("one", "two"):
        consumers.came("jobs", waiter, until)

    assert (consumers.waiting("jobs"), consumers.waiting("others")) == (2, 0)
    consumers.left("jobs", "one")
    assert consumers.waiting("jobs") == 1


def test_one_that_dies_counts_a_few_seconds_longer_than_it_would_have_waited(world, consumers):
    consumers.came("jobs", "one", world.clock.at + 20_000)

    world.clock.advance(20_000)
    assert consumers.waiting("jobs") == 1
    world.clock.advance(5_000)
    assert consumers.waiting("jobs") == 0
