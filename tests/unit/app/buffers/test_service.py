"""Bounded buffers: what is accepted, what is rejected, and what happens when somebody dies."""

from __future__ import annotations

import pytest

from fanin.app.buffers.service import SEND_MS
from fanin.app.ports.channels import Outgoing
from fanin.domain import limits
from fanin.domain.buffer import Outcome
from fanin.errors import (
    BufferNotFound,
    ChannelRefused,
    IdempotencyKeyReused,
    InvalidRequest,
    LimitReached,
    RequestTooLarge,
    Throttled,
)
from tests.unit.app.buffers.conftest import DAY_MS, Crash, World


def test_work_is_taken_as_it_was_put_and_done_once(world: World) -> None:
    # Given a buffer with work
    accepted = world.buffers.put("jobs", ["a", "b"])
    assert accepted.outcome is Outcome.WAITING
    assert len(set(accepted.items)) == 2
    world.clock.advance(1_500)

    # When another process takes it, and gives it back twice
    taker = world.fresh()
    work = taker.take("jobs", most=10)
    first = taker.done("jobs", [one.receipt for one in work])
    again = taker.done("jobs", [one.receipt for one in work])

    # Then it was done once, and the second time is no error
    assert [(one.payload, one.waited_ms) for one in work] == [("a", 1_500), ("b", 1_500)]
    assert (first.done, first.late) == (2, 0)
    assert (again.done, again.late) == (0, 2)
    assert world.payloads() == []


def test_a_put_is_accepted_whole_or_rejected_whole(world: World) -> None:
    world.buffers.put("jobs", ["a", "b"])

    with pytest.raises(LimitReached, match="2 items pending of at most 3") as rejected:
        world.buffers.put("jobs", ["c", "d"])

    assert rejected.value.retry_after == 1
    assert world.buffers.status("jobs").pending == 2
    world.buffers.put("jobs", ["c"])
    assert world.payloads() == ["a", "b", "c"]


def test_taken_work_holds_its_slot_until_it_is_done(world: World) -> None:
    world.buffers.put("jobs", ["a", "b", "c"])
    work = world.buffers.take("jobs", most=3)
    with pytest.raises(LimitReached):
        world.buffers.put("jobs", ["d"])

    world.buffers.done("jobs", [work[0].receipt])

    world.buffers.put("jobs", ["d"])
    with pytest.raises(LimitReached):
        world.buffers.put("jobs", ["e"])


def test_status_counts_what_waits_and_below_zero_who_waits(world: World) -> None:
    # Given two slots in use, of which one is taken
    world.buffers.put("jobs", ["a", "b"])
    world.buffers.take("jobs")
    level = world.buffers.status("jobs")
    assert (level.count, level.pending, level.taken, level.buffer.limit) == (1, 2, 1, 3)

    # When all is taken and two consumers wait
    world.buffers.take("jobs")
    waiting: list[int] = []

    def look(call: str, moment: str) -> None:
        if (call, moment) == ("queues.receive", "before") and len(waiting) < 2:
            waiting.append(0)
            if len(waiting) == 2:  # the first consumer has found nothing, and waits
                waiting[-1] = world.fresh().status("jobs").count

    world.on_step = look
    assert world.buffers.take("jobs") == []

    # Then the count says so, while they wait
    assert waiting[-1] == -1
    assert world.buffers.status("jobs").count == 0


def test_a_put_is_ready_when_a_consumer_waits_already(world: World) -> None:
    # Given a consumer that found nothing, and waits
    outcomes: list[Outcome] = []

    def put(call: str, moment: str) -> None:
        if (call, moment) == ("directory.put", "after") and not outcomes:
            outcomes.append(Outcome.WAITING)
            outcomes.append(world.fresh().put("jobs", ["a"]).outcome)

    world.on_step = put
    work = world.buffers.take("jobs")

    # Then the put that came meanwhile was ready, and the consumer has the work
    assert outcomes[-1] is Outcome.READY
    assert [one.payload for one in work] == ["a"]
    assert world.buffers.put("jobs", ["b"]).outcome is Outcome.WAITING


def test_a_message_that_cannot_be_sent_takes_no_slot(world: World) -> None:
    # Given a buffer whose queue somebody deleted
    world.memory.channels.queues.clear()

    with pytest.raises(ChannelRefused):
        world.buffers.put("jobs", ["a", "b", "c"])

    batch_id = world.buffers.list().buffers[0].batch_id
    assert world.fresh()._ledger.status(batch_id, exact=True).done_min == 3


def test_a_put_that_took_too_long_is_void(world: World) -> None:
    # Given a producer that sleeps before its message is sent
    def sleep(call: str, moment: str) -> None:
        if (call, moment) == ("channels.send", "before"):
            world.clock.advance(SEND_MS + 1)

    world.on_step = sleep
    with pytest.raises(Throttled, match="again"):
        world.buffers.put("jobs", ["a"])
    world.on_step = lambda *_: None

    # Then its message is there, and nobody gets it
    assert world.payloads() == []
    assert world.buffers.status("jobs").pending == 0


def test_a_key_puts_work_in_once(world: World) -> None:
    first = world.buffers.put("jobs", ["a", "b"], key="order-7")
    (done,) = world.buffers.take("jobs", most=1)
    world.buffers.done("jobs", [done.receipt])

    assert world.buffers.put("jobs", ["a", "b"], key="order-7").items == first.items

    assert world.buffers.status("jobs").pending == 1
    assert world.payloads() == ["b", "b"]  # what is not done may come twice, what is done does not
    with pytest.raises(IdempotencyKeyReused):
        world.buffers.put("jobs", ["a"], key="order-7")


@pytest.mark.parametrize("key", [None, "order-7"])
def test_a_producer_may_die_at_every_step(key: str | None) -> None:
    step = 0
    while True:
        # Given a producer that dies at one step of its put, or does not
        world = World()
        world.buffers.define("jobs", 2)
        world.steps, world.crash_at = 0, (step := step + 1)
        died = False
        try:
            world.buffers.put("jobs", ["a", "b"], key=key)
        except Crash:
            died = True
        world.crash_at = None
        world.buffers = world.fresh()

        # When it puts again, with its key, or else when the queue would have dropped its message
        if key:
            world.buffers.put("jobs", ["a", "b"], key=key)
        elif died:
            with pytest.raises(LimitReached) if world.buffers.status("jobs").pending else _accepted():
                world.buffers.put("jobs", ["a", "b"])
            world.clock.advance(20 * DAY_MS)
            world.payloads()

        # Then the limit was kept, no work is lost, and no slot stays leaked
        assert world.buffers.status("jobs").pending <= 2
        if key:
            assert set(world.payloads()) == {"a", "b"}
        if not died:
            break
    assert step > 8


class _accepted:  # noqa: N801  reads as pytest.raises does
    def __enter__(self) -> None:
        pass

    def __exit__(self, *_: object) -> None:
        pass


def test_a_buffer_is_defined_once_and_deleted_once(world: World) -> None:
    again = world.fresh().define("jobs", 3)
    assert again == world.buffers.list().buffers[0]
    assert again.owned

    world.buffers.delete("jobs")
    world.buffers.delete("jobs")

    assert world.buffers.list().buffers == ()
    assert again.queue not in world.memory.channels.queues
    for call in (world.buffers.status, world.buffers.take, lambda name: world.buffers.put(name, ["a"])):
        with pytest.raises(BufferNotFound, match="jobs"):
            call("jobs")
    world.buffers.define("jobs", 1)
    world.buffers.put("jobs", ["new"])
    assert world.payloads() == ["new"]


def test_a_delete_that_died_goes_on_where_it_stopped(world: World) -> None:
    step = 0
    while True:
        world = World()
        world.buffers.define("jobs", 1)
        world.steps, world.crash_at = 0, (step := step + 1)
        try:
            world.buffers.delete("jobs")
        except Crash:
            world.crash_at = None
            world.fresh().delete("jobs")
        else:
            break
        assert world.fresh().list().buffers == ()
        assert world.memory.channels.queues == {}
    assert step > 8


def test_a_buffer_may_have_a_queue_of_ones_own(world: World) -> None:
    world.memory.channels.queues["https://mine"] = []

    mine = world.buffers.define("own", 2, queue="https://mine")
    assert (mine.queue, mine.owned) == ("https://mine", False)
    with pytest.raises(InvalidRequest, match="another queue"):
        world.buffers.define("jobs", 3, queue="https://mine")
    with pytest.raises(ChannelRefused):
        world.buffers.define("other", 2, queue="https://none")

    # What others send there is left alone, and the queue outlives the buffer
    world.memory.channels.send([Outgoing("https://mine", "foreign", {})])
    world.buffers.put("own", ["a"])
    assert [work.payload for work in world.buffers.take("own", most=10)] == ["a"]
    world.buffers.delete("own")
    assert "https://mine" in world.memory.channels.queues


def test_what_is_malformed_is_refused_and_nothing_is_written(world: World) -> None:
    written = world.memory.accesses.writes.total()
    refused = [
        lambda: world.buffers.define("a b", 1),
        lambda: world.buffers.define("x" * 49, 1),
        lambda: world.buffers.define("x", 0),
        lambda: world.buffers.put("jobs", []),
        lambda: world.buffers.put("jobs", [""]),
        lambda: world.buffers.take("jobs", most=11),
        lambda: world.buffers.take("jobs", wait=21),
        lambda: world.buffers.take("jobs", visibility_timeout=0),
        lambda: world.buffers.done("jobs", ["nonsense"]),
        lambda: world.buffers.done("jobs", ["W10"]),
    ]
    for call in refused:
        with pytest.raises(InvalidRequest):
            call()
    for payloads in (["a"] * 11, ["x" * limits.MAX_PAYLOAD, "y"], ["☂" * (limits.MAX_PAYLOAD // 2)]):
        with pytest.raises(RequestTooLarge):
            world.buffers.put("jobs", payloads)
    assert world.memory.accesses.writes.total() == written
