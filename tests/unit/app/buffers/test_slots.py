"""The slots of a buffer: taken, given up when leaked, and moved to a new batch.

What became of work: finished, pending, dropped by the service, or of a batch that is gone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from fanin.app.buffers.records import BufferRecords, WorkEntry
from fanin.app.buffers.slots import (
    LIFETIME,
    LOST,
    MARGIN_MS,
    MARKS,
    RENEWAL,
    SEND_MS,
    TRIES,
    Slots,
    WorkState,
    renew_at,
)
from fanin.app.fresh import FRESH_MS
from fanin.domain import limits
from fanin.domain.batch import RETENTION, Kind, State
from fanin.domain.buffer import Buffer
from fanin.domain.marks import WEIGHT, Failure, GivenUp
from fanin.errors import BatchClosed, BatchNotFound, BufferNotFound, LimitReached, Throttled
from tests.lost_answers import LostAnswers
from tests.unit.app.conftest import Crash, World

UNKNOWN = 2**53 - 1


class Process:
    """One process, with the slots of the buffer ``jobs``."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.clock = world.clock
        self.ledger = world.fresh()
        self.records = BufferRecords(world.ports)
        self.slots = Slots(world.ports, self.ledger, self.records)

    def define(self, limit: int) -> WorkEntry:
        queue = self.world.ports.queues.create("jobs", 7)
        batch = self.slots.open("jobs", limit)
        buffer = Buffer("jobs", limit, queue, owned=True, batch_id=batch.batch_id)
        retention = self.world.ports.queues.state(queue).retention
        return self.write(WorkEntry(buffer, renew_at(batch), retention, born=batch.batch_id))

    def write(self, entry: WorkEntry) -> WorkEntry:
        """Write the buffer's record."""
        now, wrote = self.records.write(entry)
        assert wrote
        assert now is not None
        return now

    def marked(self, items: int) -> WorkEntry:
        """Mark the buffer, and read its record."""
        self.slots.mark(self.records.refresh("jobs"), items)
        return self.records.refresh("jobs")

    def another(self) -> Process:
        """One that starts now."""
        return Process(self.world)

    def batches(self) -> list[State]:
        """The states of all batches, the oldest first."""
        return [row.state for row in self.world.memory.batches._rows.values()]

    def pending(self, entry: WorkEntry) -> int:
        return self.slots.pending(entry.buffer)[1]


@pytest.fixture
def process(world: World) -> Process:
    return Process(world)


@pytest.fixture
def entry(process: Process) -> WorkEntry:
    return process.define(3)


def test_a_buffers_batch_lives_as_long_as_a_batch_can_and_is_never_idle(process):
    batch = process.slots.open("jobs", 3)

    assert (batch.user_key, batch.kind, batch.limit, batch.state) == ("jobs", Kind.BUFFER, 3, State.OPEN)
    assert batch.expires_at == process.clock.at // 1000 + LIFETIME + RETENTION
    assert (batch.open_idle_ttl, batch.closed_idle_ttl) == (LIFETIME, LIFETIME)
    assert renew_at(batch) == process.clock.at + (LIFETIME - RENEWAL) * 1000


def test_admit_takes_slots_up_to_the_limit_and_again_when_their_items_are_done(process, entry):
    seen, group = process.slots.admit(entry, 2)
    assert (seen, len(group), group.batch_id) == (entry, 2, entry.buffer.batch_id)

    with pytest.raises(LimitReached, match="2 items pending of at most 3"):
        process.slots.admit(entry, 2)
    assert process.pending(entry) == 2

    process.slots.admit(entry, 1)
    process.ledger.mark([group[1]]).whole()
    assert process.pending(entry) == 2

    process.slots.admit(entry, 1)
    with pytest.raises(LimitReached):
        process.slots.admit(entry, 1)


class TestTake:
    def test_reclaims_leaked_slots(self, process, entry):
        # Given slots that have no message, and a mark since
        process.slots.admit(entry, 3)
        marked = process.marked(3)
        with pytest.raises(LimitReached):
            process.slots.take(marked, entry.buffer.batch_id, 1, "order-7")
        # When no message for them can exist any more, then a key gets slots
        process.clock.advance(marked.retention * 1000 + MARGIN_MS)
        assert len(process.slots.take(marked, entry.buffer.batch_id, 1, "order-7")) == 1

    def test_closes_a_batch_that_nears_its_end(self, process, entry):
        process.clock.at = entry.renew_at

        with pytest.raises(BatchClosed):
            process.slots.take(entry, entry.buffer.batch_id, 1, "order-7")


class TestRenewal:
    def test_begins_when_the_batch_nears_its_end_and_no_sooner(self, process, entry):
        # Given work that is put in a moment before that
        process.clock.at = entry.renew_at - 1
        _, group = process.slots.admit(entry, 1)
        assert process.batches() == [State.OPEN]
        # When its time has come, then the buffer takes nothing until that work is done
        process.clock.advance(1)
        for _ in range(2):
            with pytest.raises(LimitReached, match="until the 1 items in it are done") as refused:
                process.slots.admit(entry, 1)
            assert refused.value.retry_after == 1
            assert process.batches() == [State.CLOSED]

        process.ledger.mark([group[0]]).whole()
        process.slots.admit(entry, 1)
        assert process.batches() == [State.COMPLETE, State.OPEN]

    def test_changes_the_batch_and_drops_the_marks_and_keeps_the_rest(self, process, entry):
        entry = process.marked(0)
        assert entry.marks
        process.clock.at = entry.renew_at

        renewed, group = process.slots.admit(entry, 2)

        assert renewed.buffer == replace(entry.buffer, batch_id=group.batch_id)
        assert renewed.buffer.batch_id != entry.buffer.batch_id
        assert renewed.renew_at == process.clock.at + (LIFETIME - RENEWAL) * 1000
        assert (renewed.marks, renewed.retention) == ((), entry.retention)
        assert process.another().records.refresh("jobs") == renewed

    @pytest.mark.parametrize("how", ["expired", "removed"])
    def test_follows_a_batch_that_is_gone(self, process, entry, how):
        if how == "removed":
            del process.world.memory.batches._rows[entry.buffer.batch_id]
        else:
            process.clock.advance((LIFETIME + RETENTION) * 1000)

        renewed, group = process.another().slots.admit(entry, 3)

        assert renewed.buffer.batch_id == group.batch_id != entry.buffer.batch_id

    def test_is_given_up_when_others_end_every_batch(self, process, entry):
        process.slots.cancel(entry.buffer.batch_id)
        other = process.another()
        for _ in range(TRIES):
            process.world.at(
                "directory.put",
                "after",
                lambda: other.slots.cancel(other.records.refresh("jobs").buffer.batch_id),
            )

        with pytest.raises(Throttled, match="jobs") as refused:
            process.slots.admit(entry, 1)

        assert refused.value.retry_after == 1
        assert process.batches() == [State.CANCELLED] * (TRIES + 1)

    def test_whose_answer_was_lost_keeps_the_batch_in_which_others_have_put_work(self, process, entry):
        # Given a renewal whose record is stored, and a process that goes on with it before the SDK repeats
        process.slots.cancel(entry.buffer.batch_id)
        other, theirs = process.another(), list[WorkEntry]()

        def put() -> None:
            theirs.append(other.slots.admit(entry, 1)[0])
            other.slots.mark(theirs[0], 1)

        LostAnswers(process.world.memory).lose("directory.put", put)
        mine, group = process.slots.admit(entry, 1)
        # Then both have slots of that batch
        assert mine.buffer == theirs[0].buffer
        assert group.batch_id == mine.buffer.batch_id
        assert process.batches() == [State.CANCELLED, State.OPEN]

    def test_of_a_buffer_that_is_deleted_meanwhile_ends_its_batch(self, process, entry):
        process.slots.cancel(entry.buffer.batch_id)
        other = process.another()
        process.world.at("batches.create", "after", lambda: other.write(entry._replace(going=True)))

        with pytest.raises(BufferNotFound, match="jobs"):
            process.slots.admit(entry, 1)

        assert process.batches() == [State.CANCELLED, State.CANCELLED]

    def test_completes_a_batch_whose_last_consumer_died_before_it_could(self, process, entry):
        # Given a buffer that drains, and a consumer that dies between its last bit and the end of the batch
        _, group = process.slots.admit(entry, 3)
        process.slots.follow(entry._replace(buffer=replace(entry.buffer, limit=4)))
        process.world.crash_at("words.clear", "after")
        with pytest.raises(Crash):
            process.another().ledger.mark(list(group)).whole()
        assert process.batches() == [State.CLOSED]

        renewed, _ = process.another().slots.admit(entry, 3)

        assert renewed.buffer.batch_id != entry.buffer.batch_id
        assert process.batches() == [State.COMPLETE, State.OPEN]

    def test_goes_on_where_another_change_of_the_record_came_first(self, process, entry):
        # Given a limit that changes between a renewal's batch and its record
        process.slots.cancel(entry.buffer.batch_id)
        other = process.another()
        grown = entry._replace(buffer=replace(entry.buffer, limit=4))
        process.world.at("batches.create", "after", lambda: other.write(grown))

        renewed, _ = process.slots.admit(entry, 4)

        assert renewed.buffer.limit == 4
        assert process.pending(renewed) == 4
        assert sorted(process.batches()) == [State.CANCELLED, State.CANCELLED, State.OPEN]


class TestMark:
    @pytest.mark.parametrize(("retention", "pace"), [(345_600, 34_560), (600, 60), (60, 60)])
    def test_is_made_once_in_a_tenth_of_the_retention_and_once_a_minute_at_the_most(
        self, process, entry, retention, pace
    ):
        first = process.clock.at
        process.records.write(entry._replace(retention=retention))
        process.marked(1)
        writes = process.world.accesses.writes["directory.put"]

        process.clock.advance(pace * 1000 - 1)
        assert process.marked(2).marks == ((first, 1),)
        assert process.world.accesses.writes["directory.put"] == writes
        process.clock.advance(1)
        assert process.marked(3).marks == ((first, 1), (process.clock.at, 3))

    def test_drops_the_oldest_of_too_many_and_never_tells_of_fewer_items_than_the_one_before(
        self, process, entry
    ):
        for items in (*range(MARKS + 3), 4):
            last = process.marked(items)
            process.clock.advance(entry.retention * 1000)

        assert [items for _, items in last.marks] == [*range(4, MARKS + 3), MARKS + 2]


def test_a_batch_is_cancelled_once_and_one_that_is_gone_needs_no_end(process, entry):
    for _ in range(2):
        process.slots.cancel(entry.buffer.batch_id)
        assert process.batches() == [State.CANCELLED]
    with pytest.raises(BatchNotFound):
        process.ledger.cancel(UNKNOWN)

    process.slots.cancel(UNKNOWN)
    process.clock.advance((LIFETIME + RETENTION) * 1000)
    process.slots.cancel(entry.buffer.batch_id)


class TestReclaim:
    """A put that finds the buffer full gives up the slots that no message can stand for any more."""

    @pytest.fixture
    def leaked(self, process: Process, entry: WorkEntry) -> WorkEntry:
        """A full buffer: two slots before its mark, of which one is done, and two behind it."""
        _, group = process.slots.admit(entry, 2)
        process.ledger.mark([group[1]]).whole()
        marked = process.marked(2)
        process.slots.admit(marked, 2)
        return marked

    def horizon(self, entry: WorkEntry) -> int:
        """When the slots before the first mark count as leaked."""
        return entry.marks[0][0] + entry.retention * 1000 + MARGIN_MS

    def test_gives_up_the_slots_before_a_mark_once_the_retention_has_passed(self, process, leaked):
        # Given a full buffer, a moment before
        process.clock.at = self.horizon(leaked) - 1
        with pytest.raises(LimitReached):
            process.another().slots.admit(leaked, 1)
        assert process.pending(leaked) == 3
        # When that time has come, then one slot is given up, and those behind the mark are not
        process.clock.advance(1)
        _, group = process.another().slots.admit(leaked, 1)

        batch_id = leaked.buffer.batch_id
        assert group.batch_id == batch_id
        assert process.ledger.pending(batch_id, 0, 5) == {2, 3, 4}
        (failed,) = process.ledger.failures(batch_id).failures
        assert (failed.ordinal, failed.reason) == (0, "its message is lost or expired")

    def test_is_tried_once_in_half_a_minute(self, process, leaked):
        def looks() -> int:
            before = process.world.accesses.sends["queues.state"]
            with pytest.raises(LimitReached):
                process.slots.admit(leaked, 1)
            return process.world.accesses.sends["queues.state"] - before

        assert [looks(), looks()] == [1, 0]
        process.clock.advance(FRESH_MS - 1)
        assert looks() == 0
        process.clock.advance(1)
        assert looks() == 1

    @pytest.mark.parametrize("how", ["a changed limit", "a batch near its end"])
    def test_ends_a_drain_once_the_retention_has_passed_since_it_began(self, process, entry, how):
        # Given a slot without a message, in a buffer that drains
        process.slots.admit(entry, 1)
        if how == "a changed limit":
            process.slots.follow(entry._replace(buffer=replace(entry.buffer, limit=4)))
        else:
            process.clock.at = entry.renew_at
        for wait in (0, entry.retention * 1000 + MARGIN_MS - 1):
            process.clock.advance(wait)
            with pytest.raises(LimitReached, match="until the 1 items in it are done"):
                process.another().slots.admit(entry, 1)
        # When no message can exist any more, then the buffer goes on
        process.clock.advance(1)
        renewed, _ = process.another().slots.admit(entry, 3)
        assert renewed.buffer.batch_id != entry.buffer.batch_id
        assert process.batches() == [State.COMPLETE, State.OPEN]

    def test_gives_up_many_in_calls_of_allowed_size(self, process, monkeypatch):
        entry = process.define(5)
        process.slots.admit(entry, 5)
        entry = process.marked(5)
        monkeypatch.setattr(limits, "MAX_MARKS", 2 * WEIGHT)
        process.clock.at = self.horizon(entry)

        process.slots.admit(entry, 5)

        assert len(process.ledger.failures(entry.buffer.batch_id).failures) == 5


def test_late_are_slots_under_a_mark_that_is_as_old_as_a_put_may_take(process, entry):
    _, group = process.slots.admit(entry, 2)
    _, after = process.slots.admit(entry, 1)
    marked = process.marked(2)
    process.clock.advance(SEND_MS)
    assert not process.slots.late(marked, group)

    process.clock.advance(1)
    assert process.slots.late(marked, group)
    assert not process.slots.late(marked, after)
    assert not process.slots.late(entry, group)


def test_what_is_not_done_is_pending_until_the_batch_ends(process, entry):
    _, group = process.slots.admit(entry, 3)
    process.ledger.mark([group[0]]).whole()
    batch, pending = process.slots.pending(entry.buffer)
    assert batch is not None
    assert (batch.batch_id, batch.state, pending) == (entry.buffer.batch_id, State.OPEN, 2)

    process.slots.cancel(entry.buffer.batch_id)
    batch, pending = process.slots.pending(entry.buffer)
    assert batch is not None
    assert (batch.state, pending) == (State.CANCELLED, 0)

    assert process.slots.pending(replace(entry.buffer, batch_id=UNKNOWN)) == (None, 0)
    process.clock.advance((LIFETIME + RETENTION) * 1000)
    assert process.slots.pending(entry.buffer) == (None, 0)


FINISHED, PENDING, DROPPED, UNKNOWN = WorkState


def states(world: World, items: Sequence[str]) -> list[WorkState]:
    slots = Slots(world.ports, world.fresh(), BufferRecords(world.ports))
    return list(slots.states(items).values())


@pytest.mark.parametrize(("failure", "state"), [(Failure, FINISHED), (GivenUp, DROPPED)])
def test_failed_work_is_finished_unless_the_service_gave_it_up(world, failure, state):
    _, (group,) = world.batch(3)
    world.ledger.mark([failure(group[1], LOST)]).whole()
    world.ledger.mark([group[2]]).whole()

    assert states(world, group) == [PENDING, state, FINISHED]


def test_work_of_several_batches_is_told_apart(world):
    # Given items of a live batch, of one that was cancelled, and of one that is gone, in no order
    _, (live,) = world.batch(70)
    cancelled, (dropped,) = world.batch(2)
    gone, (unknown,) = world.batch(1)
    world.ledger.mark([live[66], dropped[1]]).whole()
    world.ledger.cancel(cancelled.batch_id)
    del world.memory.batches._rows[gone.batch_id]

    asked = [live[65], dropped[0], live[66], unknown[0], dropped[1]]
    assert states(world, asked) == [PENDING, DROPPED, FINISHED, UNKNOWN, FINISHED]
