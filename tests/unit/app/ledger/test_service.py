"""The ledger as one process: its parts work with the same rows, and the patterns have their say."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from fanin.adapters.memory import Memory
from fanin.app.api import Ledger
from fanin.app.ledger.kinds import Kinds
from fanin.app.ledger.known_batches import KnownBatches
from fanin.app.ledger.reaper import Reaped
from fanin.app.ledger.service import LedgerService
from fanin.app.ports.batches import Activity
from fanin.app.ports.events import Event
from fanin.domain.batch import Batch, Kind, OpenBatch, State
from fanin.domain.marks import Failure
from fanin.domain.tree import Bits
from fanin.errors import BatchNotFound, InvalidItemId
from tests.unit.app.conftest import World

MINUTE = 60_000


class Say(Kinds):
    """A pattern of frames that notes what it is asked, and answers what it is told to."""

    def __init__(self, later: int | None = None, end: State | None = None) -> None:
        self.world: World
        self.asked: list[tuple[str, Ledger, Batch]] = []
        self._later = later
        self._end = end

    def ended(self, ledger: Ledger, batch: Batch, event: Event) -> Event:
        self.asked.append(("ended", ledger, batch))
        return event._replace(detail_type="Frame Over") if batch.kind is Kind.FRAME else event

    def due(self, ledger: Ledger, batch: Batch) -> Batch | None:
        self.asked.append(("due", ledger, batch))
        if self._later is None or batch.deadline is None or batch.kind is not Kind.FRAME:
            return None
        activity = Activity(batch.touched_at, batch.due_at)
        row, _ = self.world.ports.batches.postpone(
            batch.batch_id, deadline=batch.deadline, until=batch.deadline + self._later, activity=activity
        )
        return row

    def idle(self, ledger: Ledger, batch: Batch) -> State | None:
        self.asked.append(("idle", ledger, batch))
        return self._end if batch.kind is Kind.FRAME else State.ORPHANED

    def ledger(self, world: World) -> LedgerService:
        self.world = world
        return LedgerService(world.ports, self)


def pages(call: Any, **arguments: Any) -> Iterator[Any]:
    """All pages of a listing."""
    cursor = None
    while True:
        page = call(cursor=cursor, **arguments)
        yield page
        cursor = page.cursor
        if cursor is None:
            return


class TestOneProcess:
    def test_reads_no_row_of_a_batch_that_it_opened(self, world):
        row = world.ledger.open(OpenBatch())
        group = world.ledger.add(row.batch_id, 9)
        world.ledger.mark([group[0]]).whole()

        assert world.accesses.reads["batches.read"] == 0
        world.fail(group[1])
        world.ledger.clear({row.batch_id: [Bits(0, 1, 0b1)]})
        assert world.ledger.pending(row.batch_id, 0, 9) == {2, 3, 5, 6, 7, 8}

    def test_works_with_the_row_that_a_refresh_read(self, world):
        # Given items that another process added
        batch, _ = world.batch(1)
        group = world.fresh().add(batch.batch_id, 5)
        # When this one is told to look, then it acknowledges them without another look
        assert world.ledger.refresh([batch.batch_id])[batch.batch_id].items == 6
        with world.costing(reads=0, of="batches.read"):
            assert world.ledger.mark([group[4]]).whole()[0].first == 1


class TestCalls:
    """What the calls do is tested where they are."""

    def test_pending_items_are_those_of_the_range(self, world):
        batch, (group,) = world.batch(20)
        world.ledger.mark([group[6]]).whole()

        assert world.ledger.pending(batch.batch_id, 5, 9) == {5, 7, 8}
        assert world.ledger.pending(batch.batch_id, 18, 99) == {18, 19}
        assert world.ledger.pending(batch.batch_id, 5, 5) == set()

    def test_listings_go_on_at_their_cursor(self, world):
        batch, (group,) = world.batch(9)
        world.fail(*(group[i] for i in (1, 3, 5)))
        batch_id = batch.batch_id

        missing = pages(lambda **page: world.ledger.missing(batch_id, **page), limit=2)
        failed = pages(lambda **page: world.ledger.failures(batch_id, **page), limit=2)

        assert [[(one.start, one.stop) for one in page.ranges] for page in missing] == [
            [(0, 1), (2, 3)],
            [(4, 5), (6, 9)],
        ]
        assert [[one.ordinal for one in page.failures] for page in failed] == [[1, 3], [5]]


class TestPatterns:
    """A pattern is asked about batches of its kind, and given a ledger that reads them."""

    def test_retells_the_end_of_its_batches(self, world):
        say = Say()
        ledger = say.ledger(world)
        frame = ledger.open(OpenBatch(kind=Kind.FRAME, size=2))
        plain, _ = world.batch(2)

        rows = [ledger.cancel(batch.batch_id) for batch in (frame, plain)]
        for row in rows:
            ledger.announce(row)

        assert [(occasion, row) for occasion, _, row in say.asked] == [("ended", row) for row in rows]
        assert [event.detail_type for event in world.memory.events.published] == [
            "Frame Over",
            "Batch Cancelled",
        ]

    def test_puts_the_deadline_of_its_batches_off(self, world):
        say = Say(later=MINUTE)
        ledger = say.ledger(world)
        deadline = world.clock.at + MINUTE
        frame = ledger.open(OpenBatch(kind=Kind.FRAME, size=2, deadline=deadline))
        plain, _ = world.batch(2, deadline=deadline)
        world.clock.at = deadline

        later, ended = (ledger.meet_deadline(batch.batch_id) for batch in (frame, plain))

        assert [(occasion, by) for occasion, by, _ in say.asked] == [("due", ledger)] * 2
        assert later == world.row(frame)
        assert (later.state, later.deadline) == (State.CLOSED, deadline + MINUTE)
        assert ended == world.row(plain)
        assert ended.state is State.TIMED_OUT
        assert ledger.meet_deadline(frame.batch_id) == later
        assert len(say.asked) == 2

    @pytest.mark.parametrize(("end", "state"), [(None, State.CLOSED), (State.TIMED_OUT, State.TIMED_OUT)])
    def test_says_how_its_idle_batches_end(self, world, end, state):
        say = Say(end=end)
        ledger = say.ledger(world)
        frame = ledger.open(OpenBatch(kind=Kind.FRAME, size=2, idle_ttl=60))
        plain, _ = world.batch(2, idle_ttl=60)
        world.clock.advance(2 * MINUTE)

        reaped = ledger.reap()

        assert {(occasion, by, row.batch_id) for occasion, by, row in say.asked} == {
            ("idle", ledger, batch.batch_id) for batch in (frame, plain)
        }
        assert reaped == Reaped(seen=2, orphaned=1, spared=end is None, timed_out=end is not None)
        assert (world.row(frame).state, world.row(plain).state) == (state, State.ORPHANED)

    def test_has_no_say_in_a_ledger_that_was_given_none(self, world):
        frame = world.ledger.open(OpenBatch(kind=Kind.FRAME, size=2, idle_ttl=60))
        world.clock.advance(2 * MINUTE)

        assert world.ledger.reap() == Reaped(seen=1, orphaned=1, stuck=1)
        world.ledger.announce(world.row(frame))
        assert [event.detail_type for event in world.memory.events.published] == ["Batch Orphaned"]


# What a process remembers of batches.


@pytest.fixture
def known(world: World) -> KnownBatches:
    return KnownBatches(world.ports.batches, world.clock, capacity=2)


def test_a_live_row_is_read_again_after_half_a_minute(world, known):
    batch, _ = world.batch(3)
    known.fresh([batch.batch_id])
    world.fresh().cancel(batch.batch_id)

    world.clock.advance(29_999)
    with world.costing(reads=0):
        assert known.fresh([batch.batch_id]) == {batch.batch_id: batch}
    world.clock.advance(1)
    assert known.fresh([batch.batch_id])[batch.batch_id].state is State.CANCELLED


def test_a_row_that_does_not_reach_far_enough_is_read_again(world, known):
    # Given a row that was seen before two more items were added
    batch, _ = world.batch(3)
    known.fresh([batch.batch_id])
    world.fresh().add(batch.batch_id, 2)
    # Then it is read again by who names the new ones alone, and one that falls short stays as it is
    with world.costing(reads=0):
        assert known.reaching({batch.batch_id: 3})[batch.batch_id].items == 3
    assert known.reaching({batch.batch_id: 5})[batch.batch_id].items == 5
    assert known.reaching({batch.batch_id: 9})[batch.batch_id].items == 5


def test_the_oldest_row_makes_room(world, known):
    first, second, third = (world.batch()[0] for _ in range(3))

    for batch in (first, second, first, third):
        known.remember(batch)

    assert known.cached(second.batch_id) is None
    assert known.cached(first.batch_id) == first
    assert known.cached(third.batch_id) == third


@pytest.mark.parametrize(
    "later", [{"state": State.CLOSED}, {"state": State.COMPLETE}, {"items": 4}, {"acked": 1}], ids=str
)
def test_an_answer_that_was_overtaken_by_another_thread_changes_nothing(world, known, later):
    # Given a row, and the row as it was before
    before, _ = world.batch(3)
    after = replace(before, **later)

    known.remember(after)

    assert known.remember(before) == after
    assert known.cached(before.batch_id) == after


def test_activity_is_written_once_in_a_tenth_of_the_idle_time(world, known):
    batch, _ = world.batch(3, idle_ttl=1_000)
    known.remember(batch)
    writes = world.written()

    for _ in range(50):
        world.clock.advance(10_000)
        row = known.cached(batch.batch_id)
        assert row
        known.touch(row)

    assert world.written() - writes == 5
    assert world.clock.at - 100_000 < world.row(batch).touched_at <= world.clock.at
    assert known.cached(batch.batch_id) == world.row(batch)


@pytest.fixture
def batch(world: World) -> Batch:
    """A batch of eight items."""
    batch, _ = world.batch(8)
    return world.row(batch)


@pytest.mark.parametrize("same_id", [True, False])
def test_an_item_id_of_another_deployment_is_unknown(*, same_id):
    # Given two deployments, and an item of one whose batch id the other has, or has not
    theirs, ours = Memory(), Memory()
    ledger = LedgerService(theirs.ports())
    opened = ledger.open(OpenBatch())
    group = ledger.add(opened.batch_id, 3)
    if same_id:
        assert ours.batches.create(replace(opened, salt=bytes(16), items=3)) is not None
    # When it is acknowledged or failed at the other
    here = LedgerService(ours.ports())
    for call in (
        lambda: here.mark([group[0]]).whole(),
        lambda: here.mark([Failure(group[0], "why")]).whole(),
    ):
        with pytest.raises(InvalidItemId if same_id else BatchNotFound):
            call()
    assert not ours.accesses.writes["words.clear"]
    assert ledger.mark([group[0]]).whole()[0].first == 1


def test_a_row_is_read_anew_however_fresh_it_is_for_who_asks(world, known):
    (one, _), (other, _) = world.batch(3), world.batch(3)
    known.fresh([one.batch_id, other.batch_id])
    world.fresh().close(one.batch_id)

    with world.costing(reads=1):
        rows = known.try_reaching({one.batch_id: 0, other.batch_id: 0}, anew=[one.batch_id])

    assert rows[one.batch_id].state is State.CLOSED
    assert rows[other.batch_id] == other
