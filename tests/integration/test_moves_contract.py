"""What every store of batch rows promises: changes of state and deadline, each by one conditional write."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest

from fanin.app.ports.batches import Activity, Completion, Telling
from fanin.domain.batch import LIVE, Batch, Cause, ChangeLimits, Kind, Mode, State, Trouble
from fanin.domain.failures import Tolerance

from .given import HOUR, NOW, TERMINAL, new_batch, put, row_of


class TestMoves:
    def test_a_fresh_count_is_kept_unless_items_were_added(self, stores):
        put(stores, limit=10, items=10, pending_bound=10)

        assert stores.batches.rebound(8, items=10, pending=4)
        assert row_of(stores) == new_batch(limit=10, items=10, pending_bound=4)
        assert not stores.batches.rebound(8, items=9, pending=0)
        assert row_of(stores).pending_bound == 4

    def test_counted_items_are_added_with_the_count_unless_items_were_added(self, stores):
        put(stores, limit=10, items=10, pending_bound=10)
        activity = Activity(NOW + 5, NOW + 9)

        added = stores.batches.allocate_counted(8, 3, items=10, pending=4, activity=activity)

        assert added == new_batch(limit=10, items=13, pending_bound=7, touched_at=NOW + 5)
        assert row_of(stores) == added
        assert stores.batches.allocate_counted(8, 3, items=10, pending=4, activity=activity) is None
        assert row_of(stores) == added

    def test_counted_items_are_added_to_open_bounded_batches_only(self, stores):
        put(stores, limit=10, items=1, state=State.CLOSED)
        put(stores, 9, items=1)
        activity = Activity(NOW, NOW)
        for batch_id in (8, 9):
            call = stores.batches.allocate_counted
            assert call(batch_id, 1, items=1, pending=0, activity=activity) is None

    @pytest.mark.parametrize("grown", [0, 2])
    def test_an_open_batch_drains_once_and_closes_with_the_items_it_has(self, stores, grown):
        put(stores, items=3, grown=grown)
        draining = new_batch(items=3, grown=grown, draining_at=NOW + 1, touched_at=NOW + 5)
        activity = Activity(NOW + 5, NOW + 9)

        assert stores.batches.drain(8, now=NOW + 1, activity=activity) == (draining, True)
        assert stores.batches.drain(8, now=NOW + 2, activity=activity) == (draining, False)
        assert stores.batches.close(8, now=NOW + 3, grown=2 - grown) == (draining, False)
        closed, moved = stores.batches.close(8, now=NOW + 3, grown=grown)
        assert moved
        assert closed == replace(draining, state=State.CLOSED, closed_at=NOW + 3)
        assert stores.batches.drain(8, now=NOW + 4, activity=activity) == (closed, False)

    def test_an_open_batch_closes_once(self, stores):
        put(stores)
        closed = new_batch(state=State.CLOSED, closed_at=NOW + 1, touched_at=NOW + 5)

        assert stores.batches.close(8, now=NOW + 1, activity=Activity(NOW + 5, NOW + 9)) == (closed, True)
        assert stores.batches.close(8, now=NOW + 2) == (closed, False)
        assert row_of(stores) == closed

    def test_closing_without_activity_leaves_the_times(self, stores):
        batch = put(stores)

        row, moved = stores.batches.close(8, now=NOW + 1)

        assert (row, moved) == (replace(batch, state=State.CLOSED, closed_at=NOW + 1), True)
        assert list(stores.batches.due(batch.due_at + 1)) == [row.batch_id]
        assert list(stores.batches.due(batch.due_at)) == []

    @pytest.mark.parametrize("state", TERMINAL)
    def test_a_batch_ends_once(self, stores, state):
        put(stores)
        ended = new_batch(state=state, ended_at=NOW + 1, partial=True)

        first = stores.batches.end(8, state, now=NOW + 1, sources=LIVE, partial=True)
        later = [stores.batches.end(8, other, now=NOW + 2, sources=LIVE) for other in TERMINAL]

        assert first == (ended, True)
        assert later == [(ended, False)] * 4
        assert stores.batches.close(8, now=NOW + 3) == (ended, False)
        assert row_of(stores) == ended

    def test_a_deadline_is_put_off_once_from_where_it_was_seen(self, stores):
        put(stores, state=State.CLOSED, deadline=NOW + 5)
        activity = Activity(NOW + 7, NOW + 9)
        later = new_batch(state=State.CLOSED, deadline=NOW + 50, retries=1, touched_at=activity.touched_at)

        first = stores.batches.postpone(8, deadline=NOW + 5, until=NOW + 50, activity=activity)
        again = stores.batches.postpone(8, deadline=NOW + 5, until=NOW + 60, activity=activity)

        assert first == (later, True)
        assert again == (later, False)
        assert row_of(stores) == later

    def test_an_empty_open_batch_begins_once_with_its_items(self, stores):
        put(stores, deadline=NOW + 5, retries=2)
        activity = Activity(NOW + 7, NOW + 9)
        begun = new_batch(
            state=State.CLOSED, closed_at=NOW + 1, items=70, deadline=NOW + 50, touched_at=NOW + 7
        )

        first = stores.batches.begin(8, 70, now=NOW + 1, deadline=NOW + 50, activity=activity)
        again = stores.batches.begin(8, 71, now=NOW + 2, deadline=NOW + 60, activity=activity)

        assert first == (begun, True)
        assert again == (begun, False)
        assert row_of(stores) == begun
        assert list(stores.batches.due(NOW + 10)) == [begun.batch_id]

    def test_a_batch_with_items_does_not_begin(self, stores):
        batch = put(stores, items=1)

        moved = stores.batches.begin(8, 70, now=NOW, deadline=NOW, activity=Activity(NOW, NOW))

        assert moved == (batch, False)

    def test_an_ended_batch_has_no_other_deadline(self, stores):
        batch = put(stores, state=State.COMPLETE, deadline=NOW + 5)

        moved = stores.batches.postpone(8, deadline=NOW + 5, until=NOW + 50, activity=Activity(NOW, NOW))

        assert moved == (batch, False)

    def test_replies_of_a_scatter_are_counted_too(self, stores):
        put(stores, kind=Kind.SCATTER, state=State.CLOSED)

        row = stores.batches.count(8, 3, activity=None)

        assert row is not None
        assert row.acked == 3

    def test_a_batch_ends_from_the_given_states_only(self, stores):
        batch = put(stores)

        assert stores.batches.end(8, State.COMPLETE, now=NOW, sources=[State.CLOSED]) == (batch, False)
        stores.batches.close(8, now=NOW)
        assert stores.batches.end(8, State.COMPLETE, now=NOW, sources=[State.CLOSED])[1]

    def test_activity_or_a_drain_saves_a_batch_from_the_reaper(self, stores):
        before = put(stores)
        stores.batches.touch(8, Activity(NOW + 5, NOW + 9))
        touched = row_of(stores)
        # A drain that was under way for long brings no later time.
        stores.batches.drain(8, now=NOW, activity=Activity(NOW + 5, NOW + 9))
        drains = row_of(stores)

        for quiet in (before, replace(before, touched_at=NOW + 6), touched):
            ended = stores.batches.end(8, State.ORPHANED, now=NOW, sources=LIVE, quiet=quiet)
            assert ended == (drains, False)
        assert stores.batches.end(8, State.ORPHANED, now=NOW, sources=LIVE, quiet=drains)[1]

    def test_of_enders_at_once_one_moves_the_batch(self, stores):
        put(stores)

        with ThreadPoolExecutor(8) as pool:
            answers = list(
                pool.map(lambda state: stores.batches.end(8, state, now=NOW, sources=LIVE), TERMINAL * 8)
            )

        assert [moved for _, moved in answers].count(True) == 1
        assert {str(row) for row, _ in answers} == {str(row_of(stores))}

    def test_touch_goes_forward_only(self, stores):
        put(stores)

        stores.batches.touch(8, Activity(NOW + 5, NOW + 9))
        stores.batches.touch(8, Activity(NOW + 4, NOW + 90))

        assert row_of(stores) == new_batch(touched_at=NOW + 5)
        assert list(stores.batches.due(NOW + 10)) == [row_of(stores).batch_id]

    def test_touch_moves_the_index_key_of_a_row_touched_at_that_time(self, stores):
        put(stores)

        stores.batches.touch(8, Activity(NOW, NOW + 90))

        assert row_of(stores) == new_batch()
        assert list(stores.batches.due(NOW + 90)) == []
        assert list(stores.batches.due(NOW + 91)) == [row_of(stores).batch_id]

    def test_touch_leaves_an_ended_batch(self, stores):
        batch = put(stores, state=State.TIMED_OUT)

        stores.batches.touch(8, Activity(NOW + 5, NOW + 9))

        assert row_of(stores) == batch

    @pytest.mark.parametrize("state", LIVE)
    def test_counts_add_up(self, stores, state):
        put(stores, mode=Mode.ESTIMATED, state=state)

        stores.batches.count(8, 2, activity=None)
        row = stores.batches.count(8, 3, activity=Activity(NOW + 5, NOW + 9))

        assert row == new_batch(mode=Mode.ESTIMATED, state=state, acked=5, touched_at=NOW + 5)

    def test_counts_are_for_live_estimated_batches(self, stores):
        put(stores, 8)
        put(stores, 9, mode=Mode.ESTIMATED, state=State.COMPLETE)

        assert stores.batches.count(8, 1, activity=None) is None
        assert stores.batches.count(9, 1, activity=None) is None
        assert row_of(stores, 9).acked == 0

    def test_an_ended_batch_expires_at_once(self, stores):
        put(stores, state=State.CANCELLED)

        assert stores.batches.expire(8, now=NOW + 1)
        assert row_of(stores).gone(NOW + 1)
        assert row_of(stores).expires_at == (NOW + 1) // 1000
        assert not stores.batches.expire(8, now=NOW + 2)

    @pytest.mark.parametrize("state", LIVE)
    def test_a_live_batch_does_not_expire(self, stores, state):
        batch = put(stores, state=state)

        assert not stores.batches.expire(8, now=NOW)
        assert row_of(stores) == batch


class TestTotals:
    def test_of_a_new_row_are_kept_in_their_order(self, stores):
        names = ("zinc", "ants", "rows", "pages")
        put(stores, totals=dict.fromkeys(names, 0), totals_before={"rows": -(2**60)})

        row = row_of(stores)
        assert (tuple(row.totals), set(row.totals.values()), row.totals_exact) == (names, {0}, False)
        assert row.totals_before == {"rows": -(2**60)}

    def test_are_written_with_the_end_by_whoever_is_first(self, stores):
        put(stores, state=State.CLOSED, totals={"zinc": 0, "ants": 0, "rows": 0})
        sums, others = ({"zinc": n, "ants": -(2**93), "rows": 0} for n in (7, 8))

        for values in (sums, others):
            done = Completion(0, failed_more=False, totals=values, totals_exact=values is sums)
            stores.batches.end(8, State.COMPLETE, now=NOW, sources=(State.CLOSED,), done=done)

        row = row_of(stores)
        assert (row.totals, row.totals_exact) == (sums, True)
        assert tuple(row.totals) == ("zinc", "ants", "rows")

    def test_are_left_by_an_end_that_does_not_know_them(self, stores):
        put(stores, totals={"rows": 0})

        row, _ = stores.batches.end(8, State.CANCELLED, now=NOW, sources=LIVE)

        assert row is not None
        assert (row.totals, row.totals_exact) == ({"rows": 0}, False)

    def test_counts_add_to_them_in_their_order(self, stores):
        put(stores, mode=Mode.ESTIMATED, totals={"zinc": 0, "ants": 0})

        stores.batches.count(8, 2, activity=None, sums=(5, -7))
        stores.batches.count(8, 1, activity=None)
        row = stores.batches.count(8, 1, activity=Activity(NOW + 5, NOW + 9), sums=(0, 2**53))

        assert row is not None
        assert (row.totals, row.acked) == ({"zinc": 5, "ants": 2**53 - 7}, 4)
        assert row_of(stores) == row


class TestChange:
    def test_what_is_given_changes_while_the_batch_lives(self, stores):
        batch = put(stores, stall_after=60)
        change = ChangeLimits(deadline=NOW + HOUR, tolerated_failures=Tolerance(percent=0.5))

        row, moved = stores.batches.change(batch.batch_id, change, failing=7, due_at=NOW + HOUR)

        assert (row, moved) == (row_of(stores), True)
        assert (row_of(stores).deadline, row_of(stores).failing) == (NOW + HOUR, 7)
        assert (row_of(stores).tolerated_failures, row_of(stores).stall_after) == (Tolerance(percent=0.5), 60)
        assert batch.batch_id in list(stores.batches.due(NOW + HOUR + 1))
        assert batch.batch_id not in list(stores.batches.due(NOW + HOUR))

    def test_an_ended_or_unknown_batch_stays_as_it_is(self, stores):
        batch = put(stores)
        stores.batches.end(batch.batch_id, State.CANCELLED, now=NOW, sources=(State.OPEN,))
        before = row_of(stores)

        change = ChangeLimits(stall_after=0)
        assert stores.batches.change(batch.batch_id, change, failing=None, due_at=NOW) == (before, False)
        assert stores.batches.change(99, change, failing=None, due_at=NOW) == (None, False)


class TestFlags:
    def test_the_most_urgent_trouble_is_listed_first_and_then_the_newest(self, stores):
        for batch_id in range(40, 52):
            stores.batches.tell(put(stores, batch_id).batch_id, Telling("failing_at", NOW, Trouble.FAILING))
        quiet = put(stores, 60)
        stores.batches.tell_stall(60, Activity(quiet.touched_at, NOW + HOUR), Trouble.STALLED, "slow")
        dead = put(stores, 55)
        stores.batches.tell_stall(55, Activity(dead.touched_at, NOW + HOUR), Trouble.DEAD_LETTERS, "dead")
        ended = put(stores, 70, state=State.COMPLETE)
        stores.batches.flag(ended, Trouble.FAILED)
        put(stores, 80)

        found, cursor = [], None
        while True:
            page = stores.batches.page_of_flagged(cursor=cursor, limit=4)
            found += [batch.batch_id for batch in page.batches]
            if (cursor := page.cursor) is None:
                break

        assert found == [60, 55, *range(51, 39, -1), 70]
        assert stores.batches.count_flagged() == {
            Trouble.STALLED: (1, False),
            Trouble.DEAD_LETTERS: (1, False),
            Trouble.FAILING: (12, False),
            Trouble.FAILED: (1, False),
        }
        assert stores.batches.read([60])[60].stall_why == "slow"

    def test_only_an_ended_batch_is_flagged_and_its_flag_is_rewritten(self, stores):
        live = put(stores)
        stores.batches.flag(live, Trouble.FAILED)
        assert row_of(stores).attention is None

        stores.batches.end(8, State.ORPHANED, now=NOW, sources=LIVE)
        stores.batches.flag(row_of(stores), Trouble.INCOMPLETE)
        assert row_of(stores).attention is Trouble.INCOMPLETE
        stores.batches.flag(row_of(stores), None)
        assert (row_of(stores).attention, stores.batches.page_of_flagged()) == (None, ([], None))

    def test_a_removed_or_unknown_batch_has_none(self, stores):
        ended = put(stores, state=State.COMPLETE)
        stores.batches.flag(ended, Trouble.FAILED)
        stores.batches.expire(8, now=NOW)
        stores.batches.flag(new_batch(9, state=State.COMPLETE), Trouble.FAILED)

        assert (stores.batches.page_of_flagged(), stores.batches.count_flagged()) == (([], None), {})


class TestTell:
    def test_what_is_told_is_noted_once_and_milestones_only_rise(self, stores):
        put(stores, milestones=(25, 50))

        def told(*telling: object) -> Batch | None:
            return stores.batches.tell(8, Telling(*telling))

        assert told("failing_at", NOW, Trouble.HELD) == row_of(stores)
        assert told("failing_at", NOW + 1, Trouble.FAILING) is None
        assert told("milestone", 25) == row_of(stores)
        assert told("milestone", 25) is None
        assert told("milestone", 50) == row_of(stores)
        assert told("milestone", 25) is None
        assert told("waiting_at", NOW + 2) == row_of(stores)

        row = row_of(stores)
        assert (row.failing_at, row.milestone, row.waiting_at) == (NOW, 50, NOW + 2)
        assert row.attention is Trouble.HELD

    def test_nothing_is_told_of_an_ended_or_unknown_batch(self, stores):
        put(stores)
        stores.batches.end(8, State.ORPHANED, now=NOW, sources=LIVE)
        before = row_of(stores)

        assert stores.batches.tell(8, Telling("failing_at", NOW, Trouble.FAILING)) is None
        assert stores.batches.tell(99, Telling("milestone", 50)) is None
        assert row_of(stores) == before


class TestTellStall:
    def test_the_mark_is_the_activity_that_the_stall_followed(self, stores):
        batch = put(stores)

        for _ in range(2):  # the SDK may send it twice
            assert stores.batches.tell_stall(
                batch.batch_id, Activity(batch.touched_at, NOW + HOUR), Trouble.STALLED, "slow"
            )

        row = stores.batches.read([batch.batch_id])[batch.batch_id]
        assert (row.stall_told, row.touched_at) == (batch.touched_at, batch.touched_at)
        assert batch.batch_id not in list(stores.batches.due(NOW + HOUR))
        assert batch.batch_id in list(stores.batches.due(NOW + HOUR + 1))

    def test_activity_since_or_an_end_refuses_it(self, stores):
        batch = put(stores)
        stores.batches.touch(batch.batch_id, Activity(NOW + 5, NOW + HOUR))
        assert not stores.batches.tell_stall(
            batch.batch_id, Activity(batch.touched_at, NOW + HOUR), Trouble.STALLED, "slow"
        )

        stores.batches.end(batch.batch_id, State.CANCELLED, now=NOW, sources=(State.OPEN,))
        assert not stores.batches.tell_stall(
            batch.batch_id, Activity(NOW + 5, NOW + HOUR), Trouble.STALLED, "slow"
        )
        assert stores.batches.read([batch.batch_id])[batch.batch_id].stall_told is None


class TestFailures:
    def test_failures_add_up_as_a_hint_while_the_batch_lives(self, stores):
        put(stores)
        first, second = (stores.batches.hint_failures(8, n) for n in (3, 4))
        assert (first and first.failing, second and second.failing, row_of(stores).failing) == (3, 7, 7)

        stores.batches.end(8, State.CANCELLED, now=NOW, sources=LIVE)

        assert stores.batches.hint_failures(8, 1) is None
        assert stores.batches.hint_failures(99, 1) is None
        assert row_of(stores).failing == 7

    def test_an_end_has_the_cause_of_whoever_was_first(self, stores):
        put(stores)
        row, moved = stores.batches.end(8, State.CANCELLED, now=NOW, sources=LIVE, cause=Cause.FAILURES)
        assert (row and row.cause, moved) == (Cause.FAILURES, True)

        _, moved = stores.batches.end(8, State.CANCELLED, now=NOW, sources=LIVE)

        assert (row_of(stores).cause, moved) == (Cause.FAILURES, False)
