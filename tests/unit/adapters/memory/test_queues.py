"""Queues of buffers, where messages come again, and of others: only those that are there are sent to."""

from typing import Any

import pytest

from fanin.adapters.memory import FixedClock, Memory
from fanin.app.ports.queues import Offered, Outgoing
from fanin.errors import ChannelRefused, Throttled

SECOND = 1000


@pytest.fixture
def memory() -> Memory:
    return Memory(clock=FixedClock(5 * SECOND))


@pytest.fixture
def url(memory: Memory) -> str:
    return memory.queues.create("jobs", 7)


def send(memory: Memory, url: str, *bodies: str) -> None:
    memory.channels.send([Outgoing(url, body, {}) for body in bodies])


def receive(memory: Memory, url: str, **options: Any) -> list[str]:
    received = memory.queues.receive(url, **{"most": 10, "wait": 0, "visibility_timeout": None, **options})
    return [one.body for one in received]


@pytest.mark.parametrize(("asked", "seconds"), [(None, 30), (7, 7), (0, 0)])
def test_a_message_comes_again_after_its_visibility_timeout(memory, url, asked, seconds):
    send(memory, url, "a")
    assert receive(memory, url, visibility_timeout=asked) == ["a"]

    if seconds:
        memory.clock.advance(seconds * SECOND - 1)
        assert receive(memory, url) == []
        memory.clock.advance(1)
    assert receive(memory, url) == ["a"]


def test_a_queue_that_was_deleted_and_made_anew_is_empty(memory, url):
    send(memory, url, "waiting", "received")
    receive(memory, url, most=1, visibility_timeout=0)

    memory.queues.delete(url)
    with pytest.raises(ChannelRefused, match="jobs"):
        receive(memory, url)
    memory.queues.remove(url, ["delivery-1"])  # of a queue that is gone: there is nothing to do

    memory.queues.create("jobs", 7)
    assert receive(memory, url) == []


URL = "memory:vehicle-1"


def test_a_queue_that_refuses_or_is_busy_holds_up_no_other(memory):
    memory.channels.queues |= {URL: [], "memory:odd": [], "memory:busy": []}
    memory.channels.refusing["memory:odd"] = "the key is disabled"
    memory.channels.busy.add("memory:busy")
    messages = [Outgoing(url, "a", {}) for url in ("memory:odd", "memory:busy", URL)]

    assert memory.channels.offer(messages) == Offered({0: "the key is disabled"}, {1: "the queue is busy"})
    assert [len(queue) for queue in memory.channels.queues.values()] == [1, 0, 0]
    with pytest.raises(Throttled, match=r"1 messages \(the queue is busy\)"):
        memory.channels.send(messages)


def test_a_fifo_queue_is_refused(memory):
    memory.channels.queues["memory:q.fifo"] = []
    with pytest.raises(ChannelRefused, match="FIFO"):
        memory.channels.resolve("memory:q.fifo")
