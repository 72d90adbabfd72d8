"""Slots of a buffer: reclaimed when leaked, marked, and moved to a new batch."""

from __future__ import annotations

import pytest

from fanin.app.buffers.slots import LIFETIME, MARGIN_MS, RENEWAL
from fanin.domain.batch import Kind, State
from fanin.errors import (
    LimitReached,
)
from tests.unit.app.buffers.conftest import DAY_MS, Crash, World


def test_a_slot_is_given_up_when_no_message_of_it_can_exist(world: World) -> None:
    # Given one put that left a mark, and a producer that dies before it has sent two more
    (item,) = world.buffers.put("jobs", ["a"]).items

    def die(call: str, _moment: str) -> None:
        if call == "channels.send":
            raise Crash

    world.on_step = die
    with pytest.raises(Crash):
        world.buffers.put("jobs", ["b", "c"])
    world.on_step = lambda *_: None
    world.clock.advance(world.memory.queues.retention * 1000 // 2)
    (work,) = world.buffers.take("jobs")
    world.buffers.done("jobs", [work.receipt])
    world.buffers.put("jobs", ["d"])

    # When the retention has not quite passed since, then a full buffer is full
    with pytest.raises(LimitReached):
        world.fresh().put("jobs", ["e"])
    world.clock.advance(world.memory.queues.retention * 1000 + MARGIN_MS - 1)
    with pytest.raises(LimitReached):
        world.fresh().put("jobs", ["e"])

    # When it has, then there is room again, and what waits in the queue was not touched
    world.clock.advance(1)
    assert world.fresh().put("jobs", ["e"])
    assert world.buffers.status("jobs").pending == 1
    assert item
    assert [f.reason for f in world.buffers._ledger.failures(item_batch(item)).failures] == [
        "its message is lost or expired"
    ] * 3


def item_batch(item: str) -> int:
    return int(item.partition(":")[0])


def test_marks_are_made_some_times_in_each_retention(world: World) -> None:
    world.buffers.define("many", 1_000)
    writes = world.memory.accesses.writes
    before = writes["directory.put"]
    for _ in range(300):
        world.buffers.put("many", ["a"])
        world.clock.advance(1_000)
    assert writes["directory.put"] - before == 1


def test_the_limit_changes_when_all_that_was_in_is_done(world: World) -> None:
    # Given work in a buffer whose limit grows
    world.buffers.put("jobs", ["a"])
    assert world.buffers.define("jobs", 5).limit == 5
    with pytest.raises(LimitReached, match="until the 1 items in it are done"):
        world.buffers.put("jobs", ["b"])
    assert world.buffers.status("jobs").draining

    # When the work is done, then the next put has the new limit
    (work,) = world.buffers.take("jobs")
    world.buffers.done("jobs", [work.receipt])
    world.buffers.put("jobs", list("bcdef"))
    with pytest.raises(LimitReached, match="5 items pending of at most 5"):
        world.fresh().put("jobs", ["g"])


def test_a_buffer_outlives_its_batch(world: World) -> None:
    # Given a buffer that is used until its batch is nearly as old as a batch can be
    before = world.buffers.list().buffers[0]
    batch, _ = world.buffers._slots.pending(before)
    assert batch is not None
    assert (batch.kind, batch.open_idle_ttl) == (Kind.BUFFER, LIFETIME)
    world.clock.advance((LIFETIME - RENEWAL) * 1000 - 1)
    world.buffers.put("jobs", ["a"])
    world.clock.advance(1)

    # When work is put in, then the buffer drains, and goes on
    with pytest.raises(LimitReached):
        world.buffers.put("jobs", ["b"])
    (work,) = world.buffers.take("jobs")
    world.buffers.done("jobs", [work.receipt])
    world.buffers.put("jobs", ["b"])

    # Then it has a new batch, and the old one is complete
    after = world.buffers.list().buffers[0]
    assert after.batch_id != before.batch_id
    assert world.buffers._ledger.status(before.batch_id).batch.state is State.COMPLETE
    assert world.payloads() == ["b"]


def test_a_buffer_whose_batch_was_cancelled_drops_its_work_and_goes_on(world: World) -> None:
    world.buffers.put("jobs", ["a"])
    world.buffers._ledger.cancel(world.buffers.list().buffers[0].batch_id)

    world.buffers.put("jobs", ["b", "c", "d"])

    assert world.payloads() == ["b", "c", "d"]


def test_two_processes_renew_a_buffer_together(world: World) -> None:
    # Given a cancelled batch, and a second process that renews while the first does
    world.buffers._ledger.cancel(world.buffers.list().buffers[0].batch_id)
    other = world.fresh()
    raced: list[str] = []

    def race(call: str, moment: str) -> None:
        if (call, moment) == ("batches.create", "after") and not raced:
            raced.append("yes")
            other.put("jobs", ["b"])

    world.on_step = race
    world.buffers.put("jobs", ["a", "c"])
    world.on_step = lambda *_: None

    # Then both went to one batch
    assert sorted(world.payloads()) == ["a", "b", "c"]
    with pytest.raises(LimitReached):
        world.buffers.put("jobs", ["d"])


def test_a_buffer_that_nobody_uses_is_not_expired_as_idle(world: World) -> None:
    world.buffers.put("jobs", ["a"])
    world.clock.advance(100 * DAY_MS)

    expired = world.buffers._ledger.expire(State.OPEN, idle_since=world.clock.now())

    assert expired.batches == 0
    world.buffers.put("jobs", ["b"])
