"""Queues of buffers on a clock that the test moves: hidden, back again, and gone after their retention."""

from typing import Any

import pytest

from fanin.adapters.memory import FixedClock, Memory
from fanin.app.ports.channels import Outgoing
from fanin.errors import ChannelRefused

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
def test_a_message_comes_again_after_its_visibility_timeout(
    memory: Memory, url: str, asked: int | None, seconds: int
) -> None:
    send(memory, url, "a")
    assert receive(memory, url, visibility_timeout=asked) == ["a"]

    if seconds:
        memory.clock.advance(seconds * SECOND - 1)
        assert receive(memory, url) == []
        memory.clock.advance(1)
    assert receive(memory, url) == ["a"]


def test_only_the_last_delivery_removes_a_message(memory: Memory, url: str) -> None:
    # Given a message that came twice
    send(memory, url, "a")
    (first,) = memory.queues.receive(url, most=1, wait=0, visibility_timeout=0)
    (second,) = memory.queues.receive(url, most=1, wait=0, visibility_timeout=0)
    assert first.handle != second.handle
    assert first.sent_at == second.sent_at == 5 * SECOND

    # When the first receiver removes it, it is still there; then the second does
    memory.queues.remove(url, [first.handle])
    assert receive(memory, url, visibility_timeout=0) == ["a"]
    (third,) = memory.queues.receive(url, most=1, wait=0, visibility_timeout=0)
    memory.queues.remove(url, [third.handle])
    assert receive(memory, url) == []


def test_a_message_past_its_retention_is_gone(memory: Memory, url: str) -> None:
    memory.queues.retention = 60
    send(memory, url, "old")
    memory.clock.advance(59 * SECOND)
    send(memory, url, "new")
    memory.clock.advance(1 * SECOND)

    assert receive(memory, url) == ["new"]


def test_a_queue_that_was_deleted_and_made_anew_is_empty(memory: Memory, url: str) -> None:
    send(memory, url, "waiting", "received")
    receive(memory, url, most=1, visibility_timeout=0)

    memory.queues.delete(url)
    with pytest.raises(ChannelRefused, match="jobs"):
        receive(memory, url)
    memory.queues.remove(url, ["delivery-1"])  # of a queue that is gone: there is nothing to do

    memory.queues.create("jobs", 7)
    assert receive(memory, url) == []
