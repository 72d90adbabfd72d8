"""What was done before a producer went on with a batch."""

from __future__ import annotations

from fanin import Tracker
from fanin.client.producing.done_before import DoneBefore


def test_it_tells_what_is_done_in_all_groups() -> None:
    # Given a batch of two groups, in which single items and whole ends are done
    tracker = Tracker.in_memory()
    batch = tracker.open()
    first, second = tracker.add(batch.batch_id, 100), tracker.add(batch.batch_id, 50)
    done = [*first[0:3], first[70], *first[98:100], second[0], *second[40:50]]
    tracker.ack(done)
    before = DoneBefore(tracker, tracker.status(batch.batch_id).batch)
    # When items are added and done after that
    later = tracker.add(batch.batch_id, 2)
    tracker.ack(later)
    # Then it tells the first from the second
    assert [item for item in (*first, *second, *later) if item in before] == done


def test_of_a_new_batch_nothing_is_done() -> None:
    tracker = Tracker.in_memory()
    batch = tracker.open()
    before = DoneBefore(tracker, batch)
    assert [item for item in tracker.add(batch.batch_id, 3) if item in before] == []
