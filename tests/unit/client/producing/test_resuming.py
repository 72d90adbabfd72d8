"""A producer that stops says how far it came, and the next one begins there.

What was done before a producer went on with a batch.
"""

from __future__ import annotations

import pytest

from fanin import Tracker
from fanin.adapters.backoff import Backoff
from fanin.client.producing.batch import TrackedBatch
from fanin.client.producing.resuming import DoneBefore, Stop
from fanin.domain.batch import State
from tests.unit.client.conftest import received
from tests.unit.client.producing.conftest import REAL_WAIT, items_of


def resumed(tracker, queue, count, stop):
    """Send so many rows as a run does that may be one of several."""
    batch = tracker.attach(tracker.open(key="run").batch_id)
    sent = batch.send(
        queue,
        map(str, range(count)),
        block=7,
        workers=2,
        key="rows",
        stop=stop,
        progress=lambda _: setattr(stop, "asked", stop.stop_at is not None and stop.position >= stop.stop_at),
    )
    return batch, sent


class StopAt(Stop):
    def __init__(self, stop_at=None, skip=0):
        super().__init__(skip)
        self.stop_at = stop_at


@pytest.mark.parametrize("at", [1, 7, 8, 39])
def test_two_runs_send_each_message_once_wherever_the_first_one_stops(tracker, sqs, queue, at):
    # Given a run that stops
    first = StopAt(at)
    _, sent = resumed(tracker, queue, 40, first)
    assert sent == first.position >= at
    # When the next one skips what that one has sent
    second = StopAt(skip=first.position)
    batch, rest = resumed(tracker, queue, 40, second)
    # Then all are sent once, and each has its item
    assert (sent + rest, second.position) == (40, 40)
    messages = received(sqs, queue)
    assert sorted(int(message["Body"]) for message in messages) == list(range(40))
    assert len(set(items_of(messages))) == 40
    assert batch.status().batch.items == 40
    assert batch.close().state is State.CLOSED


def test_a_wait_that_nobody_stops_is_as_long_as_it_should_be():
    slept = []
    Stop().wait(1.7, slept.append)
    assert sum(slept) == pytest.approx(1.7)
    Stop().wait(0, slept.append)
    assert sum(slept) == pytest.approx(1.7)


def test_ctrl_c_while_a_batch_is_full_stops_within_two_seconds(tracker, queue, monkeypatch):
    # Given a producer that waits twenty seconds for room, and is asked to stop at its second look
    monkeypatch.setattr(Backoff, "wait", REAL_WAIT)
    stop, slept = Stop(), []

    def sleep(seconds):
        slept.append(seconds)
        stop.asked = len(slept) == 2

    patient = Backoff(base=20, cap=20, sleep=sleep, fraction=lambda: 1.0)
    batch = TrackedBatch(tracker, tracker.open(limit=8), lambda: tracker.sqs, backoff=patient)
    # When
    sent = batch.send(queue, map(str, range(100)), stop=stop, key="rows")
    # Then
    assert sent == stop.position == 8
    assert (len(slept), sum(slept) <= 2) == (2, True)


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
