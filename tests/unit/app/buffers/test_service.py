"""Bounded buffers: what is accepted, what is rejected, and what happens when somebody dies."""

from functools import partial

import pytest

from fanin.app.buffers import service
from fanin.app.buffers.records import GRAVE, BufferRecords
from fanin.app.buffers.service import BufferService, claimed
from fanin.app.buffers.slots import LIFETIME, RENEWAL
from fanin.app.ports.queues import Outgoing, Received
from fanin.domain import limits
from fanin.domain.access import Principal
from fanin.domain.batch import State
from fanin.domain.buffer import PutOutcome
from fanin.errors import (
    BufferNotFound,
    ChannelRefused,
    InvalidItemId,
    InvalidRequest,
    LimitReached,
    RequestTooLarge,
    ServiceUnavailable,
    Throttled,
)
from tests.lost_answers import LostAnswers
from tests.unit.app.buffers.conftest import Town
from tests.unit.app.conftest import Crash, World

MINE = "https://mine"
WAITER = "0123456789abcdef"


@pytest.fixture
def buffers(world: World, town: Town) -> BufferService:
    """A process that has defined the buffer ``jobs``, in a world with a queue of somebody's own."""
    world.memory.channels.queues[MINE] = []
    buffers = town.process()
    buffers.define("jobs", 3)
    return buffers


def anew(town: Town, *, queue: str | None = None) -> None:
    """Another process deletes the buffer, defines it anew and puts work in."""
    other = town.process()
    other.delete("jobs")
    other.define("jobs", 2, queue=queue)
    other.put("jobs", ["theirs"])


def fail(error: Exception) -> None:
    raise error


def states(world: World) -> list[State]:
    """The states of all batches, the oldest first."""
    return [row.state for row in world.memory.batches._rows.values()]


def watched(world: World) -> list[int]:
    """How long each receive from a queue would wait, from now on; it takes a second."""
    receive, waits = world.memory.queues.receive, list[int]()

    def noted(queue: str, *, most: int, wait: int, visibility_timeout: int | None) -> list[Received]:
        waits.append(wait)
        world.clock.advance(1_000)
        return receive(queue, most=most, wait=wait, visibility_timeout=visibility_timeout)

    world.memory.queues.receive = noted
    return waits


def test_work_is_taken_as_it_was_put_and_done_once(world, town, buffers):
    # Given a buffer with work
    accepted = buffers.put("jobs", ["a", "b"])
    assert accepted.outcome is PutOutcome.WAITING
    assert len(set(accepted.items)) == 2
    world.clock.advance(1_500)
    # When another process takes it, and gives it back twice
    taker = town.process()
    work = taker.take("jobs", most=10)
    first = taker.done("jobs", [one.receipt for one in work])
    again = taker.done("jobs", [one.receipt for one in work])
    # Then it was done once, and the second time is no error
    assert [(one.payload, one.waited_ms) for one in work] == [("a", 1_500), ("b", 1_500)]
    assert (first.done, first.late) == (2, 0)
    assert (again.done, again.late) == (0, 2)
    assert town.messages() == []


def test_a_put_is_accepted_whole_or_rejected_whole(town, buffers):
    buffers.put("jobs", ["a", "b"])

    with pytest.raises(LimitReached, match="buffer jobs has 2 items pending of at most 3") as rejected:
        buffers.put("jobs", ["c", "d"])

    assert rejected.value.retry_after == 1
    assert buffers.status("jobs").pending == 2
    buffers.put("jobs", ["c"])
    assert town.take() == ["a", "b", "c"]


def test_status_counts_what_waits_and_below_zero_who_waits(town, buffers):
    # Given two slots in use, of which one is taken
    buffers.put("jobs", ["a", "b"])
    buffers.take("jobs")
    level = buffers.status("jobs")
    assert (level.count, level.pending, level.taken, level.buffer.limit) == (1, 2, 1, 3)
    # When all is taken, and a consumer that has found nothing waits
    buffers.take("jobs")
    waiting: list[int] = []
    town.world.at("queues.receive", "before", lambda: None)
    town.world.at("queues.receive", "before", lambda: waiting.append(town.process().status("jobs").count))
    assert buffers.take("jobs") == []
    # Then the count says so, while it waits
    assert waiting == [-1]
    assert buffers.status("jobs").count == 0


def test_a_put_is_ready_when_a_consumer_waits_already(town, buffers):
    # Given a consumer that found nothing, and waits
    outcomes: list[PutOutcome] = []
    town.world.at(
        "directory.put", "after", lambda: outcomes.append(town.process().put("jobs", ["a"]).outcome)
    )
    work = buffers.take("jobs")
    # Then the put that came meanwhile was ready, and the consumer has the work
    assert outcomes == [PutOutcome.READY]
    assert [one.payload for one in work] == ["a"]
    assert buffers.put("jobs", ["b"]).outcome is PutOutcome.WAITING


def test_work_that_is_done_is_not_taken_again_though_its_message_stayed(town, buffers):
    # Given a taker that dies between marking its work done and removing the message
    buffers.put("jobs", ["a", "b"])
    (work,) = buffers.take("jobs")
    town.die("queues.remove", "before", lambda taker: taker.done("jobs", [work.receipt]))
    # When the message comes again, then nobody gets it, and it is gone
    assert buffers.status("jobs").pending == 1
    assert town.take() == ["b"]
    assert town.messages() == []


def test_the_limit_changes_when_all_that_was_in_is_done(town, buffers):
    # Given work in a buffer whose limit grows
    buffers.put("jobs", ["a"])
    assert not buffers.status("jobs").draining
    assert buffers.define("jobs", 5).limit == 5
    with pytest.raises(LimitReached, match="until the 1 items in it are done"):
        buffers.put("jobs", ["b"])
    assert buffers.status("jobs").draining
    # When the work is done, then the next put has the new limit
    town.take()
    buffers.put("jobs", list("bcdef"))
    with pytest.raises(LimitReached, match="5 items pending of at most 5"):
        town.process().put("jobs", ["g"])


def test_a_change_of_the_limit_that_dies_half_way_holds_from_the_next_put_on(town, buffers):
    # Given a process that dies after it noted the new limit, and before it closed the batch of the old one
    town.die("batches.close", "before", lambda other: other.define("jobs", 5))
    # Then as much goes in as the buffer says
    other = town.process()
    assert other.list().buffers[0].limit == 5
    assert len(other.put("jobs", ["a", "b", "c", "d", "e"]).items) == 5


def test_a_buffer_outlives_its_batch(world, town, buffers):
    # Given work that is put in when the batch is nearly as old as a batch can be
    before = buffers.list().buffers[0]
    world.clock.advance((LIFETIME - RENEWAL) * 1000 - 1)
    buffers.put("jobs", ["a"])
    # When a moment passes, then the buffer drains, and goes on with another
    world.clock.advance(1)
    with pytest.raises(LimitReached):
        buffers.put("jobs", ["b"])
    assert town.take() == ["a"]
    buffers.put("jobs", ["b"])
    assert buffers.list().buffers[0].batch_id != before.batch_id
    assert states(world) == [State.COMPLETE, State.OPEN]


def test_a_deletion_that_died_goes_on_where_it_stopped(world, town):
    for name in town.die_at_every_step(
        lambda name: town.process().define(name, 1), lambda buffers, name: buffers.delete(name)
    ):
        town.process().delete(name)

        assert town.process().list().buffers == ()
        assert world.memory.channels.queues == {}


def test_a_buffer_may_have_a_queue_of_ones_own(world, buffers):
    mine = buffers.define("own", 2, queue=MINE)
    assert (mine.queue, mine.owned) == (MINE, False)
    with pytest.raises(InvalidRequest, match="another queue"):
        buffers.define("jobs", 3, queue=MINE)
    with pytest.raises(ChannelRefused):
        buffers.define("other", 2, queue="https://none")

    # What others send there is left alone, and the queue outlives the buffer
    world.memory.channels.send([Outgoing(MINE, "foreign", {})])
    buffers.put("own", ["a"])
    assert [work.payload for work in buffers.take("own", most=10)] == ["a"]
    buffers.delete("own")
    assert MINE in world.memory.channels.queues


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda buffers: buffers.define("a b", 1), "'a b' is not a name for a buffer"),
        (lambda buffers: buffers.define("x", 0), "limit must be a whole number from 1 to 1000000, not"),
        (lambda buffers: buffers.put("jobs", []), "no payloads were given"),
        (lambda buffers: buffers.put("jobs", ["\0"], key="order-7"), "payload 0"),
        (lambda buffers: buffers.put("jobs", ["a"] * 11), "11 payloads"),
        (lambda buffers: buffers.take("jobs", most=0), "most must be a whole number from 1 to 10, not"),
        (lambda buffers: buffers.take("jobs", wait=-1), "wait must be a whole number from 0 to 20, not"),
        (
            lambda buffers: buffers.take("jobs", visibility_timeout=0),
            "visibility_timeout must be a whole number from 1 to 43200, not",
        ),
        (lambda buffers: buffers.done("jobs", ["nonsense"]), "receipt 'nonsense' is not one"),
        (lambda buffers: buffers.done("jobs", ["r"] * 101), "101 receipts in one call; send at most 100"),
        (lambda buffers: buffers.list(limit=0), "limit must be a whole number from 1 to 1000, not"),
    ],
)
def test_a_refusal_names_what_is_wrong_and_nothing_is_made(world, buffers, call, message):
    written, queues = world.accesses.writes.total(), set(world.memory.channels.queues)

    with pytest.raises((InvalidRequest, RequestTooLarge), match=f"^{message}"):
        call(buffers)

    assert world.accesses.writes.total() == written
    assert set(world.memory.channels.queues) == queues


def test_a_call_that_others_overtake_each_time_is_asked_to_come_again(buffers, monkeypatch):
    stored = buffers._records.read("jobs")
    monkeypatch.setattr(buffers._records, "write", lambda _: (stored, False))

    with pytest.raises(Throttled, match="try again"):
        buffers.define("jobs", 5)
    with pytest.raises(Throttled, match="try again"):
        buffers.delete("jobs")


class TestReceipts:
    def test_that_are_forged_free_no_slot(self, buffers):
        (item,) = buffers.put("jobs", ["a"]).items
        group = item.split(":")[1]
        forged = service.write_receipt(item.replace(group, group[:-4] + "0000"), "delivery-1")

        with pytest.raises(InvalidItemId):
            buffers.done("jobs", [forged])
        assert buffers.status("jobs").pending == 1

    def test_of_a_batch_that_is_gone_are_late(self, world, town, buffers):
        buffers.put("jobs", ["a"])
        (work,) = buffers.take("jobs")
        world.memory.batches._rows.clear()

        released = town.process().done("jobs", [work.receipt])

        assert (released.done, released.late) == (0, 1)

    def test_of_a_new_buffer_count_for_a_process_that_remembers_the_old_one(self, town, buffers):
        # Given a process that has just read the buffer, which is then deleted and defined again
        behind = town.process()
        buffers.put("jobs", ["old"])
        (old,) = behind.take("jobs")
        buffers.delete("jobs")
        buffers.define("jobs", 3)
        buffers.put("jobs", ["new"])
        (work,) = buffers.take("jobs")
        # When it is given a receipt of the new buffer's work beside one of the old
        released = behind.done("jobs", [old.receipt, work.receipt])

        assert (released.done, released.late) == (1, 1)
        assert buffers.status("jobs").pending == 0


class TestLostAnswers:
    """The SDK repeats a write whose answer was lost, and meets what it wrote, or what others made of it."""

    def test_a_deletion_leaves_a_buffer_alone_that_was_defined_anew_meanwhile(self, world, town, buffers):
        LostAnswers(world.memory).lose("directory.put", lambda: anew(town))
        buffers.delete("jobs")

        assert town.take() == ["theirs"]

    def test_a_buffer_that_was_defined_and_deleted_since_stays_deleted(self, world, town):
        LostAnswers(world.memory).lose("directory.put", lambda: town.process().delete("jobs"))

        town.process().define("jobs", 3)

        assert town.process().list().buffers == ()


class TestSlowCalls:
    """A call that has read a buffer which is deleted, and defined anew, while it works."""

    @pytest.mark.parametrize(
        ("call", "moment"),
        [("channels.send", "after"), ("directory.page", "before"), ("batches.allocate", "after")],
    )
    def test_a_put_does_not_write_over_the_new_buffer(self, town, call, moment):
        # Given a put into a buffer on a queue that outlives it
        town.world.memory.channels.queues[MINE] = []
        town.process().define("jobs", 3, queue=MINE)
        town.world.at(call, moment, lambda: anew(town, queue=MINE))
        town.process().put("jobs", ["mine"])

        assert town.process().list().buffers[0].limit == 2
        assert "theirs" in town.take()

    @pytest.mark.parametrize(("call", "moment"), [("batches.end", "after"), ("queues.delete", "before")])
    def test_a_deletion_does_not_delete_the_queue_of_the_new_buffer(self, world, town, buffers, call, moment):
        world.at(call, moment, lambda: anew(town))
        buffers.delete("jobs")

        assert town.take() == ["theirs"]

    def test_a_definition_that_comes_too_late_leaves_nothing_behind(self, world, town):
        # Given two processes that define a buffer at once
        world.at("queues.create", "after", lambda: town.process().define("jobs", 2))
        mine = town.process().define("jobs", 2)
        # Then both have one, and the queue and the batch of the slower are gone
        assert [mine] == list(town.process().list().buffers)
        assert list(world.memory.channels.queues) == [mine.queue]
        assert world.memory.batches._rows[mine.batch_id].state is State.OPEN
        assert sorted(states(world)) == [State.CANCELLED, State.OPEN]

    def test_a_definition_without_a_queue_leaves_no_batch_behind(self, world, town):
        world.at("queues.create", "before", lambda: fail(Throttled("too many queues are made; try again")))
        with pytest.raises(Throttled):
            town.process().define("jobs", 2)

        assert states(world) == [State.CANCELLED]
        assert town.process().list().buffers == ()

    def test_a_process_that_looked_at_a_buffer_being_deleted_puts_nothing_in(self, town, buffers):
        # Given a process that dies in the middle of a deletion, before the buffer's batch has ended
        behind = town.process()
        town.die("batches.end", "before", lambda _: behind.delete("jobs"))
        # Then it refuses work, and so does every other
        for process in (behind, town.process()):
            for key in (None, "order-7"):
                with pytest.raises(BufferNotFound):
                    process.put("jobs", ["a"], key=key)


class TestQueueOfAnother:
    def test_is_refused(self, buffers):
        buffers.define("renders", 2, queue=MINE)
        owned = buffers.list().buffers[0].queue

        for queue in (MINE, owned):
            with pytest.raises(InvalidRequest, match="a queue of its own"):
                buffers.define("thumbnails", 2, queue=queue)

        assert [one.name for one in buffers.list().buffers] == ["jobs", "renders"]

    def test_may_be_taken_over_when_that_was_deleted(self, buffers):
        buffers.define("renders", 2, queue=MINE)
        buffers.delete("renders")

        buffers.define("thumbnails", 2, queue=MINE)
        buffers.define("thumbnails", 3, queue=MINE)

    def test_is_refused_while_two_are_defined_at_once(self, town, buffers):
        # Given two buffers that are defined with one queue, each after both have looked at the others
        def other() -> None:
            with pytest.raises(Throttled, match=f"renders is being defined with queue {MINE}"):
                town.process().define("thumbnails", 2, queue=MINE)

        town.world.at("directory.page", "after", other)
        buffers.define("renders", 2, queue=MINE)
        # Then the second gets it neither at once nor later
        assert town.world.happened
        with pytest.raises(InvalidRequest, match="belongs to buffer renders"):
            town.process().define("thumbnails", 2, queue=MINE)
        assert [one.name for one in buffers.list().buffers] == ["jobs", "renders"]

    def test_is_found_among_many(self, buffers, monkeypatch):
        monkeypatch.setattr(limits, "MAX_PAGE", 2)
        for number in range(5):
            buffers.define(f"x{number}", 2)

        with pytest.raises(InvalidRequest, match="belongs to buffer x4"):
            buffers.define("y", 2, queue=buffers.status("x4").buffer.queue)


class TestUnreadable:
    """A record that cannot be read concerns its own buffer only."""

    QUEUE = "https://broken"

    @pytest.fixture(autouse=True)
    def _broken(self, world: World, buffers: BufferService) -> None:
        """A readable buffer, and one whose record is damaged but for its queue."""
        world.memory.channels.queues[self.QUEUE] = []
        buffers.define("broken", 3, queue=self.QUEUE)
        record = world.memory.directory.read("/buffers", ["broken"])["broken"]
        world.memory.directory.put("/buffers", "broken", {"queue": self.QUEUE}, expires_at=record.expires_at)

    def test_is_set_aside_in_a_list_and_hinders_no_other_buffer(self, town):
        town.process().define("renders", 2, queue=MINE)
        town.process().define("thumbnails", 2)

        page = town.process().list()
        assert [one.name for one in page.buffers] == ["jobs", "renders", "thumbnails"]
        assert page.unreadable == ("broken",)

    def test_keeps_its_queue(self, town):
        with pytest.raises(InvalidRequest, match="belongs to buffer broken"):
            town.process().define("thumbnails", 2, queue=self.QUEUE)

    def test_is_an_error_of_its_buffer_and_is_not_written_over(self, world, town):
        before = world.memory.directory.read("/buffers", ["broken"])
        for call in (
            lambda: town.process().define("broken", 3),
            lambda: town.process().put("broken", ["a"]),
            lambda: town.process().status("broken"),
            lambda: town.process().delete("broken"),
        ):
            with pytest.raises(BufferNotFound, match="the record of buffer broken cannot be read"):
                call()

        assert world.memory.directory.read("/buffers", ["broken"]) == before


@pytest.mark.parametrize(("wait", "waits"), [(0, [0]), (1, [1, 1]), (2, [1, 1]), (20, [1, 19])])
def test_a_take_waits_no_longer_than_it_was_asked_to(world, buffers, wait, waits):
    """It says that it waits when it has found nothing for a second."""
    waited = watched(world)

    assert buffers.take("jobs", wait=wait) == []
    assert waited == waits


class TestPoll:
    def test_does_not_wait(self, world, buffers):
        waits = watched(world)
        assert buffers.poll("jobs", waiter=WAITER, waits=20) == []

        assert waits == [0]

    def test_counts_its_waiter_until_it_gets_work(self, world, buffers):
        # Given a waiter that polls an empty buffer
        assert buffers.poll("jobs", waiter=WAITER, waits=20) == []
        assert buffers.poll("jobs", waiter=WAITER) == []
        # Then it counts as one consumer, until its time is over
        assert buffers.status("jobs").count == -1
        world.clock.advance(26_000)
        assert buffers.status("jobs").count == 0
        # And it counts no longer once it has work
        buffers.poll("jobs", waiter=WAITER, waits=20)
        assert buffers.put("jobs", ["a"]).outcome is PutOutcome.READY
        (work,) = buffers.poll("jobs", waiter=WAITER)
        assert work.payload == "a"
        buffers.done("jobs", [work.receipt])
        assert buffers.status("jobs").count == 0

    @pytest.mark.parametrize("error", [Throttled("busy"), ServiceUnavailable("away")])
    def test_brings_work_although_the_record_of_its_waiter_cannot_be_removed(self, world, buffers, error):
        # Given a waiter, work, and a table that refuses to remove the waiter
        buffers.poll("jobs", waiter=WAITER, waits=20)
        buffers.put("jobs", ["a"])
        world.at("directory.delete", "before", lambda: fail(error))
        # Then the waiter gets the work, which would otherwise come again only after its visibility timeout
        (work,) = buffers.poll("jobs", waiter=WAITER)
        assert world.happened
        assert work.payload == "a"
        assert buffers.done("jobs", [work.receipt]).done == 1


def test_nobody_gets_the_slots_of_anothers_key(buffers):
    # Given a key that A has used, and B's key of the same text
    a, b = Principal("a", "iam a"), Principal("b", "iam b")
    taken = buffers.put("jobs", ["a"], key="order-7", caller=a)

    put = buffers.put("jobs", ["b"], key="order-7", caller=b)

    assert not set(put.items) & set(taken.items)
    assert buffers.put("jobs", ["b"], key="order-7", caller=b).items == put.items


QUEUE = "https://mine"


@pytest.fixture
def claims(world: World) -> partial:
    return partial(claimed, world.ports, BufferRecords(world.ports))


def hold_and_die(world: World, claims: partial, name: str) -> None:
    world.crash_at("directory.delete", "before")
    with pytest.raises(Crash), claims(QUEUE, name):
        pass


def test_a_claim_keeps_others_away_until_it_is_released(claims):
    with claims(QUEUE, "jobs"):
        with pytest.raises(Throttled, match="jobs is being defined"), claims(QUEUE, "others"):
            pass
        with claims("https://another", "others"):
            pass

    with claims(QUEUE, "others"):
        pass


def test_a_claim_is_released_after_an_error(claims):
    with pytest.raises(ValueError, match="x"), claims(QUEUE, "jobs"):
        raise ValueError("x")

    with claims(QUEUE, "others"):
        pass


def test_whoever_died_holds_up_others_for_an_hour_and_itself_not_at_all(world, claims):
    # Given a process that dies with a claim
    hold_and_die(world, claims, "jobs")

    world.clock.advance(GRAVE * 1000 - 1000)
    with pytest.raises(Throttled), claims(QUEUE, "others"):
        pass
    world.clock.advance(1000)
    with claims(QUEUE, "others"):
        pass
    # But a repeat for the same buffer does not
    hold_and_die(world, claims, "jobs")
    with claims(QUEUE, "jobs"):
        pass
    with claims(QUEUE, "others"):
        pass


def test_a_claim_that_was_renewed_is_not_released_by_the_first_who_had_it(world, claims):
    # Given two calls that define the same buffer, of which the first ends first
    first, second = claims(QUEUE, "jobs"), claims(QUEUE, "jobs")
    first.__enter__()
    second.__enter__()
    first.__exit__(None, None, None)
    # Then the claim of the second still holds
    with pytest.raises(Throttled), claims(QUEUE, "others"):
        pass
    second.__exit__(None, None, None)
    with claims(QUEUE, "others"):
        pass


@pytest.mark.parametrize("call", ["directory.put", "directory.delete"])
def test_a_claim_whose_answer_was_lost_is_held_and_released(world, claims, call):
    LostAnswers(world.memory).lose(call, lambda: None)

    with claims(QUEUE, "jobs"), pytest.raises(Throttled), claims(QUEUE, "others"):
        pass

    with claims(QUEUE, "others"):
        pass


def test_a_buffer_is_defined_once_and_deleted_once(world, town, buffers):
    again = town.process().define("jobs", 3)
    assert again == buffers.list().buffers[0]
    assert again.owned

    buffers.delete("jobs")
    buffers.delete("jobs")

    assert buffers.list().buffers == ()
    assert again.queue not in world.memory.channels.queues
    for call in (buffers.status, buffers.take, lambda name: buffers.put(name, ["a"])):
        with pytest.raises(BufferNotFound, match="jobs"):
            call("jobs")
    buffers.define("jobs", 1)
    buffers.put("jobs", ["new"])
    assert town.take() == ["new"]


def test_a_claim_that_is_released_between_two_tries_is_taken_anew(world, claims):
    # Given a claim of the same buffer, which is released when this process has just seen it
    hold_and_die(world, claims, "jobs")
    put = world.memory.directory.put
    tries = []

    def released_in_between(*args: object, if_version: int, **named: object) -> object:
        tries.append(if_version)
        if len(tries) == 2:
            world.memory.directory.delete(args[0], args[1], if_version=if_version)
        return put(*args, if_version=if_version, **named)

    world.memory.directory.put = released_in_between

    with claims(QUEUE, "jobs"):
        pass
    # Then it takes the place that is free, at its third try
    assert tries[0] == tries[2] == 0
    assert len(tries) == 3
