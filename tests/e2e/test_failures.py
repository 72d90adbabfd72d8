"""Failed items keep their messages, on the deployed service: who fails them, where they are, when they go."""

import json
import time
import uuid
from collections.abc import Callable
from typing import Any

import pytest

from fanin import Failure, ItemFailed, KeptMessage, Message, MessageAttribute, Tracker, names
from fanin.errors import BatchGone, FailureNotFound
from tests.e2e.deployment import eventually

LARGE = 20_000
"""Bytes of a body that is too large for a row."""


@pytest.fixture
def body() -> Callable[[int], str]:
    """Makes bodies that nobody else has, so that they can be looked for."""
    own = uuid.uuid4().hex
    return lambda size=0: own + "x" * max(0, size - len(own))


def objects(tracker_stack: Any, batch_id: int) -> list[str]:
    """Keys of what a batch has in the bucket."""
    pages = tracker_stack.client("s3").get_paginator("list_objects_v2")
    keys = [
        found["Key"]
        for page in pages.paginate(Bucket=tracker_stack.claims_bucket)
        for found in page.get("Contents", [])
    ]
    return [key for key in keys if f"/{batch_id}/" in key]


def failing(message: Any) -> None:
    raise ItemFailed(f"row {message.index} has no price")


def raising(tracker: Tracker, queue: str, via: str, count: int) -> None:
    """A consumer that fails so many messages for good."""
    handled = 0
    consumer = tracker.consumer(queue, failing, via=via, wait=1)
    while handled < count:
        handled += consumer.poll()


@pytest.mark.parametrize(("via", "fifo"), [("api", False), ("queue", True)])
def test_a_consumer_keeps_messages_with_attributes_and_group(tracker, stack, body, via, fifo):
    # Given three messages, of which one is large; on a FIFO queue they have groups
    queue = stack.client("sqs").create_queue(
        QueueName=f"kept-{uuid.uuid4()}{'.fifo' * fifo}", Attributes={"FifoQueue": "true"} if fifo else {}
    )["QueueUrl"]
    bodies = [body(), body(LARGE), body() + "é"]
    attributes = {"kind": "van", "raw": b"\x00\xff"}
    with tracker.batch(user_key="kept") as batch:
        batch.send(
            queue,
            [
                Message(text, attributes=attributes, group_id=f"group-{n}" if fifo else None)
                for n, text in enumerate(bodies)
            ],
        )
    # When their consumer gives them up, over HTTPS or through the ack queue
    raising(tracker, queue, via, 3)
    # Then each is kept as it was: two in rows, one in the bucket
    row = eventually(lambda: (row := tracker.status(batch.id).batch).state == "complete" and row)
    assert (row.failed, row.items) == (3, 3)
    found = list(tracker.iter_failures(batch.id))
    assert [one.reason for one in found] == [f"row {n} has no price" for n in range(3)]
    assert [one.attempts for one in found] == [1, 1, 1]
    kept = [tracker.kept_message(one.item) for one in found]
    assert [one.body for one in kept] == bodies
    assert {one.group_id for one in kept} == ({"group-0", "group-1", "group-2"} if fifo else {None})
    assert all(
        one.attributes
        == {"kind": MessageAttribute("String", "van"), "raw": MessageAttribute("Binary", b"\x00\xff")}
        for one in kept
    )
    assert len(objects(stack, batch.id)) == 1
    # And they are one group by error
    (group,) = tracker.errors(batch.id)
    assert (group.error, group.failed, group.kept) == ("row <n> has no price", 3, 3)


def test_a_dead_letter_is_kept_and_names_the_queue_it_died_in(tracker, stack, deployment, body):
    # Given messages of the stack's work queue, one of them large, whose handling fails each time
    with tracker.batch() as batch:
        batch.send(stack.work_queue_url, [body(), body(LARGE)])

    def broken(_message: object) -> None:
        raise ValueError("no such customer")

    # When they have died
    consumer = tracker.consumer(stack.work_queue_url, broken, wait=1, visibility_timeout=0)
    while deployment.messages(stack.work_queue_url):
        consumer.poll()
    # Then the function that reads the dead letters keeps them, with the source and the last error
    eventually(lambda: tracker.status(batch.id).batch.state == "complete")
    found = list(tracker.iter_failures(batch.id))
    name = stack.work_queue_url.rpartition("/")[2]
    assert [one.reason for one in found] == [
        f"dead letter: received 6 times from {name}: ValueError: no such customer"
    ] * 2
    assert all(one.source.endswith(name) for one in found)
    assert [tracker.kept_message(one.item).body for one in found] == [body(), body(LARGE)]
    # And they can be sent again to where they came from, and are as they were
    done = tracker.redrive(batch.id)
    bodies: list[str] = []

    def look() -> bool:
        bodies.extend(message["Body"] for message in deployment.receive(stack.work_queue_url))
        return len(bodies) == 2

    eventually(look)
    assert (done.items, sorted(bodies)) == (2, sorted([body(), body(LARGE)]))


def test_a_scatter_keeps_what_a_recipient_could_not_be_sent(tracker, stack, channel, deployment, body):
    # Given a recipient whose queue is deleted after the scatter was checked
    small = stack.client("sqs").create_queue(
        QueueName=f"small-{uuid.uuid4()}",
        Attributes={"MaximumMessageSize": "1024"},
        tags={names.CHANNEL_TAG: "test"},
    )["QueueUrl"]
    started = tracker.scatters.start([channel(), small], body(2_000))

    (failure,) = eventually(lambda: list(tracker.iter_failures(started.batch.batch_id)))

    assert failure.source == small
    kept = tracker.kept_message(failure.item)
    assert kept is not None
    assert kept.body == body(2_000)
    assert names.ATTRIBUTE_CORRELATION in kept.attributes


def test_messages_go_with_their_batch(tracker, stack, deployment, body):
    # Given a batch with a message in a row and one in the bucket
    with tracker.batch() as batch:
        group = batch.add(2)
    tracker.fail([Failure(group[n], "no", KeptMessage(body(n * LARGE))) for n in range(2)])
    stored = [row for row in deployment.rows(stack.parts_table) if body() in json.dumps(row, default=str)]
    assert len(stored) == 1
    assert len(objects(stack, batch.id)) == 1
    # When it is removed
    assert tracker.remove(batch.id).batches == 1
    # Then neither is there any more
    with pytest.raises((BatchGone, FailureNotFound)):
        tracker.kept_message(group[0])
    eventually(lambda: not objects(stack, batch.id))
    assert not [row for row in deployment.rows(stack.parts_table) if body() in json.dumps(row, default=str)]


def test_failed_and_held_are_counted_in_metrics_and_no_body_is_in_a_log(
    tracker, stack, deployment, queue_url, body
):
    # Given failures by the API, through the ack queue, and held ones
    since = time.time()
    with tracker.batch() as batch:
        group = batch.add(5)
    with tracker.batch(on_failure="hold") as holding:
        held = holding.add(3)
    message = KeptMessage(body(), {"kind": MessageAttribute("String", body())})
    tracker.fail([Failure(group[n], "no", message) for n in range(3)])
    tracker.fail([Failure(item, "no", message) for item in held])
    tracker.ack_later([Failure(group[n], "no", message) for n in (3, 4)])
    # Then the metrics have them
    eventually(lambda: tracker.status(batch.id).batch.failed == 5)
    api = eventually(lambda: (seen := deployment.metrics("api", since)).get("ItemsHeld") and seen)
    assert (api["ItemsFailed"], api["ItemsHeld"]) == (3, 3)
    eventually(lambda: deployment.metrics("acks", since).get("ItemsFailed") == 2)
    # And no log has a body or an attribute
    logs = stack.client("logs")
    lines = [
        event["message"]
        for group_ in logs.describe_log_groups()["logGroups"]
        for page in logs.get_paginator("filter_log_events").paginate(logGroupName=group_["logGroupName"])
        for event in page["events"]
    ]
    assert any("ItemsFailed" in line for line in lines)
    assert not [line for line in lines if body() in line]


def test_held_failures_of_the_ack_queue_end_a_batch_that_tolerates_fewer(tracker, subscriber):
    """The function of the ack queue counts failures under its own role; the emulator enforces its policy."""
    with tracker.batch(tolerated_failures=1, on_failure="hold") as batch:
        group = batch.add(100)

    tracker.ack_later([Failure(item, "no") for item in (group[0], group[1], group[2])])

    event = subscriber.only_event_of(batch.id)
    assert (event["detail-type"], event["detail"]["cause"]) == ("Batch Cancelled", "failures")
