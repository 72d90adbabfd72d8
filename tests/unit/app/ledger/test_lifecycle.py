"""Closing, cancelling, listing and expiring batches."""

from datetime import timedelta

import pytest

from fanin import Failure, Tracker
from fanin.domain import limits
from fanin.domain.batch import FIRST_LOOK, LIVE, State
from fanin.domain.reports import Expired
from fanin.errors import BatchGone, InvalidRequest
from fanin.testing import InMemoryService
from tests.unit.app.conftest import World

HOUR = 3_600_000


class TestClose:
    @pytest.mark.parametrize("n", [1, 4, 5, 16, 65])
    def test_a_batch_that_was_done_before_completes(self, world, n):
        batch, (group,) = world.batch(n)
        world.ledger.mark(list(group)).whole()

        assert world.fresh().close(batch.batch_id).state is State.COMPLETE

    def test_reads_at_most_one_word_a_level(self):
        world = World(width=64)
        batch, _ = world.batch(2**32 - 1)

        world.ledger.close(batch.batch_id)

        assert world.accesses.reads.total() <= 7

    @pytest.mark.parametrize("seen", [True, False])
    @pytest.mark.parametrize("idle_ttl", [None, 30 * 86_400])
    def test_is_looked_at_soon_if_it_dies_whoever_closed(self, world, idle_ttl, *, seen):
        # Given a batch whose items are done, and a process that dies when the state has moved
        batch, (group,) = world.batch(10, idle_ttl=idle_ttl)
        world.ledger.mark(list(group)).whole()
        with world.dying("words.read", "before"):
            (world.ledger if seen else world.fresh()).close(batch.batch_id)
        assert world.row(batch).state is State.CLOSED
        # When a quarter of an hour is over
        world.clock.advance(FIRST_LOOK)
        assert world.fresh().reap().settled == 0
        world.clock.advance(1)

        assert world.fresh().reap().settled == 1


@pytest.mark.parametrize("closed", [False, True])
def test_a_cancel_ends_a_live_batch_for_good(world, closed):
    batch, _ = world.batch(5, closed=closed)

    ended = world.ledger.cancel(batch.batch_id)

    assert (ended.state, ended.ended_at) == (State.CANCELLED, world.clock.at)
    world.clock.advance(1_000)
    assert world.ledger.close(batch.batch_id) == world.ledger.cancel(batch.batch_id) == ended


@pytest.mark.parametrize("call", ["close", "cancel", "status", "missing", "failures", "verify"])
class TestEveryCall:
    def test_refuses_a_batch_that_was_removed(self, world, call):
        batch, _ = world.batch(closed=True)
        world.ledger.expire(State.COMPLETE, idle_since=world.clock.at + 1)
        writes = world.written()

        for ledger in (world.ledger, world.fresh()):
            with pytest.raises(BatchGone):
                getattr(ledger, call)(batch.batch_id)

        assert world.written() == writes


@pytest.mark.parametrize("limit", [0, limits.MAX_PAGE + 1, "5"])
def test_list_refuses_a_limit_out_of_range(world, limit):
    with pytest.raises(InvalidRequest, match=r"^limit must be a whole number from 1 to 1000, not"):
        world.ledger.list(State.OPEN, limit=limit)


class TestListOfUserKey:
    def test_goes_on_behind_a_page_that_the_state_made_empty(self, world):
        opened, _ = world.batch(1, user_key="nightly")
        world.clock.advance(HOUR)
        world.batch(closed=True, user_key="nightly")

        first = world.ledger.list(State.OPEN, user_key="nightly", limit=1)
        rest = world.ledger.list(State.OPEN, user_key="nightly", cursor=first.cursor, limit=1)

        assert first.batches == ()
        assert [batch.batch_id for batch in rest.batches] == [opened.batch_id]
        assert rest.cursor is None

    def test_says_how_many_items_failed(self, world):
        batch, (group,) = world.batch(3, user_key="nightly")
        world.fail(group[0])

        (row,) = world.ledger.list(user_key="nightly").batches

        assert (row.batch_id, row.failed, row.failed_more) == (batch.batch_id, 1, False)

    def test_refuses_to_list_neither_a_state_nor_a_user_key_nor_a_parent(self, world):
        with pytest.raises(InvalidRequest, match=r"give a state \(open, .*\), a user_key, or a parent$"):
            world.ledger.list()
        assert world.ledger.list(parent=world.batch()[0].batch_id).batches == ()

    @pytest.mark.parametrize("user_key", ["", "k" * (limits.MAX_USER_KEY + 1), 7, "\ud800"])
    def test_refuses_what_no_batch_can_have_as_its_user_key(self, world, user_key):
        with pytest.raises(InvalidRequest, match=r"^user_key "):
            world.ledger.list(user_key=user_key)


class TestExpire:
    @pytest.mark.parametrize("state", LIVE)
    def test_orphans_live_batches_without_activity_since(self, world, state):
        idle, _ = world.batch(3, closed=state is State.CLOSED)
        world.clock.advance(40 * HOUR)
        since = world.clock.at
        active, _ = world.batch(4, closed=state is State.CLOSED)

        assert world.ledger.expire(state, idle_since=since - 20 * HOUR) == Expired(1, 3)
        assert world.row(idle).state is State.ORPHANED
        assert world.row(active).state is state

    def test_spares_a_batch_whose_activity_is_only_known_to_a_tenth(self, world):
        # Given a batch touched just now, whose row says some time ago
        batch, _ = world.batch(3, closed=True)
        touched_at = world.row(batch).touched_at
        assert touched_at < world.clock.at - 1
        world.clock.advance(1)

        assert world.ledger.expire(State.CLOSED, idle_since=world.clock.at - 1) == Expired()
        assert world.ledger.expire(State.CLOSED, idle_since=world.clock.at) == Expired(1, 3)

    def test_completes_a_batch_that_lost_a_bit_far_from_its_edge(self, world):
        batch, (group,) = world.batch(100, closed=True)
        with world.dying("words.clear", "after"):
            world.fresh().mark(list(group[:4])).whole()
        world.fresh().mark(list(group[4:])).whole()

        assert world.fresh().expire(State.CLOSED, idle_since=world.clock.at + 1) == Expired()
        assert world.row(batch).state is State.COMPLETE

    def test_leaves_a_batch_that_is_closed_meanwhile(self, world):
        batch, _ = world.batch(3)
        world.at("batches.end", "before", lambda: world.fresh().close(batch.batch_id))

        assert world.ledger.expire(State.OPEN, idle_since=world.clock.at + 1) == Expired()
        assert world.row(batch).state is State.CLOSED


class TestRemove:
    def test_an_ended_batch_reads_as_gone_and_others_stay(self, world):
        (ended, _), (other, _) = world.batch(3), world.batch(2)
        world.ledger.cancel(ended.batch_id)

        assert world.ledger.remove(ended.batch_id) == Expired(1, 3)
        assert world.ledger.remove(ended.batch_id) == world.fresh().remove(ended.batch_id) == Expired(0, 0)

        with pytest.raises(BatchGone):
            world.ledger.status(ended.batch_id)
        assert world.ledger.status(other.batch_id).batch.state is State.OPEN

    def test_a_live_batch_is_refused_and_stays(self, world):
        batch, _ = world.batch(1)
        with pytest.raises(InvalidRequest, match=r"is open.*cancel it first"):
            world.ledger.remove(batch.batch_id)
        assert world.row(batch).state is State.OPEN


class TestChange:
    """Limits of a live batch, through the service in memory, whose alarms and reaper run."""

    def test_a_deadline_is_moved_both_ways(self):
        service = InMemoryService()
        tracker = service.tracker
        later, sooner = (tracker.open(deadline=timedelta(minutes=n)).batch_id for n in (5, 60))
        tracker.change(later, deadline=timedelta(minutes=60))
        tracker.change(sooner, deadline=timedelta(minutes=5))

        service.advance(timedelta(minutes=10))

        assert [tracker.status(one).batch.state for one in (later, sooner)] == [State.OPEN, State.TIMED_OUT]

    def test_a_tolerance_counts_what_failed_before_it(self):
        tracker = Tracker.in_memory()
        batch_id = tracker.open().batch_id
        group = list(tracker.add(batch_id, 20))
        tracker.fail([Failure(item, "no price") for item in group[:5]])
        assert tracker.change(batch_id, tolerated_failures=6).state is State.OPEN
        tracker.fail(group[5], "no price")
        assert tracker.status(batch_id).batch.state is State.OPEN
        (receipt,) = tracker.fail(group[6], "no price")
        assert receipt.state is State.CANCELLED

        other = tracker.open().batch_id
        tracker.fail([Failure(item, "no price") for item in tracker.add(other, 3)])
        assert tracker.change(other, tolerated_failures=2).cause == "failures"

    def test_what_cannot_change_is_refused(self):
        tracker = Tracker.in_memory()
        batch_id = tracker.open().batch_id
        estimated = tracker.open(mode="estimated").batch_id
        for of, given, why in (
            (batch_id, {}, "nothing changes"),
            (batch_id, {"deadline": timedelta(days=30, hours=1)}, "within the batch's lifetime"),
            (batch_id, {"stall_after": 3}, "stall_after must be"),
            (estimated, {"tolerated_failures": 1}, "only counts them"),
        ):
            with pytest.raises(InvalidRequest, match=why):
                tracker.change(of, **given)
        tracker.cancel(batch_id)
        with pytest.raises(InvalidRequest, match="only limits of a live batch"):
            tracker.change(batch_id, stall_after=0)
