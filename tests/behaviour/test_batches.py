"""A batch from its opening to its event, whatever ends it."""

import uuid
from datetime import timedelta

import pytest

from fanin import ItemRange
from fanin.types import ItemState
from tests.behaviour.world import ends

SOON = timedelta(seconds=5)
"""Enough for one call on a busy machine."""
HOUR = 3600


def test_a_batch_completes_with_its_last_item_and_the_bus_is_told_once(world):
    # Given a batch of 200 items
    tracker = world.tracker
    with tracker.batch(user_key="report", metadata={"month": "11"}) as batch:
        group = batch.add(200)
    # When all are done in any order, some twice, and one has failed
    (first,) = tracker.ack(group[i] for i in range(199, 100, -1))
    (again,) = tracker.ack(group[150])
    tracker.fail(group[0], "no such customer")
    assert (first.first, again.first, again.duplicates) == (99, 0, (group[150],))
    assert not ends(world.events(batch.id))
    (last,) = tracker.ack(group)
    # Then it is complete, and one event says so and what failed
    assert last.complete
    event = world.only_event(batch.id)
    assert event.detail_type == "Batch Completed"
    assert event.detail["id"].rpartition("/")[2] == f"{batch.id}.complete"
    assert (event.detail["user_key"], event.detail["metadata"]) == ("report", {"month": "11"})
    (failure,) = event.detail["failures"]
    assert failure == {"ordinal": 0, "item": group[0], "reason": "no such customer"}
    assert tracker.wait(batch.id).batch.state == "complete"


def test_a_producer_that_breaks_off_cancels_its_batch(world):
    with pytest.raises(KeyError), world.tracker.batch() as batch:  # noqa: PT012  the block is the test
        batch.add(3)
        raise KeyError("rows")
    assert world.only_event(batch.id).detail_type == "Batch Cancelled"


def test_batches_are_found_by_their_user_key_and_the_newest_first(world):
    # Given two batches of a user key, one of them cancelled, and one of another that begins with it
    tracker, user_key = world.tracker, f"nightly & co #{uuid.uuid4()}"
    older = tracker.open(user_key=user_key).batch_id
    world.until(iter((False, True)).__next__)  # time passes, since ids of one millisecond have any order
    newer = tracker.open(user_key=user_key).batch_id
    tracker.open(user_key=f"{user_key}#0")
    tracker.cancel(newer)

    # Then both are found, or the one in a state, as soon as the index has them
    def found(state: str | None = None) -> list[int]:
        return [batch.batch_id for batch in tracker.iter_batches(state, user_key=user_key)]

    assert world.until(lambda: len(found()) >= 2 and found()) == [newer, older]
    assert found("cancelled") == [newer]
    assert found("complete") == []


def test_a_picture_shows_what_became_of_each_item(world):
    # Given a batch that holds failed items, of which a range, an item and a failure are in
    tracker = world.tracker
    batch = tracker.open(user_key="picture", on_failure="hold")
    group = tracker.add(batch.batch_id, 5_000)
    tracker.ack([ItemRange(group.prefix, 0, 4_100)])
    tracker.ack(group[4_111])
    tracker.fail(group[4_110], "no such customer")
    # When somebody looks from the root down to the items
    root = tracker.picture(batch.batch_id)
    below = tracker.picture(batch.batch_id, level=1, number=1)
    leaf = tracker.picture(batch.batch_id, level=0, number=64)
    # Then each level says what is done, and the last one what became of each item
    assert [(cell.start, cell.stop, cell.done_min, cell.done_max) for cell in root.cells] == [
        (0, 4_096, 4_096, 4_096),
        (4_096, 5_000, 0, 904),
    ]
    assert (below.cells[0].done_min, below.cells[0].done_max) == (5, 5)
    assert below.cells[0].word == 2**64 - 1 & ~0b1000000000001111
    states = {item.ordinal: item.state for item in leaf.items}
    assert [states[n] for n in (4_096, 4_099, 4_100, 4_110, 4_111, 4_159)] == [
        ItemState.DONE,
        ItemState.DONE,
        ItemState.PENDING,
        ItemState.HELD,
        ItemState.DONE,
        ItemState.PENDING,
    ]
    assert leaf.items[14].item.startswith(f"{batch.batch_id}:")
    tracker.cancel(batch.batch_id)


def test_a_batch_of_batches_completes_with_the_last_of_them(world):
    # Given a batch of two batches, the second of which has a batch itself
    tracker = world.tracker
    with tracker.batch(user_key="all") as parent:
        parts = parent.add(2)
    with tracker.batch(parent_item=parts[0]) as child:
        leaves = child.add(70)
    with tracker.batch(parent_item=parts[1]) as middle, tracker.batch(parent_item=middle.add(1)[0]) as leaf:
        last = leaf.add(5)
    # When the first is done, and then the innermost
    tracker.ack(leaves)
    world.until(lambda: tracker.status(parent.id, exact=True).done_min == 1)
    assert tracker.status(parent.id).batch.state == "closed"
    tracker.ack(last)
    # Then all of them are, and each is told once
    assert world.only_event(parent.id).detail["user_key"] == "all"
    for batch in (child, middle, leaf):
        assert world.only_event(batch.id).detail_type == "Batch Completed"


def test_a_child_that_does_not_complete_fails_its_item(world):
    tracker = world.tracker
    with tracker.batch() as parent:
        (item,) = parent.add(1)
    child = tracker.attach(tracker.open(parent_item=item).batch_id)
    child.cancel()

    event = world.only_event(parent.id)
    assert event.detail_type == "Batch Completed"
    assert event.detail["failures"] == [
        {"ordinal": 0, "item": item, "reason": f"batch {child.id} ended as cancelled"}
    ]


def test_a_deadline_ends_a_batch_and_what_is_missing_is_named(world):
    # Given two batches with a deadline, most of them done
    tracker, groups = world.tracker, {}
    for on_deadline in ("time_out", "complete"):
        with tracker.batch(deadline=timedelta(hours=1), on_deadline=on_deadline) as batch:
            group = groups[batch.id] = batch.add(100)
        tracker.ack(group[i] for i in range(100) if i not in {7, 64, 65})
    # When their deadlines are moved nearer, and come
    for batch_id in groups:
        tracker.change(batch_id, deadline=SOON)
    told = [world.only_event(batch_id) for batch_id in groups]
    # Then each has ended as was asked for, and an ack changes nothing any more
    assert [(event.detail_type, event.detail["partial"]) for event in told] == [
        ("Batch Timed Out", False),
        ("Batch Completed", True),
    ]
    for event, (batch_id, group) in zip(told, groups.items(), strict=True):
        assert len(event.detail["missing"]) == 2
        row = tracker.status(batch_id).batch
        assert row.deadline is not None
        assert row.ended_at is not None
        assert row.ended_at >= row.deadline - 2_000
        (late,) = tracker.ack(group[7])
        assert (late.first, late.late) == (0, 1)
        assert [(span.start, span.stop) for span in tracker.iter_missing(batch_id)] == [(7, 8), (64, 66)]


@pytest.mark.parametrize("closed", [False, True], ids=["open", "closed"])
def test_a_batch_that_nobody_goes_on_with_is_orphaned(world, closed):
    tracker = world.tracker
    batch = tracker.attach(tracker.open(idle_ttl=HOUR, stall_after=0).batch_id)
    batch.add(4)
    if closed:
        batch.close()
    world.idle(batch.id, HOUR + 100)
    event = world.only_event(batch.id)
    assert (event.detail_type, event.detail["items"]) == ("Batch Orphaned", 4)


def test_a_batch_whose_closer_died_is_completed_by_the_reaper(world):
    # Given a batch that is done, and whose closer died between the close and what follows it
    tracker = world.tracker
    batch = tracker.attach(tracker.open(idle_ttl=HOUR).batch_id)
    tracker.ack(batch.add(10))
    world.ports.batches.close(batch.id, now=world.ports.clock.now())
    assert tracker.status(batch.id).batch.state == "closed"
    # When the reaper comes by
    world.idle(batch.id, HOUR + 100)
    # Then it is complete
    assert world.only_event(batch.id).detail_type == "Batch Completed"
