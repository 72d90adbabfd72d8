"""Failed items that are held and released, batches that are given up, messages that are skipped."""

from __future__ import annotations

from fanin import Failure
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
