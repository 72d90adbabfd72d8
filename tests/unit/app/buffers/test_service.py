"""Bounded buffers: what is accepted, what is rejected, and what happens when somebody dies."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from fanin.adapters.memory import FixedClock, Memory
from fanin.app.buffers import put_keys, receipts
from fanin.app.buffers.deliveries import SIFT_MS
from fanin.app.buffers.service import BufferService
from fanin.app.buffers.slots import LIFETIME, MARGIN_MS, RENEWAL, SEND_MS
from fanin.app.ledger.service import LedgerService
from fanin.app.ports.channels import Outgoing
from fanin.app.ports.queues import Received
from fanin.domain import limits
from fanin.domain.batch import Kind, State
from fanin.domain.buffer import Outcome
from fanin.domain.principals import IdempotencyKey, Principal
from fanin.errors import (
    BufferNotFound,
    ChannelRefused,
    IdempotencyKeyReused,
    InvalidItemId,
    InvalidRequest,
    LimitReached,
    RequestTooLarge,
    ServiceUnavailable,
    Throttled,
)
from tests.lost_answers import LostAnswers

DAY_MS = 86_400_000


class Crash(BaseException):
    """The process dies."""


class World:
    """Stores and queues that all processes share, with a step at which one dies."""

    def __init__(self) -> None:
        self.clock = FixedClock()
        self.steps = 0
        self.crash_at: int | None = None
        self.on_step: Callable[[str, str], None] = lambda _call, _moment: None
        self.memory = Memory(clock=self.clock, on_call=self._step)
        self.buffers = self.fresh()

    def _step(self, call: str, moment: str) -> None:
        self.steps += 1
        self.on_step(call, moment)
        if self.steps == self.crash_at:
            raise Crash

    def fresh(self) -> BufferService:
        """A process that starts now."""
        ports = self.memory.ports()
        return BufferService(LedgerService(ports))

    def payloads(self) -> list[str]:
        """Take all the work there is, without giving it back."""
        found: list[str] = []
        while work := self.buffers.take("jobs", most=10, wait=0):
            found += [one.payload for one in work]
        return found


@pytest.fixture
def world() -> World:
    world = World()
    world.buffers.define("jobs", 3)
    return world


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

    with pytest.raises(LimitReached, match="buffer jobs has 2 items pending of at most 3") as rejected:
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


def test_the_work_of_a_taker_that_dies_comes_again(world: World) -> None:
    world.buffers.put("jobs", ["a"])
    (lost,) = world.buffers.take("jobs", visibility_timeout=60)
    assert world.payloads() == []

    world.clock.advance(60_000)
    (again,) = world.buffers.take("jobs")
    world.buffers.done("jobs", [again.receipt])

    assert again.payload == "a"
    assert world.buffers.done("jobs", [lost.receipt]).late == 1


def test_work_that_is_done_is_not_taken_again_though_its_message_stayed(world: World) -> None:
    # Given a taker that dies between marking its work done and removing the message
    world.buffers.put("jobs", ["a", "b"])
    (work,) = world.buffers.take("jobs")

    def die(call: str, _moment: str) -> None:
        if call == "queues.remove":
            raise Crash

    world.on_step = die
    with pytest.raises(Crash):
        world.buffers.done("jobs", [work.receipt])
    world.on_step = lambda *_: None

    # When the message comes again, then nobody gets it, and it is gone
    world.clock.advance(DAY_MS)
    assert world.payloads() == ["b"]
    assert world.buffers.status("jobs").pending == 1


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
    assert world.payloads() == ["b"]
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
        lambda: world.buffers.put("jobs", ["a", "\0"]),
        lambda: world.buffers.put("jobs", ["\ud800"], key="order-7"),
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


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda buffers: buffers.define("x", 0), "limit must be a whole number from 1 to 1000000, not"),
        (
            lambda buffers: buffers.define("x", 1_000_001),
            "limit must be a whole number from 1 to 1000000, not",
        ),
        (lambda buffers: buffers.take("jobs", most=0), "most must be a whole number from 1 to 10, not"),
        (lambda buffers: buffers.take("jobs", most=11), "most must be a whole number from 1 to 10, not"),
        (lambda buffers: buffers.take("jobs", wait=-1), "wait must be a whole number from 0 to 20, not"),
        (lambda buffers: buffers.take("jobs", wait=21), "wait must be a whole number from 0 to 20, not"),
        (
            lambda buffers: buffers.take("jobs", visibility_timeout=0),
            "visibility_timeout must be a whole number from 1 to 43200, not",
        ),
        (
            lambda buffers: buffers.take("jobs", visibility_timeout=43_201),
            "visibility_timeout must be a whole number from 1 to 43200, not",
        ),
        (lambda buffers: buffers.done("jobs", ["r"] * 101), "101 receipts in one call; send at most 100"),
        (lambda buffers: buffers.list(limit=0), "limit must be a whole number from 1 to 1000, not"),
        (lambda buffers: buffers.list(limit=1_001), "limit must be a whole number from 1 to 1000, not"),
    ],
)
def test_a_refusal_names_what_is_out_of_its_bounds_and_nothing_is_made(
    world: World, call: Callable[[BufferService], object], message: str
) -> None:
    written, queues = world.memory.accesses.writes.total(), set(world.memory.channels.queues)

    with pytest.raises((InvalidRequest, RequestTooLarge), match=f"^{message}"):
        call(world.buffers)

    assert world.memory.accesses.writes.total() == written
    assert set(world.memory.channels.queues) == queues


def test_a_call_that_others_overtake_each_time_is_asked_to_come_again(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    buffers = world.buffers
    stored = buffers._records.read("jobs")
    monkeypatch.setattr(buffers._records, "write", lambda _: (stored, False))

    with pytest.raises(Throttled, match="try again"):
        buffers.define("jobs", 5)
    with pytest.raises(Throttled, match="try again"):
        buffers.delete("jobs")


def test_a_buffer_drains_only_while_its_limit_changes(world: World) -> None:
    world.buffers.put("jobs", ["a"])
    assert not world.buffers.status("jobs").draining

    world.buffers.define("jobs", 5)
    assert world.buffers.status("jobs").draining


def test_what_is_just_within_the_bounds_is_accepted(world: World) -> None:
    world.buffers.define("least", 1)
    world.buffers.define("most", 1_000_000)
    world.buffers.put("least", ["a"])

    (work,) = world.buffers.take("least", most=1, wait=0, visibility_timeout=1)
    world.clock.advance(1_000)
    (again,) = world.buffers.take("least", most=10, wait=20, visibility_timeout=43_200)

    assert (work.payload, again.payload) == ("a", "a")
    assert [buffer.name for buffer in world.buffers.list(limit=1).buffers] == ["jobs"]


def test_a_forged_receipt_frees_no_slot(world: World) -> None:
    (item,) = world.buffers.put("jobs", ["a"]).items
    group = item.split(":")[1]
    forged = receipts.write(item.replace(group, group[:-4] + "0000"), "delivery-1")

    with pytest.raises(InvalidItemId):
        world.buffers.done("jobs", [forged])
    assert world.buffers.status("jobs").pending == 1


def test_a_buffer_that_nobody_uses_is_not_expired_as_idle(world: World) -> None:
    world.buffers.put("jobs", ["a"])
    world.clock.advance(100 * DAY_MS)

    expired = world.buffers._ledger.expire(State.OPEN, idle_since=world.clock.now())

    assert expired.batches == 0
    world.buffers.put("jobs", ["b"])


class TestLostAnswers:
    """The SDK repeats a write whose answer was lost, and meets what it wrote, or what others made of it."""

    def test_a_buffer_that_was_defined_keeps_its_batch(self) -> None:
        world = World()
        LostAnswers(world.memory).lose("directory.put", lambda: world.fresh().put("jobs", ["theirs"]))

        mine = world.fresh().define("jobs", 3)

        assert world.payloads() == ["theirs"]
        assert mine == world.buffers.list().buffers[0]
        assert len(world.memory.batches._rows) == 1

    def test_a_buffer_that_was_defined_and_changed_since_is_left_as_it_is(self) -> None:
        world = World()

        def change() -> None:
            world.fresh().define("jobs", 7)
            world.fresh().put("jobs", ["theirs"] * 7)

        LostAnswers(world.memory).lose("directory.put", change)
        world.fresh().define("jobs", 3)

        assert world.buffers.list().buffers[0].limit == 7
        assert world.payloads() == ["theirs"] * 7

    def test_a_buffer_that_was_defined_and_deleted_since_stays_deleted(self) -> None:
        world = World()
        LostAnswers(world.memory).lose("directory.put", lambda: world.fresh().delete("jobs"))

        world.fresh().define("jobs", 3)

        assert world.buffers.list().buffers == ()

    def test_a_limit_changes_once(self, world: World) -> None:
        LostAnswers(world.memory).lose("directory.put", lambda: world.fresh().put("jobs", ["theirs"]))

        assert world.fresh().define("jobs", 5).limit == 5
        assert world.payloads() == ["theirs"]

    def test_a_deletion_leaves_a_buffer_alone_that_was_defined_anew_meanwhile(self, world: World) -> None:
        def anew() -> None:
            other = world.fresh()
            other.delete("jobs")
            other.define("jobs", 2)
            other.put("jobs", ["theirs"])

        LostAnswers(world.memory).lose("directory.put", anew)
        world.fresh().delete("jobs")

        world.buffers = world.fresh()
        assert world.payloads() == ["theirs"]

    @pytest.mark.parametrize("call", ["directory.put", "batches.end", "queues.delete", "directory.read"])
    def test_a_deletion_is_one_whatever_is_repeated(self, world: World, call: str) -> None:
        LostAnswers(world.memory).lose(call, lambda: world.fresh().delete("jobs"))

        world.fresh().delete("jobs")

        assert world.fresh().list().buffers == ()
        assert world.memory.channels.queues == {}
        assert [row.state for row in world.memory.batches._rows.values()] == [State.CANCELLED]


class TestSlowCalls:
    """A call that has read a buffer which is deleted, and defined anew, while it works."""

    @pytest.mark.parametrize(
        ("call", "moment"),
        [("channels.send", "after"), ("directory.page", "before"), ("batches.allocate", "after")],
    )
    def test_a_put_does_not_write_over_the_new_buffer(self, call: str, moment: str) -> None:
        # Given a put into a buffer on a queue that outlives it
        world = World()
        world.memory.channels.queues["https://mine"] = []
        world.buffers.define("jobs", 3, queue="https://mine")

        def anew(*at: str) -> None:
            if at == (call, moment):
                world.on_step = lambda *_: None
                other = world.fresh()
                other.delete("jobs")
                other.define("jobs", 2, queue="https://mine")
                other.put("jobs", ["theirs"])

        world.on_step = anew
        world.fresh().put("jobs", ["mine"])

        world.buffers = world.fresh()
        assert "theirs" in world.payloads()
        assert world.buffers.list().buffers[0].limit == 2

    def test_a_deletion_does_not_delete_the_queue_of_the_new_buffer(self, world: World) -> None:
        def anew(*at: str) -> None:
            if at == ("batches.end", "after"):
                world.on_step = lambda *_: None
                world.fresh().delete("jobs")
                world.fresh().define("jobs", 2)
                world.fresh().put("jobs", ["theirs"])

        world.on_step = anew
        world.fresh().delete("jobs")

        world.buffers = world.fresh()
        assert world.payloads() == ["theirs"]

    def test_a_deletion_that_stops_before_the_queue_does_not_delete_that_of_the_new_buffer(
        self, world: World
    ) -> None:
        # Given a deletion that stops just before it deletes the queue, while another one ends
        def anew(*at: str) -> None:
            if at == ("queues.delete", "before"):
                world.on_step = lambda *_: None
                world.fresh().delete("jobs")
                world.fresh().define("jobs", 2)
                world.fresh().put("jobs", ["theirs"])

        world.on_step = anew
        world.fresh().delete("jobs")

        # Then the buffer that was defined since has its queue, with what is in it
        world.buffers = world.fresh()
        assert world.payloads() == ["theirs"]

    def test_a_definition_that_comes_too_late_leaves_nothing_behind(self) -> None:
        # Given two processes that define a buffer at once
        world = World()

        def faster(*at: str) -> None:
            if at == ("queues.create", "after"):
                world.on_step = lambda *_: None
                world.fresh().define("jobs", 2)

        world.on_step = faster
        mine = world.fresh().define("jobs", 2)

        # Then both have one, and the queue and the batch of the slower are gone
        assert [mine] == list(world.buffers.list().buffers)
        assert list(world.memory.channels.queues) == [mine.queue]
        states = {row.batch_id: row.state for row in world.memory.batches._rows.values()}
        assert states.pop(mine.batch_id) is State.OPEN
        assert list(states.values()) == [State.CANCELLED]

    def test_a_definition_without_a_queue_leaves_no_batch_behind(self) -> None:
        world = World()

        def refuse(*at: str) -> None:
            if at == ("queues.create", "before"):
                raise Throttled("too many queues are made; try again")

        world.on_step = refuse
        with pytest.raises(Throttled):
            world.fresh().define("jobs", 2)

        assert [row.state for row in world.memory.batches._rows.values()] == [State.CANCELLED]
        assert world.buffers.list().buffers == ()

    def test_a_process_that_looked_at_a_buffer_being_deleted_puts_nothing_in(self, world: World) -> None:
        # Given a process that dies in the middle of a deletion, before the buffer's batch has ended
        def die(*at: str) -> None:
            if at == ("batches.end", "before"):
                raise Crash

        world.on_step = die
        with pytest.raises(Crash):
            world.buffers.delete("jobs")
        world.on_step = lambda *_: None

        # Then it refuses work, and so does every other
        for buffers in (world.buffers, world.fresh()):
            for key in (None, "order-7"):
                with pytest.raises(BufferNotFound):
                    buffers.put("jobs", ["a"], key=key)


class TestQueueOfAnother:
    def test_is_refused(self, world: World) -> None:
        world.memory.channels.queues["https://mine"] = []
        world.buffers.define("renders", 2, queue="https://mine")
        owned = world.buffers.list().buffers[0].queue

        for queue in ("https://mine", owned):
            with pytest.raises(InvalidRequest, match="a queue of its own"):
                world.buffers.define("thumbnails", 2, queue=queue)

        assert [one.name for one in world.buffers.list().buffers] == ["jobs", "renders"]

    def test_may_be_taken_over_when_that_was_deleted(self, world: World) -> None:
        world.memory.channels.queues["https://mine"] = []
        world.buffers.define("renders", 2, queue="https://mine")
        world.buffers.delete("renders")

        world.buffers.define("thumbnails", 2, queue="https://mine")
        world.buffers.define("thumbnails", 3, queue="https://mine")

    def test_is_refused_while_two_are_defined_at_once(self, world: World) -> None:
        # Given two buffers that are defined with one queue, each after both have looked at the others
        world.memory.channels.queues["https://mine"] = []
        refused: list[str] = []

        def other(*at: str) -> None:
            if at == ("directory.page", "after"):
                world.on_step = lambda *_: None
                with pytest.raises(Throttled, match="renders is being defined with queue https://mine"):
                    world.fresh().define("thumbnails", 2, queue="https://mine")
                refused.append("thumbnails")

        world.on_step = other
        world.fresh().define("renders", 2, queue="https://mine")

        # Then the second gets it neither at once nor later
        assert refused
        with pytest.raises(InvalidRequest, match="belongs to buffer renders"):
            world.fresh().define("thumbnails", 2, queue="https://mine")
        assert [one.name for one in world.buffers.list().buffers] == ["jobs", "renders"]

    def test_of_an_earlier_version_without_a_claim_is_refused_too(self, world: World) -> None:
        world.memory.channels.queues["https://mine"] = []
        world.buffers.define("renders", 2, queue="https://mine")
        world.memory.directory._namespaces.pop("/buffer-queues")

        with pytest.raises(InvalidRequest, match="belongs to buffer renders"):
            world.fresh().define("thumbnails", 2, queue="https://mine")

    def test_is_found_among_many(self, world: World, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(limits, "MAX_PAGE", 2)
        for number in range(5):
            world.buffers.define(f"x{number}", 2)

        with pytest.raises(InvalidRequest, match="belongs to buffer x4"):
            world.buffers.define("y", 2, queue=world.buffers.status("x4").buffer.queue)


def test_a_receipt_of_another_buffer_frees_and_removes_nothing(world: World) -> None:
    world.buffers.define("others", 2)
    world.buffers.put("others", ["theirs"])
    (work,) = world.buffers.take("others")

    released = world.buffers.done("jobs", [work.receipt])

    assert (released.done, released.late) == (0, 1)
    assert world.buffers.status("others").pending == 1
    world.clock.advance(DAY_MS)
    assert [one.payload for one in world.buffers.take("others")] == ["theirs"]


def test_a_process_that_remembers_a_deleted_buffer_finishes_work_of_the_new_one(world: World) -> None:
    # Given a process that has just read the buffer, which is then deleted and defined again
    behind = world.fresh()
    world.buffers.put("jobs", ["old"])
    (old,) = behind.take("jobs")
    world.buffers.delete("jobs")
    world.buffers.define("jobs", 3)
    world.buffers.put("jobs", ["new"])
    (work,) = world.buffers.take("jobs")

    # When it is given a receipt of the new buffer's work beside one of the old
    released = behind.done("jobs", [old.receipt, work.receipt])

    # Then that work is done
    assert (released.done, released.late) == (1, 1)
    assert world.buffers.status("jobs").pending == 0


def test_a_process_that_remembers_a_deleted_buffer_puts_into_the_new_one(world: World) -> None:
    behind = world.fresh()
    behind.status("jobs")
    world.buffers.delete("jobs")
    world.buffers.define("jobs", 3)

    behind.put("jobs", ["a"])

    assert [one.payload for one in world.buffers.take("jobs")] == ["a"]


def test_a_receipt_of_a_batch_that_is_gone_is_late(world: World) -> None:
    world.buffers.put("jobs", ["a"])
    (work,) = world.buffers.take("jobs")
    world.memory.batches._rows.clear()

    released = world.fresh().done("jobs", [work.receipt])

    assert (released.done, released.late) == (0, 1)


def test_a_take_waits_no_longer_than_it_was_asked_to(world: World) -> None:
    # Given void messages that come one by one, while a consumer waits
    world.buffers.put("jobs", ["a", "b", "c"])
    work = world.buffers.take("jobs", most=3, visibility_timeout=1)
    world.buffers._ledger.ack([receipts.read(one.receipt).item for one in work])
    receive, waits = world.memory.queues.receive, list[int]()

    def slow(queue: str, *, most: int, wait: int, visibility_timeout: int | None) -> list[Received]:
        waits.append(wait)
        world.clock.advance(max(1, wait - 1) * 1000)
        return receive(queue, most=1, wait=wait, visibility_timeout=visibility_timeout)

    world.memory.queues.receive = slow  # type: ignore[method-assign]
    started = world.clock.now()
    assert world.fresh().take("jobs", most=1, wait=20) == []

    assert max(waits) > 10
    assert sum(waits) <= 20
    assert world.clock.now() - started <= 20_000 + SIFT_MS


class TestUnreadable:
    """A record that cannot be read concerns its own buffer only."""

    @pytest.fixture(
        params=[{"limit": 3}, {"marks": 7}, {"marks": [[1]]}, {"batch_id": "x"}, {}],
        ids=["fields are missing", "marks of a wrong type", "half a mark", "a text as id", "empty"],
    )
    def world(self, request: pytest.FixtureRequest) -> World:
        """A world with a readable buffer, and one whose record is damaged."""
        world = World()
        for name in ("broken", "jobs"):
            world.buffers.define(name, 3)
        record = world.memory.directory.read("/buffers", ["broken"])["broken"]
        value = {**record.value, **request.param} if len(request.param) == 1 else {}
        if request.param == {"limit": 3}:
            value = {"limit": 3, "queue": record.value["queue"]}
        world.memory.directory.put("/buffers", "broken", value, expires_at=record.expires_at)
        return world

    def test_is_set_aside_in_a_list(self, world: World) -> None:
        page = world.fresh().list()

        assert [one.name for one in page.buffers] == ["jobs"]
        assert page.unreadable == ("broken",)

    def test_hinders_no_other_buffer(self, world: World) -> None:
        world.memory.channels.queues["https://mine"] = []

        world.fresh().define("renders", 2, queue="https://mine")
        world.fresh().define("thumbnails", 2)

        assert len(world.fresh().list().buffers) == 3

    def test_is_an_error_of_its_buffer_and_is_not_written_over(self, world: World) -> None:
        before = world.memory.directory.read("/buffers", ["broken"])
        for call in (
            lambda: world.fresh().define("broken", 3),
            lambda: world.fresh().put("broken", ["a"]),
            lambda: world.fresh().status("broken"),
            lambda: world.fresh().delete("broken"),
        ):
            with pytest.raises(BufferNotFound, match="the record of buffer broken cannot be read"):
                call()

        assert world.memory.directory.read("/buffers", ["broken"]) == before


def test_the_queue_of_a_buffer_whose_record_cannot_be_read_is_still_its_own(world: World) -> None:
    record = world.memory.directory.read("/buffers", ["jobs"])["jobs"]
    damaged = {"queue": record.value["queue"]}
    world.memory.directory.put("/buffers", "jobs", damaged, expires_at=record.expires_at)

    with pytest.raises(InvalidRequest, match="belongs to buffer jobs"):
        world.fresh().define("thumbnails", 2, queue=record.value["queue"])


def test_a_change_of_the_limit_that_dies_half_way_holds_from_the_next_put_on(world: World) -> None:
    # Given a process that dies after it noted the new limit, and before it closed the batch of the old one
    def die(call: str, moment: str) -> None:
        if (call, moment) == ("batches.close", "before"):
            world.on_step = lambda _call, _moment: None
            raise Crash

    world.on_step = die
    with pytest.raises(Crash):
        world.fresh().define("jobs", 5)

    # Then as much goes in as the buffer says
    buffers = world.fresh()
    assert buffers.list().buffers[0].limit == 5
    assert len(buffers.put("jobs", ["a", "b", "c", "d", "e"]).items) == 5


def test_a_poll_does_not_wait(world: World) -> None:
    receive, waits = world.memory.queues.receive, list[int]()

    def noted(queue: str, *, most: int, wait: int, visibility_timeout: int | None) -> list[Received]:
        waits.append(wait)
        return receive(queue, most=most, wait=wait, visibility_timeout=visibility_timeout)

    world.memory.queues.receive = noted  # type: ignore[method-assign]
    assert world.fresh().poll("jobs", waiter="0123456789abcdef", waits=20) == []

    assert set(waits) == {0}


def test_the_waiter_of_a_poll_counts_until_it_gets_work(world: World) -> None:
    # Given a waiter that polls an empty buffer
    assert world.buffers.poll("jobs", waiter="0123456789abcdef", waits=20) == []
    assert world.buffers.poll("jobs", waiter="0123456789abcdef") == []
    # Then it counts as one consumer, until its time is over
    assert world.buffers.status("jobs").count == -1
    world.clock.advance(26_000)
    assert world.buffers.status("jobs").count == 0
    # And it counts no longer once it has work
    world.buffers.poll("jobs", waiter="0123456789abcdef", waits=20)
    assert world.buffers.put("jobs", ["a"]).outcome is Outcome.READY
    (work,) = world.buffers.poll("jobs", waiter="0123456789abcdef")
    assert work.payload == "a"
    world.buffers.done("jobs", [work.receipt])
    assert world.buffers.status("jobs").count == 0


@pytest.mark.parametrize("error", [Throttled("busy"), ServiceUnavailable("away")])
def test_work_reaches_its_taker_although_its_record_as_a_waiter_cannot_be_removed(
    world: World, error: Exception
) -> None:
    # Given a waiter, work, and a table that refuses to remove the waiter
    world.buffers.poll("jobs", waiter="0123456789abcdef", waits=20)
    world.buffers.put("jobs", ["a"])

    def refuse(call: str, moment: str) -> None:
        if (call, moment) == ("directory.delete", "before"):
            raise error

    world.on_step = refuse

    # Then the waiter gets the work, which would otherwise come again only after its visibility timeout
    (work,) = world.buffers.poll("jobs", waiter="0123456789abcdef")
    assert work.payload == "a"
    assert world.buffers.done("jobs", [work.receipt]).done == 1


def test_nobody_gets_the_slots_of_anothers_key_by_guessing_how_they_are_named(world: World) -> None:
    # Given a key that A has used, B's key of the same text, and A's guess at the key of B's slots
    a, b = Principal("a", "iam a"), Principal("b", "iam b")
    world.buffers.put("jobs", ["a"], key="order-7", caller=a)
    other = IdempotencyKey.of("order-7", b).other
    guess = f"key {put_keys._digest(other)}"
    taken = world.buffers.put("jobs", ["guess"], key=guess, caller=a)

    put = world.buffers.put("jobs", ["b"], key="order-7", caller=b)

    assert not set(put.items) & set(taken.items)
    assert world.buffers.put("jobs", ["b"], key="order-7", caller=b).items == put.items
