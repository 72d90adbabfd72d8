"""Queues of buffers in memory, beyond what they share with SQS: time."""

from __future__ import annotations

import pytest

from fanin.adapters.memory import FixedClock, Memory
from fanin.app.ports.channels import Outgoing
from fanin.app.ports.queues import Received
from fanin.errors import ChannelRefused


class World:
    """A queue with one message, and its clock."""

    def __init__(self) -> None:
        self.clock = FixedClock(0)
        self.memory = Memory(clock=self.clock)
        self.queues = self.memory.queues
        self.url = self.queues.create("jobs")
        self.send("a")

    def send(self, body: str) -> None:
        self.memory.channels.send([Outgoing(self.url, body, {})])

    def receive(self, timeout: int | None = None) -> list[Received]:
        return self.queues.receive(self.url, most=10, wait=20, visibility_timeout=timeout)


@pytest.fixture
def world() -> World:
    return World()


@pytest.mark.parametrize(("timeout", "seconds"), [(None, 30), (5, 5)])
def test_a_message_comes_again_after_its_visibility_timeout(
    world: World, timeout: int | None, seconds: int
) -> None:
    (first,) = world.receive(timeout)
    world.clock.advance(seconds * 1000 - 1)
    assert world.receive() == []
    world.clock.advance(1)
    (again,) = world.receive()

    assert (again.body, again.sent_at) == (first.body, first.sent_at)
    assert again.handle != first.handle


def test_the_handle_of_an_earlier_delivery_removes_nothing(world: World) -> None:
    (first,) = world.receive(1)
    world.clock.advance(1_000)
    (again,) = world.receive(1)

    world.queues.remove(world.url, [first.handle])
    assert world.queues.state(world.url).in_flight == 1
    world.queues.remove(world.url, [again.handle])
    assert world.queues.state(world.url).in_flight == 0


def test_a_message_is_dropped_after_the_retention(world: World) -> None:
    world.clock.advance(world.queues.retention * 1000 - 1)
    world.send("b")
    world.clock.advance(1)

    assert [one.body for one in world.receive()] == ["b"]


def test_a_receive_does_not_wait(world: World) -> None:
    world.receive()
    assert world.receive() == []
    assert world.clock.at == 0


def test_a_deleted_queue_is_refused_and_forgets_its_messages(world: World) -> None:
    world.receive()
    world.queues.delete(world.url)
    with pytest.raises(ChannelRefused, match="memory:jobs"):
        world.receive()
    world.queues.remove(world.url, ["any"])

    assert world.queues.create("jobs") == world.url
    assert world.receive() == []
