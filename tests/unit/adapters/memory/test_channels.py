"""Queues of others in memory: only those that are there are sent to, and the rest is told."""

import pytest

from fanin.adapters.memory import FixedClock, Memory
from fanin.app.ports.channels import Offered, Outgoing
from fanin.errors import ChannelRefused, Throttled

URL = "memory:vehicle-1"


@pytest.fixture
def memory() -> Memory:
    memory = Memory(clock=FixedClock(5))
    memory.channels.queues[URL] = []
    return memory


def test_a_queue_that_refuses_or_is_busy_holds_up_no_other(memory: Memory) -> None:
    memory.channels.queues |= {"memory:odd": [], "memory:busy": []}
    memory.channels.refusing["memory:odd"] = "the key is disabled"
    memory.channels.busy.add("memory:busy")
    messages = [Outgoing(url, "a", {}) for url in ("memory:odd", "memory:busy", URL)]

    assert memory.channels.offer(messages) == Offered({0: "the key is disabled"}, {1: "the queue is busy"})
    assert [len(queue) for queue in memory.channels.queues.values()] == [1, 0, 0]
    with pytest.raises(Throttled, match=r"1 messages \(the queue is busy\)"):
        memory.channels.send(messages)


def test_a_fifo_queue_is_refused(memory: Memory) -> None:
    memory.channels.queues["memory:q.fifo"] = []
    with pytest.raises(ChannelRefused, match="FIFO"):
        memory.channels.resolve("memory:q.fifo")
