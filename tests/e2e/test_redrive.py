"""Redriving on the deployed stack: queues, and a worker that is killed."""

import os
import time
import uuid
from collections import defaultdict
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from fanin import Failure, Tracker, names
from fanin.adapters.backoff import Backoff
from fanin.client.messages import read_message
from fanin.domain.batch import State
from fanin.domain.failures import KeptMessage, MessageAttribute
from fanin.domain.limits import chunks
from fanin.domain.redrives import RedriveState
from fanin.errors import ServiceUnavailable, Throttled
from tests.e2e.deployment import Deployment, eventually

Noted = Callable[..., int]
BLOCK = 500
FAILURES = int(os.environ.get("FANIN_REDRIVE_ITEMS", "100000"))
"""How many failures the soak test redrives."""


@pytest.fixture
def work(stack) -> Callable[..., str]:
    """Makes queues for work, as ``TrackedQueue`` does."""
    sqs = stack.client("sqs")

    def make(*, fifo: bool = False) -> str:
        url: str = sqs.create_queue(
            QueueName=f"work-{uuid.uuid4()}{'.fifo' * fifo}",
            Attributes={"FifoQueue": "true"} if fifo else {},
            tags={names.TRACKED_TAG: "work"},
        )["QueueUrl"]
        return url

    return make


@pytest.fixture
def noted(tracker: Tracker) -> Noted:
    """Makes an ended batch of which every item has failed, and kept its message."""

    def make(count: int, queue: str, *, messages: Mapping[int, KeptMessage | None] | None = None) -> int:
        with tracker.batch(user_key="shop") as batch:
            group = batch.add(count)
        failures = (
            Failure(item, "x", (messages or {}).get(n, KeptMessage(f"body {n}")), attempts=3, source=queue)
            for n, item in enumerate(group)
        )
        for block in chunks(failures, max_items=BLOCK):
            insist(lambda: tracker.fail(block))  # noqa: B023
        return batch.id

    return make


def insist(write: Callable[[], object]) -> None:
    """Repeat a write while the emulator is busy."""
    for _ in Backoff(tries=20, cap=5):
        try:
            write()
        except (ServiceUnavailable, Throttled):
            continue
        return
    raise AssertionError("the emulator does not answer")


def handled(deployment: Deployment, tracker: Tracker, queue: str, count: int) -> list[Any]:
    """Receive and acknowledge so many messages, all that there are."""
    found: list[Any] = []

    def look() -> bool:
        found.extend(read_message(message) for message in deployment.receive(queue))
        return len(found) >= count

    if count:
        eventually(look)
    found += [read_message(message) for message in deployment.receive(queue)]
    tracker.ack([message.item for message in found])
    return found


def test_failed_messages_come_back_as_they_were_and_the_new_batch_completes(tracker, deployment, work, noted):
    # Given three failures with their messages, one with attributes
    queue = work()
    attributes = {"kind": MessageAttribute("String", "van"), "raw": MessageAttribute("Binary", b"\x00\xff")}
    batch = noted(3, queue, messages={1: KeptMessage("é", attributes)})
    # When they are redriven, and handled this time
    done = tracker.redrive(batch)
    messages = handled(deployment, tracker, queue, 3)
    # Then each came once, as it was, and the new batch is complete
    assert (done.state, done.items, done.retry_of) == (RedriveState.FINISHED, 3, batch)
    assert sorted(message.body for message in messages) == ["body 0", "body 2", "é"]
    (special,) = (message for message in messages if message.body == "é")
    assert special.attributes["kind"] == "van"
    new = tracker.status(done.batch_id).batch
    assert (new.state, new.retry_of, new.user_key) == (State.COMPLETE, batch, "shop")
    # And pressed again it sends nothing
    again = tracker.redrive(batch)
    assert (again.items, again.already) == (0, 3)
    assert [one.items for one in tracker.redrives(batch)] == [3, 0]


def drained(deployment: Deployment, queue: str) -> tuple[dict[str, set[str]], int]:
    """Receive and delete all messages of a queue; the item ids by body, and how many messages there were."""
    sqs = deployment.client("sqs")
    items: dict[str, set[str]] = defaultdict(set)

    def some(_: int) -> int:
        taken = 0
        while received := sqs.receive_message(
            QueueUrl=queue, MaxNumberOfMessages=10, MessageAttributeNames=["All"], VisibilityTimeout=600
        ).get("Messages"):
            for message in map(read_message, received):
                items[message.body].add(message.item)
            entries = [
                {"Id": str(n), "ReceiptHandle": message["ReceiptHandle"]}
                for n, message in enumerate(received)
            ]
            assert not sqs.delete_message_batch(QueueUrl=queue, Entries=entries).get("Failed")
            taken += len(received)
        return taken

    with ThreadPoolExecutor(4) as pool:
        return items, sum(pool.map(some, range(4)))


@pytest.mark.parametrize("count", [1_100, pytest.param(FAILURES, marks=pytest.mark.soak)])
def test_the_worker_is_killed_twice_and_each_failure_is_sent_under_one_item(
    tracker, deployment, work, noted, stack_root, record_property, count
):
    # Given a redrive that a call has left to the worker
    queue, jobs = work(), deployment.queue("RedrivesJobsQueue")
    begun = time.monotonic()
    batch = noted(count, queue)
    record_property("seconds to note the failures", time.monotonic() - begun)
    begun = time.monotonic()
    with (
        deployment.queue_attributes(jobs, VisibilityTimeout="6"),
        deployment.on_a_slow_wire("redriver", timeout=120) as wire,
    ):
        # When it is killed in the middle of taking a page, and once more when it has added items, not sent
        first = tracker.redrive(batch, wait=False)
        assert 0 < first.items < count
        for killed, operation in enumerate(("UpdateItem", "TransactWriteItems"), 1):
            wire.keep_next(operation)
            eventually(lambda: wire.kept == killed)  # noqa: B023
            assert deployment.kill("redriver", stack_root)
    done = tracker.redrive(batch)
    record_property("seconds", time.monotonic() - begun)
    # Then the redrive has counted each failure once, and there was a message for each, under one item
    assert (done.finished, done.items, done.batch_id) == (True, count, first.batch_id)
    assert (done.not_kept, done.refused) == (0, {})
    items, messages = drained(deployment, queue)
    assert items.keys() == {f"body {n}" for n in range(count)}
    assert {len(of_one) for of_one in items.values()} == {1}
    record_property("sent twice", messages - count)
    # And the new batch is complete when these are done, and nothing is left to redrive
    ids = [item for (item,) in items.values()]
    for at in range(0, count, 10_000):
        tracker.ack(ids[at : at + 10_000])
    new = tracker.status(done.batch_id).batch
    assert (new.items, new.state, new.retry_of) == (count, State.COMPLETE, batch)
    again = tracker.redrive(batch)
    assert (again.items, again.already) == (0, count)
