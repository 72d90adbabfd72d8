"""A receive that finds nothing waits, by what the client was given for it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from botocore.exceptions import ClientError

from fanin.adapters.memory import Accesses, FixedClock
from fanin.adapters.memory.sqs import InMemorySqs, Queue, QueueStore


def receive(sqs: InMemorySqs, url: str) -> list[Any]:
    return sqs.receive_message(QueueUrl=url, WaitTimeSeconds=20).get("Messages", [])


@pytest.mark.parametrize(
    ("asked", "of_queue", "waits"), [(None, "0", []), (None, "7", [7]), (5, "7", [5]), (0, "7", [])]
)
def test_a_receive_waits_as_long_as_it_was_asked_to_or_the_queue_says(
    store: QueueStore, asked: int | None, of_queue: str, waits: list[float]
) -> None:
    waited: list[float] = []
    sqs = InMemorySqs(store, Accesses(), lambda seconds, _ready: waited.append(seconds))
    url = store.create("polled", {"ReceiveMessageWaitTimeSeconds": of_queue}, {}).url

    assert sqs.receive_message(QueueUrl=url, WaitTimeSeconds=asked) == {}
    assert waited == waits


def test_a_wait_ends_when_a_message_can_be_received(
    store: QueueStore, queue: Queue, clock: FixedClock
) -> None:
    ready: list[bool] = []

    def wait(_seconds: float, has_messages: Callable[[], bool]) -> None:
        ready.append(has_messages())
        queue.send("late", {}, delay=3)
        ready.append(has_messages())
        clock.advance(3_000)
        ready.append(has_messages())

    sqs = InMemorySqs(store, Accesses(), wait)

    assert [message["Body"] for message in receive(sqs, queue.url)] == ["late"]
    assert ready == [False, False, True]


def test_a_wait_ends_when_the_queue_is_deleted(store: QueueStore, queue: Queue) -> None:
    def wait(_seconds: float, has_messages: Callable[[], bool]) -> None:
        store.delete(queue.url)
        assert has_messages()

    with pytest.raises(ClientError, match="does not exist"):
        receive(InMemorySqs(store, Accesses(), wait), queue.url)


def test_a_message_that_is_there_is_not_waited_for(store: QueueStore, queue: Queue) -> None:
    queue.send("a", {})
    sqs = InMemorySqs(store, Accesses(), lambda _seconds, _ready: pytest.fail("waited"))

    assert len(receive(sqs, queue.url)) == 1
