"""The batch row: its states and its times."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fanin.domain.batch import FIRST_LOOK, LIVE, RETENTION, Batch, Kind, Mode, OnDeadline, OpenBatch, State
from fanin.domain.failures import Tolerance

NOW = 1_790_000_000_000
BATCH = Batch(
    batch_id=1,
    salt=b"s",
    created_at=NOW,
    touched_at=NOW,
    expires_at=NOW // 1000 + 30 * 86_400 + RETENTION,
    open_idle_ttl=100,
    closed_idle_ttl=1_000,
)


def test_states_are_live_or_terminal():
    assert [state for state in State if not state.terminal] == list(LIVE) == [State.OPEN, State.CLOSED]


def test_rows_events_and_answers_have_these_words():
    """They are stored and sent, so another word would be another state to whoever reads it."""
    assert [*State] == ["open", "closed", "complete", "timed_out", "cancelled", "orphaned"]
    assert [*Mode] == ["exact", "estimated"]
    assert [*Kind] == ["batch", "scatter", "frame", "buffer"]
    assert [*OnDeadline] == ["time_out", "complete"]


def test_a_new_row_is_an_open_exact_batch_without_items():
    assert (BATCH.state, BATCH.mode, BATCH.kind) == (State.OPEN, Mode.EXACT, Kind.BATCH)
    assert (BATCH.items, BATCH.pending_bound, BATCH.acked, BATCH.retries) == (0, 0, 0, 0)
    assert (BATCH.user_key, dict(BATCH.metadata), BATCH.partial) == ("", {}, False)
    assert OpenBatch().user_key == ""


def test_an_ended_batch_can_be_read_for_a_day():
    assert RETENTION == 24 * 60 * 60


def test_idle_time_depends_on_the_state():
    assert BATCH.idle_at == NOW + 100_000
    assert replace(BATCH, state=State.CLOSED).idle_at == NOW + 1_000_000


def test_idle_time_ends_with_the_lifetime():
    short = replace(BATCH, expires_at=NOW // 1000 + 60 + RETENTION)

    assert short.idle_at == NOW + 60_000


@pytest.mark.parametrize(("deadline", "due"), [(None, 100_000), (1_000, 61_000), (90_000, 100_000)])
def test_the_reaper_looks_when_idle_or_a_minute_past_the_deadline(deadline, due):
    at = None if deadline is None else NOW + deadline

    assert replace(BATCH, deadline=at).due_at == NOW + due


@pytest.mark.parametrize(("minutes", "after"), [(0, 15), (15, 15), (16, 16)])
def test_a_closed_batch_is_looked_at_after_a_quarter_of_an_hour_then_twice_as_late(minutes, after):
    # Given a batch that was closed some minutes ago, and is not idle for days
    now = NOW + minutes * 60_000
    closed = replace(BATCH, state=State.CLOSED, closed_at=NOW, closed_idle_ttl=7 * 86_400)
    # Then the reaper looks again as many minutes later, and a quarter of an hour later at least
    assert closed.look_at(now) == now + after * 60_000
    assert FIRST_LOOK == 15 * 60_000
    # And a row that does not say when that was counts as just closed
    assert replace(closed, closed_at=None).look_at(now) == now + FIRST_LOOK


def test_a_batch_is_looked_at_no_later_than_it_is_due():
    closed = replace(BATCH, state=State.CLOSED, closed_at=NOW)

    assert closed.look_at(NOW + 990_000) == closed.due_at == NOW + 1_000_000
    assert BATCH.look_at(NOW) == BATCH.due_at == NOW + 100_000  # an open one is looked at when it is due


def test_the_last_activity_may_have_been_a_step_later_than_the_row_says():
    step = 10_000  # a tenth of the idle time

    assert BATCH.active_until(NOW + step + 1) == NOW + step
    assert BATCH.active_until(NOW + step - 1) == NOW + step - 1
    assert replace(BATCH, ended_at=NOW + 3).active_until(NOW + step) == NOW + 3


@pytest.mark.parametrize(("now", "at"), [(99, 0), (100, 100), (199, 100)])
def test_activity_of_a_batch_with_an_idle_time_of_a_second_has_steps_of_100_ms(now, at):
    assert replace(BATCH, open_idle_ttl=1).rounded(now) == at


def test_a_row_past_its_time_to_live_is_gone():
    ends = BATCH.expires_at * 1000

    assert not BATCH.gone(ends - 1)
    assert BATCH.gone(ends)


@pytest.mark.parametrize(("acked", "items", "out"), [(0, 0, True), (4, 5, False), (5, 5, True), (6, 5, True)])
def test_counted_out(acked, items, out):
    assert replace(BATCH, acked=acked, items=items).counted_out() is out


@pytest.mark.parametrize(
    ("state", "partial", "mode", "done"),
    [
        (State.COMPLETE, False, Mode.EXACT, True),
        (State.COMPLETE, True, Mode.EXACT, False),
        (State.COMPLETE, False, Mode.ESTIMATED, False),
        (State.CLOSED, False, Mode.EXACT, False),
        (State.CANCELLED, False, Mode.EXACT, False),
    ],
)
def test_all_is_done_only_where_an_exact_batch_completed_in_full(state, partial, mode, done):
    assert replace(BATCH, state=state, partial=partial, mode=mode).all_done is done


@pytest.mark.parametrize(
    ("state", "failed", "tolerated", "succeeded"),
    [
        (State.COMPLETE, 0, None, True),
        (State.COMPLETE, 1, None, False),
        (State.COMPLETE, 1, Tolerance(count=1), True),
        (State.CLOSED, 0, None, False),
    ],
)
def test_a_batch_has_succeeded_if_it_completed_within_its_tolerance(state, failed, tolerated, succeeded):
    assert replace(BATCH, state=state, failed=failed, tolerated_failures=tolerated).succeeded is succeeded


def test_the_next_milestone_is_one_of_a_closed_batch_and_100_is_told_by_the_end():
    closed = replace(BATCH, state=State.CLOSED, milestones=(25, 50, 100))

    assert [replace(closed, milestone=told).next_milestone for told in (0, 25, 50)] == [25, 50, None]
    assert replace(closed, state=State.OPEN).next_milestone is None


def test_activity_is_not_before_the_opening():
    assert replace(BATCH, touched_at=NOW - 1).active_at == NOW
    assert replace(BATCH, touched_at=NOW + 1).active_at == NOW + 1


@given(st.integers(0, 2**42), st.integers(0, 365 * 86_400))
def test_activity_is_rounded_down_by_less_than_a_tenth_of_the_idle_time(now, idle_ttl):
    batch = replace(BATCH, open_idle_ttl=idle_ttl)
    at = batch.rounded(now)

    assert at <= now
    assert now - at < max(1, idle_ttl * 100)
    assert batch.rounded(at) == at


def test_a_row_does_not_show_its_salt():
    assert "salt" not in repr(BATCH)


class TestStalls:
    STALLING = replace(BATCH, open_idle_ttl=7_200, expires_at=NOW // 1000 + 30 * 86_400, stall_after=400)
    STEP = 100_000

    def test_a_step_is_a_quarter_of_the_time_or_a_tenth_of_the_idle_time(self):
        assert self.STALLING.step == self.STEP
        assert replace(self.STALLING, stall_after=86_400).step == 720_000
        assert replace(self.STALLING, stall_after=0).step == 720_000

    def test_activity_is_rounded_down_to_a_step(self):
        assert self.STALLING.rounded(self.STEP * 7 + 99_999) == self.STEP * 7
        assert self.STALLING.rounded(self.STEP * 8) == self.STEP * 8

    def test_it_is_stalled_once_even_the_latest_possible_activity_is_old(self):
        at = NOW + self.STEP + 400_000

        assert self.STALLING.stall_at == at
        assert [self.STALLING.stalled(now) for now in (at - 1, at)] == [False, True]
        assert self.STALLING.active_until(at) + 400_000 == at

    def test_it_is_due_then_unless_that_was_told(self):
        told = replace(self.STALLING, stall_told=NOW)

        assert self.STALLING.due_at == self.STALLING.stall_at
        assert told.due_at == told.idle_at
        assert not told.stalled(told.idle_at)
        assert told.active(NOW + 7 * self.STEP).stalled(told.idle_at)

    def test_rows_of_the_release_before_and_batches_of_patterns_never_stall(self):
        patterns = [replace(self.STALLING, kind=kind) for kind in Kind if kind is not Kind.BATCH]

        assert BATCH.stall_after == 0
        assert [one.stall_at for one in (BATCH, *patterns)] == [None] * 4
        assert {one.step for one in patterns} == {720_000}
