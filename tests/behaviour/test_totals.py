"""Totals: what consumers, repliers and receivers bring is summed up once each, wherever it is read."""

import pytest

from fanin import Count, Done, Failure, ItemFailed, OpenFrame, ReceivedMessage, Tracker
from fanin.domain.frames import Ticket
from fanin.domain.scatter import Recipient
from fanin.errors import InvalidRequest, PartlyMarked
from tests.behaviour.world import take

ROWS = [{"row": n, "cents": -n} for n in range(70)]


def exact(tracker: Tracker, batch_id: int) -> dict[str, int]:
    """The totals of a batch, which must be exact."""
    row = tracker.status(batch_id, exact=True).batch
    assert row.totals_exact
    return dict(row.totals)


def test_what_messages_bring_counts_once_although_they_come_twice(world):
    # Given a consumer that dies once after its work, and rows that fail
    tracker, queue = world.tracker, world.tracked_queue()
    with tracker.batch(totals=["rows", "cents"]) as batch:
        batch.send(queue, ROWS)
    died: set[int] = set()

    def handle(message: ReceivedMessage) -> None:
        row = message.json()
        message.add(rows=1)
        message.add(cents=row["cents"])
        if row["row"] % 10 == 3 and row["row"] not in died:
            died.add(row["row"])
            raise RuntimeError("died after its work")
        if row["row"] == 5:
            raise ItemFailed("no price, but counted")

    # When it works until the batch has ended
    consumer = tracker.consumer(queue, handle, wait=1, visibility_timeout=1)
    world.until(lambda: consumer.poll() == 0 and tracker.status(batch.id).batch.state.terminal, within=60)
    # Then every row counts once: in the status, in the list, and in the event
    totals = {"rows": 70, "cents": -sum(range(70))}
    assert exact(tracker, batch.id) == totals
    assert tracker.status(batch.id).batch.totals == totals
    event = world.only_event(batch.id)
    assert (event.detail["totals"], event.detail["totals_exact"], event.detail["failed"]) == (totals, True, 1)
    assert tracker.verify(batch.id).batch.totals == totals


def test_acknowledgements_bring_totals_by_id_and_through_the_queue(world):
    tracker = world.tracker
    with tracker.batch(totals=["rows"]) as batch:
        group = batch.add(200)

    tracker.ack(group[0], totals={"rows": 812})
    tracker.ack([group[0], group[1], Done(group[2], {"rows": 5}), Done(group[0], {"rows": 9})])
    tracker.fail(group[3], "half", totals={"rows": 3})
    assert exact(tracker, batch.id) == {"rows": 820}

    tracker.ack_later([Done(item, {"rows": 1}) for item in group[4:200]])
    event = world.only_event(batch.id)
    assert event.detail["totals"] == {"rows": 820 + 196}


def test_values_that_cannot_be_added_are_refused_and_mark_nothing(world):
    tracker = world.tracker
    with tracker.batch(totals=["rows"]) as batch:
        group = batch.add(3)
    plain = tracker.open()
    (other,) = tracker.add(plain.batch_id, 1)

    for item, values, why in [
        (group[0], {"row": 1}, "has no total 'row': its totals are rows"),
        (other, {"rows": 1}, "it was opened without totals"),
        (group[0], {"rows": 1.5}, "rows"),
        (group[0], {"rows": 2**53 + 1}, "9007199254740992"),
    ]:
        with pytest.raises(InvalidRequest, match=why):
            tracker.ack(item, totals=values)
    with pytest.raises(InvalidRequest, match="single item id"):
        tracker.ack([group[0]], totals={"rows": 1})
    for names in ["a", "b", "c", "d", "e"], ["Rows"], "rows":
        with pytest.raises(InvalidRequest, match="total"):
            tracker.open(totals=names)
    assert tracker.status(batch.id, exact=True).done_min == 0


def test_of_several_marks_a_bad_one_is_refused_alone(world):
    tracker = world.tracker
    with tracker.batch(totals=["rows"]) as batch:
        group = batch.add(3)
    wrong = Done(group[1], {"lines": 1})

    with pytest.raises(PartlyMarked) as found:
        tracker.ack([Done(group[0], {"rows": 7}), wrong, "nonsense", Failure(group[2], "half")])

    assert [mark for mark, _ in found.value.refused] == [wrong, "nonsense"]
    assert [(receipt.first, receipt.failed) for receipt in found.value.receipts] == [(2, 1)]
    tracker.ack(group[1])
    assert world.only_event(batch.id).detail["totals"] == {"rows": 7}


def test_a_batch_that_is_cancelled_tells_what_was_brought(world):
    tracker = world.tracker
    batch = tracker.open(totals=["rows"])
    group = tracker.add(batch.batch_id, 500)
    tracker.ack([Done(group[n], {"rows": n}) for n in range(0, 500, 7)])
    tracker.cancel(batch.batch_id)

    event = world.only_event(batch.batch_id)
    assert (event.detail["totals"], event.detail["totals_exact"]) == ({"rows": sum(range(0, 500, 7))}, True)


def test_a_child_hands_its_totals_to_the_item_of_its_parent(world):
    tracker = world.tracker
    with tracker.batch(totals=["rows", "files"]) as parent:
        group = parent.add(2)
    with tracker.batch(parent_item=group[0], totals=["rows", "bytes"]) as child:
        items = child.add(2)
    tracker.ack(items[0], totals={"rows": 3, "bytes": 99})
    tracker.ack(items[1], totals={"rows": 4})
    world.until(lambda: tracker.status(parent.id, exact=True).done_min == 1)
    tracker.ack(group[1], totals={"rows": 10, "files": 1})

    assert world.only_event(parent.id).detail["totals"] == {"rows": 17, "files": 1}


def test_replies_bring_totals_to_their_scatter(world):
    tracker, here, there = world.tracker, world.queue(channel=True), world.queue(channel=True)
    to = [Recipient("here", here), Recipient("there", there)]
    started = tracker.scatters.start(to, "km?", timeout=60, totals=["km"])
    (first,), (second,) = take(world, here), take(world, there)
    with pytest.raises(InvalidRequest, match="has no total 'miles'"):
        tracker.scatters.reply(first, {"by": "bus"}, totals={"miles": 7})
    first.add(km=5)
    assert tracker.scatters.reply(first, {"by": "bus"}, totals={"km": 2}).first
    tracker.scatters.reply(first, {"by": "bus"}, totals={"km": 70})
    tracker.scatters.reply_later(second, {"by": "car"}, totals={"km": 30})

    assert world.only_event(started.batch.batch_id).detail["totals"] == {"km": 37}


def test_envelopes_bring_totals_to_their_frame(world):
    tracker = world.tracker
    frame = tracker.frames.open(OpenFrame(3, totals=("bytes",)))
    claims = tracker.frames.claim([Ticket(frame.frame_id, index) for index in range(3)])
    for claim in claims[:2]:
        tracker.ack(claim.item, totals={"bytes": 100})
    assert tracker.frames.status(frame.frame_id).totals == {"bytes": 200}
    tracker.ack(claims[2].item, totals={"bytes": 1})

    assert world.only_event(frame.frame_id).detail["totals"] == {"bytes": 201}


def test_a_redrive_starts_at_zero_and_shows_the_sums_before(world):
    # Given a batch of which one item failed
    tracker, queue = world.tracker, world.tracked_queue()
    with tracker.batch(totals=["rows"]) as batch:
        batch.send(queue, ["good", "bad"])

    def handle(message: ReceivedMessage) -> None:
        if message.body == "bad" and message.batch_id == batch.id:
            raise ItemFailed("no price")
        message.add(rows=10)

    consumer = tracker.consumer(queue, handle, wait=1)
    world.until(lambda: consumer.poll() == 0 and tracker.status(batch.id).batch.state.terminal)
    # When it is redriven
    again = tracker.redrive(batch.id)
    world.until(lambda: consumer.poll() == 0 and tracker.status(again.batch_id).batch.state.terminal)
    # Then the new batch has its own sum, and the sum before
    row = tracker.status(again.batch_id).batch
    assert (row.totals, row.totals_before) == ({"rows": 10}, {"rows": 10})


def test_estimated_sums_count_repeats(world):
    tracker = world.tracker
    batch = tracker.open(mode="estimated", totals=["rows"])
    tracker.add(batch.batch_id, 5)
    tracker.ack([Count(batch.batch_id, 2, {"rows": 20})])
    tracker.ack([Count(batch.batch_id, 2, {"rows": 20})])

    row = tracker.status(batch.batch_id).batch
    assert (row.totals, row.totals_exact, row.acked) == ({"rows": 40}, False, 4)
