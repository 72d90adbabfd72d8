"""Held failures of the ack queue, on the deployed service."""

from fanin import Failure


def test_held_failures_of_the_ack_queue_end_a_batch_that_tolerates_fewer(tracker, subscriber):
    """The function of the ack queue counts failures under its own role; the emulator enforces its policy."""
    with tracker.batch(tolerated_failures=1, on_failure="hold") as batch:
        group = batch.add(100)

    tracker.ack_later([Failure(item, "no") for item in (group[0], group[1], group[2])])

    event = subscriber.only_event_of(batch.id)
    assert (event["detail-type"], event["detail"]["cause"]) == ("Batch Cancelled", "failures")
