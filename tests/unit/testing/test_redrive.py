"""Redriving in the service in memory: a call, the worker, queues and consumers, in one process."""

from __future__ import annotations

from datetime import timedelta

import pytest

from fanin.app.ports.parts import IN_ROW, FailureRow
from fanin.domain.batch import State
from fanin.testing import InMemoryService


@pytest.mark.parametrize("fifo", [False, True])
def test_a_large_redrive_is_finished_when_the_call_returns(fifo: bool) -> None:
    # Given more failures than a call sends itself
    service = InMemoryService()
    tracker, queue = service.tracker, service.queue(fifo=fifo)
    with tracker.batch(user_key="mine") as batch:
        group = batch.add(1_200)
    tracker.fail(group, "x")
    parts = service._runtime.memory.parts
    notes = [FailureRow(n, item, "x", 1, 1, queue, IN_ROW) for n, item in enumerate(group)]
    parts.put_failures(batch.id, notes, expires_at=2**40)
    messages = {n: b'{"body": "%d", "group_id": "g"}' % n for n in range(1_200)}
    parts.put_messages(batch.id, messages, expires_at=2**40)
    # When they are redriven
    done = tracker.redrive(batch.id)
    # Then the worker has sent the rest
    assert (done.finished, done.items) == (True, 1_200)
    # And a consumer handles each once, under its new item
    seen: list[str] = []
    consume(service, tracker, queue, seen)
    assert sorted(map(int, seen)) == list(range(1_200))
    assert done.batch_id is not None
    new = tracker.status(done.batch_id).batch
    assert (new.state, new.retry_of, new.user_key) == (State.COMPLETE, batch.id, "mine")
    assert tracker.redrive(batch.id).items == 0
    assert [one.items for one in tracker.redrives(batch.id)] == [1_200, 0]


def consume(service: InMemoryService, tracker, queue: str, seen: list[str]) -> None:
    @tracker.sqs_handler
    def handle(message) -> None:
        seen.append(message.body)

    service.consume(queue, handle)
    service.advance(timedelta(minutes=1))
