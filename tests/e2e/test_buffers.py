"""Bounded buffers through the deployed API: many producers, and a limit that holds."""

import threading
import uuid
from concurrent.futures import ThreadPoolExecutor

import pytest
from botocore.exceptions import ClientError

from fanin.adapters.backoff import Backoff
from fanin.client.buffers import Producer, Taker
from fanin.errors import BufferNotFound, LimitReached
from tests.e2e.deployment import eventually


@pytest.fixture
def name() -> str:
    return f"jobs-{uuid.uuid4().hex[:8]}"


def test_work_goes_through_a_buffer_that_the_service_made(tracker, stack, name):
    # Given a buffer, made twice
    buffers = tracker.buffers
    buffer = buffers.define(name, 2)
    assert buffers.define(name, 2) == buffer
    assert buffer.owned
    # When it is filled, and emptied by a taker that dies once
    tracker.producer(name).put("one", "two ☂")
    with pytest.raises(LimitReached) as rejected:
        tracker.producer(name).put_now("three")
    assert rejected.value.retry_after == 1
    lost = eventually(lambda: buffers.take(name, most=2, wait=5, visibility_timeout=1))
    assert buffers.status(name).pending == 2
    found: list[str] = []
    taker = tracker.taker(name, wait=2)
    while len(found) < 2:
        taker.run(found.append, until_empty=True)
    # Then the work comes again, is done once, and the queue is deleted with the buffer
    assert sorted(found) == ["one", "two ☂"]
    assert buffers.done(name, [work.receipt for work in lost]).done == 0
    assert buffers.status(name).pending == 0
    buffers.delete(name)
    with pytest.raises(BufferNotFound):
        buffers.status(name)
    with pytest.raises(ClientError, match="does not exist"):
        stack.client("sqs").get_queue_attributes(QueueUrl=buffer.queue)


def test_the_limit_holds_under_many_producers(new_tracker, tracker, name):
    # Given 16 producers that put two each into a buffer of five, and two takers
    producers, each, limit = 16, 2, 5
    tracker.buffers.define(name, limit)
    patient = Backoff(base=0.05, cap=0.5)
    levels: list[int] = []
    found: list[str] = []
    over = threading.Event()

    def produce(number: int) -> None:
        producer = Producer(new_tracker().buffers, name, backoff=patient)
        for part in range(each):
            producer.put(f"{number}/{part}", timeout=600)

    def consume(_: int) -> None:
        taker = Taker(new_tracker().buffers, name, most=5, wait=1)
        while not over.is_set():
            taker.run(found.append, until_empty=True)

    def watch() -> None:
        own = new_tracker()
        while not over.is_set():
            levels.append(own.buffers.status(name).pending)

    # When all have put their work in
    with ThreadPoolExecutor(producers + 3) as pool:
        pool.submit(watch)
        takers = [pool.submit(consume, number) for number in range(2)]
        try:
            list(pool.map(produce, range(producers)))
            eventually(lambda: len(set(found)) == producers * each)
        finally:
            over.set()
        for taker in takers:
            taker.result()
    # Then all of it came out, and the buffer was never more than full
    assert set(found) == {f"{number}/{part}" for number in range(producers) for part in range(each)}
    assert 0 < max(levels) <= limit
    assert tracker.buffers.status(name).pending == 0
    tracker.buffers.delete(name)


def test_a_function_consumes_a_buffer_and_so_sets_the_pace(tracker, deployment, name):
    # Given a buffer of three slots on the queue of a function of the app
    queue = deployment.stack.outputs["RendersUrl"]
    buffer = tracker.buffers.define(name, 3, queue=queue)
    producer = tracker.producer(name)
    # When more work is put than it holds, of which one cannot be done and one kills the function
    for payload in ("one", "empty", *(f"scene {i}" for i in range(4))):
        producer.put(payload)
    eventually(lambda: tracker.buffers.status(name).pending == 0)
    with deployment.queue_attributes(queue, VisibilityTimeout="2"):  # of a function that has run
        producer.put("cursed")
        # Then every slot is free again, and the two items have failed
        eventually(lambda: tracker.buffers.status(name).pending == 0)
    failures = {failure.reason for failure in tracker.failures(buffer.batch_id).failures}
    assert len(failures) == 2
    assert "nothing to render" in failures
    producer.put_now("three", "more", "scenes")
    eventually(lambda: tracker.buffers.status(name).pending == 0)
