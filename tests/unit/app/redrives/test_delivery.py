"""Delivering a page: what goes out, and what becomes of messages that cannot."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import pytest

from fanin.app.ports.queues import Offered, Outgoing
from fanin.app.redrives.delivery import RedriveDelivery
from fanin.app.redrives.records import Counts, RedrivePage, RedriveRun
from fanin.domain.batch import LIVE, Batch, Mode, State
from fanin.domain.failures import Keep, KeptMessage
from fanin.domain.limits import MAX_FAILED_MESSAGES, MAX_KEPT_IN_ROW
from fanin.domain.redrives import Redrive
from fanin.errors import BatchGone, Throttled
from tests.unit.app.redrives.conftest import FIFO, QUEUE, SMALL, Failed


def delivery(world: Failed) -> RedriveDelivery:
    return RedriveDelivery(world.fresh())


def run(batch: Batch, *taken: int, at: int = 0) -> RedriveRun:
    plan = tuple((n, at) for n in taken)
    return RedriveRun(batch.batch_id, Redrive(), 0, 0, page=RedrivePage(plan=plan))


def test_a_large_message_that_cannot_be_sent_is_kept_with_its_new_item(failed):
    # Given a message in the bucket that no row can hold, and a queue that refuses it
    batch = failed.failures(1)
    failed.memory.claims.objects["key"] = b'{"body": "%s"}' % (b"x" * MAX_KEPT_IN_ROW)
    row = failed.noted(batch)
    failed.ports.parts.update_failures(batch.batch_id, [row._replace(kept="key")], expires_at=2**40)
    failed.memory.channels.refusing[QUEUE] = "too large"
    delivery(failed).deliver(batch, run(batch, 0))
    # Then the new item has failed, and has the message
    found = failed.fresh().failure(failed.new(batch).batch_id, 0)
    assert found.failure.reason == "redrive: too large"
    assert found.message == KeptMessage("x" * MAX_KEPT_IN_ROW)


def in_the_bucket(failed: Failed, batch: Batch) -> None:
    """Keep the messages in the bucket, where each may have megabytes."""
    rows, _ = failed.ports.parts.failures(batch.batch_id)
    large = [row._replace(kept=f"key {row.ordinal}") for row in rows]
    failed.ports.parts.update_failures(batch.batch_id, large, expires_at=2**40)
    failed.memory.claims.objects |= {row.kept: b'{"body": "large %d"}' % row.ordinal for row in large}


def test_of_large_messages_only_as_many_are_in_memory_as_a_function_can_hold(failed):
    # Given a page of messages that may have a quarter of a gigabyte
    batch = failed.failures(40)
    in_the_bucket(failed, batch)
    claims = failed.memory.claims
    together: list[int] = []
    load = claims.load

    def noting(keys: Sequence[str]) -> Mapping[str, bytes]:
        together.append(len(keys))
        return load(keys)

    claims.load = noting
    delivery(failed).deliver(batch, run(batch, *range(40)))
    # Then few were loaded together, and all were sent in the order of their items
    assert max(together) * MAX_FAILED_MESSAGES <= 64 * 2**20
    assert [message.body for message in failed.sent()] == [f"large {n}" for n in range(40)]


def test_notes_that_are_past_their_time_end_it(failed):
    batch = failed.failures(1)
    with pytest.raises(BatchGone):
        delivery(failed).deliver(batch, run(batch, 0, 5))


def test_messages_behind_one_that_waits_are_not_sent_before_it(failed, monkeypatch):
    # Given a FIFO queue that is busy for a moment
    count = 40
    batch = failed.failures(count, sources=dict.fromkeys(range(count), FIFO))
    in_the_bucket(failed, batch)
    channels = failed.memory.channels
    channels.busy.add(FIFO)
    offer = channels.offer

    def offers(messages: Sequence[Outgoing]) -> Offered:
        offered = offer(messages)
        channels.busy.clear()
        return offered

    monkeypatch.setattr(channels, "offer", offers)
    # When more messages are delivered than are in memory at a time
    with pytest.raises(Throttled):
        delivery(failed).deliver(batch, run(batch, *range(count)))
    # Then the last does not overtake the first
    assert not failed.bodies(FIFO)
    delivery(failed).deliver(batch, run(batch, *range(count)))
    assert [message.body for message in failed.sent(FIFO)] == [f"large {n}" for n in range(count)]


def test_a_busy_queue_does_not_keep_what_another_refused_from_being_noted(failed):
    # Given two messages, one to a queue that is busy and one to a queue that refuses it
    batch = failed.failures(2, sources={1: SMALL})
    failed.memory.channels.busy.add(QUEUE)
    with pytest.raises(Throttled):
        delivery(failed).deliver(batch, run(batch, 0, 1))
    # Then the one has failed with its message while the other waits
    assert failed.fresh().failure(failed.new(batch).batch_id, 1).message == KeptMessage("body 1")


@pytest.mark.parametrize("mode", Mode)
def test_the_new_batch_is_like_the_one_that_it_retries(failed, mode):
    # Given a batch with a user key, metadata and totals, of whose failures only the reasons are kept by now
    asked = {"user_key": "mine", "metadata": {"a": "b"}, "totals": ("rows",), "keep": Keep.REASON}
    batch = failed.failures(1, mode=mode, **asked)
    delivery(failed).deliver(batch, run(batch, 0))
    new = failed.new(batch)
    # Then the new batch has all that, too, and begins anew
    assert (new.mode, new.items, new.state) == (mode, 1, State.OPEN)
    assert {name: getattr(new, name) for name in asked} == {name: getattr(batch, name) for name in asked}


def test_the_new_batch_keeps_results_where_the_one_that_it_retries_did(failed):
    batch = failed.failures(1, results=True)
    delivery(failed).deliver(batch, run(batch, 0))
    assert failed.new(batch).results


def end_new_batches(failed: Failed, batch: Batch, times: int, moment: str = "before") -> None:
    """Let each new batch be orphaned as soon as it is there."""

    def end() -> None:
        for row in list(failed.memory.batches._rows.values()):
            if row.retry_of == batch.batch_id and not row.state.terminal:
                now = failed.clock.now()
                failed.ports.batches.end(row.batch_id, State.ORPHANED, now=now, sources=LIVE)

    for _ in range(times):
        failed.at("batches.allocate_once", moment, end)


@pytest.mark.parametrize("moment", ["before", "after"])
def test_a_new_batch_that_ends_at_once_leaves_the_page_to_the_next_part(failed, moment):
    # Given a new batch that ends before or after it has the item
    batch = failed.failures(1)
    end_new_batches(failed, batch, 1, moment)
    left = delivery(failed).deliver(batch, run(batch, 0))
    # Then nothing was sent, and the batch of the next part has it
    assert (left, failed.sent()) == (replace(run(batch, 0), part=1), [])
    done = delivery(failed).deliver(batch, left)
    (item,) = failed.items()["body 0"]
    assert item.startswith(f"{done.to}:")
    assert failed.ports.parts.redriven(batch.batch_id, [0])[0].item == item


def test_no_batch_takes_the_place_of_one_that_ended_when_the_failures_are_gone(failed):
    # Given a new batch that ends, and somebody who removes the one that it retries
    batch = failed.failures(1)
    end_new_batches(failed, batch, 1)
    failed.at("batches.allocate_once", "after", lambda: failed.fresh().remove(batch.batch_id))
    # When a failure is delivered, then it ends there
    with pytest.raises(BatchGone):
        delivery(failed).deliver(batch, run(batch, 0))
    assert failed.happened
    assert failed.new(batch).state is State.ORPHANED
    assert not failed.sent()


def test_a_message_without_a_group_gets_that_of_its_batch_on_a_fifo_queue(failed):
    # Given a failure from a FIFO queue, and one from another, both without a group
    batch = failed.failures(2, sources={0: FIFO})
    new = delivery(failed).deliver(batch, run(batch, 0, 1)).to
    # Then FIFO gets the group that it requires, and the other none
    assert [message.group for message in failed.sent(FIFO)] == [str(new)]
    assert [message.group for message in failed.sent()] == [None]


def test_a_fifo_queue_takes_a_held_item_once_for_each_of_its_failures(failed):
    # Given a held item from a FIFO queue
    batch = failed.failures(1, live=True, sources={0: FIFO})
    note = failed.noted(batch)
    # When it is delivered, by two workers, and once more after it has failed again
    for _ in range(2):
        delivery(failed).deliver(batch, run(batch, 0, at=note.failed_at))
    failed.note(batch, [note.item], sources={0: FIFO})
    delivery(failed).deliver(batch, run(batch, 0, at=note.failed_at + 1))
    # Then the queue drops the second, and no other
    assert [message.once for message in failed.sent(FIFO)] == [
        f"{note.item}/{note.failed_at}",
        f"{note.item}/{note.failed_at}",
        f"{note.item}/{note.failed_at + 1}",
    ]


def test_a_long_refusal_is_cut_to_the_length_of_a_reason(failed):
    batch = failed.failures(1)
    failed.memory.channels.refusing[QUEUE] = "x" * 2_000
    delivery(failed).deliver(batch, run(batch, 0))
    note = failed.noted(failed.new(batch))
    assert note.reason == "redrive: " + "x" * (1_024 - len("redrive: "))


def test_a_queue_that_vanished_after_the_failures_were_planned_fails_their_items(failed):
    batch = failed.failures(1)
    del failed.memory.channels.queues[QUEUE]
    delivery(failed).deliver(batch, run(batch, 0))
    note = failed.noted(failed.new(batch))
    assert (note.reason, bool(note.kept)) == ("redrive: its queue is gone", True)


def test_a_repeat_sends_under_the_same_items_and_leaves_out_what_is_done(failed):
    batch = failed.failures(4)
    first = delivery(failed).deliver(batch, run(batch, 0, 2, 3))
    assert first.counts == Counts(items=3)
    (done, *_) = failed.items()["body 2"]
    failed.ledger.mark([done]).whole()
    second = delivery(failed).deliver(batch, run(batch, 0, 2, 3))
    assert first == second
    assert failed.bodies() == {"body 0": 2, "body 2": 1, "body 3": 2}
    assert all(len(items) == 1 for items in failed.items().values())


def test_a_live_batch_stays_open_when_its_held_items_were_sent(failed):
    # Given a redrive that sends items of a live batch under their own ids
    batch = failed.failures(2, live=True)
    done = delivery(failed).deliver(batch, run(batch, 0, 1))
    assert done.to == batch.batch_id
    delivery(failed).close(done)
    # Then more items may still be added to the batch
    assert failed.row(batch).state is State.OPEN
