"""Messages that a function received: they come again later, or go to another queue."""

from __future__ import annotations

import json
from typing import Any, cast

import pytest

from fanin.adapters.memory import FixedClock, Memory
from fanin.adapters.memory.accesses import Accesses
from fanin.adapters.memory.sqs import InMemorySqs, QueueStore
from fanin.adapters.received_messages import ReceivedMessages
from fanin.entry.in_memory.event_source import record
from fanin.errors import ServiceUnavailable


class World:
    """A queue, and what a function received from it."""

    def __init__(self) -> None:
        self.clock = FixedClock()
        self.store = QueueStore(self.clock, Memory().ports().random)
        self.queue = self.store.create("work", {"VisibilityTimeout": "360"}, {})
        self.sqs = InMemorySqs(self.store, Accesses())
        self.received = ReceivedMessages(lambda: cast("Any", self.sqs))

    def send(self, body: str, attributes: dict[str, Any]) -> dict[str, Any]:
        """Send one message to the queue, and receive it."""
        self.queue.send(body, attributes)
        (held,) = self.queue.receive(1, None)
        return record(self.queue, held)

    def receive(self, count: int) -> list[dict[str, Any]]:
        for number in range(count):
            attributes = {"fanin-item": {"DataType": "String", "StringValue": f"1:g:{number}"}}
            self.queue.send(json.dumps(number), attributes)
        return [record(self.queue, held) for held in self.queue.receive(count, None)]


@pytest.fixture
def world() -> World:
    return World()


def test_messages_come_again_when_it_is_said(world: World) -> None:
    messages = world.receive(25)

    world.received.postpone([(message, 30 + n) for n, message in enumerate(messages)])

    world.clock.advance(30_000)
    assert [held.body for held in world.queue.receive(10, None)] == ["0"]
    world.clock.advance(24_000)
    assert len(world.queue.receive(25, None)) == 24


def test_nothing_to_postpone_asks_nothing() -> None:
    ReceivedMessages(lambda: pytest.fail("a client was made")).postpone([])


def test_what_is_put_back_comes_as_a_new_message_after_a_while(world: World) -> None:
    (message,) = world.receive(1)

    world.received.put_back({**message, "body": "left"}, 30)

    assert world.queue.receive(10, None) == []
    world.clock.advance(30_000)
    assert [held.body for held in world.queue.receive(10, None)] == ["left"]


@pytest.mark.parametrize(
    "attribute",
    [
        {"DataType": "String", "StringValue": "1:g:0"},
        {"DataType": "Number.int", "StringValue": "7"},
        {"DataType": "Binary", "BinaryValue": b"\x00\xff"},
        {"DataType": "Binary.png", "BinaryValue": b"\x89PNG"},
    ],
)
def test_a_message_is_copied_with_its_attributes(world: World, attribute: dict[str, Any]) -> None:
    # Given a message with an attribute
    message = world.send("body", {"name": attribute})
    other = world.store.create("other", {}, {})

    # When it is sent to another queue
    world.received.send_to(other.url, message)

    # Then it arrives there as it was
    (held,) = other.receive(1, None)
    assert (held.body, held.attributes) == ("body", {"name": attribute})


def test_a_large_message_that_is_not_ascii_is_copied_as_it_is(world: World) -> None:
    """As JSON with ASCII escapes it would have three times as many bytes, which no queue takes."""
    body = "é" * 100_000  # 200 KB of UTF-8
    message = world.send(body, {})
    other = world.store.create("other", {}, {})

    world.received.send_to(other.url, message)

    (held,) = other.receive(1, None)
    assert held.body == body


def test_what_cannot_be_done_is_an_error_of_ours(world: World) -> None:
    (message,) = world.receive(1)

    with pytest.raises(Exception, match="no such table, queue"):
        world.received.send_to("http://nowhere", message)
    unreachable = ReceivedMessages(lambda: (_ for _ in ()).throw(ServiceUnavailable("no answer")))
    with pytest.raises(ServiceUnavailable):
        unreachable.postpone([(message, 5)])
