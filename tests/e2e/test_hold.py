"""Failed items that are held and released, batches that are given up, messages that are skipped."""

from __future__ import annotations

import uuid

from fanin import Failure
from fanin.client import ended_batches
from tests.e2e.deployment import eventually


def test_held_items_wait_until_they_are_done(tracker, subscriber):
    # Given a batch that holds, with a failure by the API and one through the ack queue
    with tracker.batch(user_key="held", on_failure="hold") as batch:
        group = batch.add(70)
    tracker.ack(group[0:68])
    (receipt,) = tracker.fail(group[68], "no price")
    assert (receipt.held, receipt.first) == (1, 0)
    tracker.ack_later([Failure(group[69], "no customer")])

    # Then both are seen to be held
    row = eventually(lambda: (row := tracker.status(batch.id).batch).held == 2 and row)
    assert (row.state, row.failed, row.held_more) == ("closed", 0, False)
    assert [row.held for row in tracker.list("closed").batches if row.batch_id == batch.id] == [2]
    assert [one.held for one in tracker.iter_failures(batch.id)] == [True, True]

    # And when they work after all, the batch completes
    tracker.ack(group[68:70])
    detail = subscriber.only_event_of(batch.id)["detail"]
    assert (detail["state"], detail["held"], detail["failed"]) == ("complete", 0, 0)


def test_held_failures_of_the_ack_queue_end_a_batch_that_tolerates_fewer(tracker, subscriber):
    """The function of the ack queue counts failures under its own role; the emulator enforces its policy."""
    with tracker.batch(tolerated_failures=1, on_failure="hold") as batch:
        group = batch.add(100)

    tracker.ack_later([Failure(item, "no") for item in (group[0], group[1], group[2])])

    event = subscriber.only_event_of(batch.id)
    assert (event["detail-type"], event["detail"]["cause"]) == ("Batch Cancelled", "failures")


def test_a_warm_consumer_does_at_most_one_of_many_messages_of_a_cancelled_batch(
    tracker, new_tracker, stack, monkeypatch
):
    # Given a consumer of another process that has done some messages of a batch
    sqs, name = stack.client("sqs"), f"skip-{uuid.uuid4().hex[:8]}.fifo"
    queue_url = sqs.create_queue(QueueName=name, Attributes={"FifoQueue": "true"})["QueueUrl"]
    done = []
    with tracker.batch() as batch:
        batch.send(queue_url, [str(n) for n in range(30)])
    other = new_tracker()
    consumer = other.consumer(queue_url, lambda message: done.append(message.index), wait=1)
    while len(done) < 10:
        consumer.poll()
    before = len(done)

    # When the batch is cancelled, and the consumer's last answer is old
    monkeypatch.setattr(ended_batches, "ASK_SECONDS", 0)
    tracker.cancel(batch.id)
    while before + consumer.skipped + len(done[before:]) < 30:
        consumer.poll()

    # Then it does one more at most, and no message is left
    assert len(done) <= before + 1
    assert done == sorted(done)
    counts = sqs.get_queue_attributes(QueueUrl=queue_url, AttributeNames=["All"])["Attributes"]
    assert int(counts["ApproximateNumberOfMessages"]) == 0
