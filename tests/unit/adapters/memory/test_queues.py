"""Queues of buffers in memory over time; what they promise as SQS does is tested with it."""

from __future__ import annotations

import pytest

from fanin.adapters.memory import FixedClock, Memory
from fanin.app.ports.channels import Outgoing
from fanin.errors import ChannelRefused


@pytest.fixture
def clock() -> FixedClock:
    return FixedClock()


@pytest.fixture
def memory(clock: FixedClock) -> Memory:
    return Memory(clock=clock)


def receive(memory: Memory, url: str, visibility_timeout: int | None = None) -> list[str]:
    found = memory.queues.receive(url, most=10, wait=20, visibility_timeout=visibility_timeout)
    return [received.body for received in found]


def test_a_message_comes_again_when_its_visibility_timeout_is_over(memory: Memory, clock: FixedClock) -> None:
    url = memory.queues.create("jobs")
    memory.channels.send([Outgoing(url, "a", {})])
    assert receive(memory, url, 5) == ["a"]
    clock.advance(4_999)
    assert receive(memory, url) == []
    assert memory.queues.state(url).in_flight == 1
    clock.advance(1)
    assert receive(memory, url) == ["a"]


def test_a_message_past_the_retention_is_gone(memory: Memory, clock: FixedClock) -> None:
    url = memory.queues.create("jobs")
    memory.channels.send([Outgoing(url, "a", {})])
    clock.advance(memory.queues.state(url).retention * 1000)
    assert receive(memory, url) == []


def test_a_queue_that_is_deleted_is_gone_with_its_messages(memory: Memory) -> None:
    url = memory.queues.create("jobs")
    memory.channels.send([Outgoing(url, "a", {})])
    memory.queues.delete(url)
    memory.queues.delete(url)
    with pytest.raises(ChannelRefused):
        receive(memory, url)
    assert receive(memory, memory.queues.create("jobs")) == []
