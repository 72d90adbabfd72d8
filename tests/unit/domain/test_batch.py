"""The batch row: its states and its times."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fanin.domain.batch import LIVE, RETENTION, Batch, Mode, State, touched

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


def test_states_are_live_or_terminal() -> None:
    assert [state for state in State if not state.terminal] == list(LIVE) == [State.OPEN, State.CLOSED]


def test_idle_time_depends_on_the_state() -> None:
    assert BATCH.idle_at == NOW + 100_000
    assert replace(BATCH, state=State.CLOSED).idle_at == NOW + 1_000_000


def test_idle_time_ends_with_the_lifetime() -> None:
    short = replace(BATCH, expires_at=NOW // 1000 + 60 + RETENTION)

    assert short.idle_at == NOW + 60_000


@pytest.mark.parametrize(("deadline", "due"), [(None, 100_000), (1_000, 61_000), (90_000, 100_000)])
def test_the_reaper_looks_when_idle_or_a_minute_past_the_deadline(deadline: int | None, due: int) -> None:
    at = None if deadline is None else NOW + deadline

    assert replace(BATCH, deadline=at).due_at == NOW + due


def test_a_row_past_its_time_to_live_is_gone() -> None:
    ends = BATCH.expires_at * 1000

    assert not BATCH.gone(ends - 1)
    assert BATCH.gone(ends)


@pytest.mark.parametrize(("acked", "items", "out"), [(0, 0, True), (4, 5, False), (5, 5, True), (6, 5, True)])
def test_counted_out(acked: int, items: int, out: bool) -> None:
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
def test_all_is_done_only_where_an_exact_batch_completed_in_full(
    state: State, partial: bool, mode: Mode, done: bool
) -> None:
    assert replace(BATCH, state=state, partial=partial, mode=mode).all_done is done


@given(st.integers(0, 2**42), st.integers(0, 365 * 86_400))
def test_activity_is_rounded_down_by_less_than_a_tenth_of_the_idle_time(now: int, idle_ttl: int) -> None:
    at = touched(now, idle_ttl)

    assert at <= now
    assert now - at < max(1, idle_ttl * 100)
    assert touched(at, idle_ttl) == at


@given(st.integers(0, 2**42), st.integers(0, 10**6), st.integers(1, 10**6))
def test_activity_never_goes_back(now: int, later: int, idle_ttl: int) -> None:
    assert touched(now, idle_ttl) <= touched(now + later, idle_ttl)


@pytest.mark.parametrize(
    ("closed_minutes_ago", "looks_in_minutes"), [(0, 15), (10, 15), (15, 15), (40, 40), (60 * 24, 60 * 24)]
)
def test_a_closed_batch_is_checked_ever_more_seldom(closed_minutes_ago: int, looks_in_minutes: int) -> None:
    long = replace(BATCH, state=State.CLOSED, closed_idle_ttl=20 * 86_400)
    closed = replace(long, closed_at=NOW - closed_minutes_ago * 60_000)

    assert closed.look_at(NOW) == NOW + looks_in_minutes * 60_000


def test_a_closed_batch_is_checked_when_it_is_due_at_the_latest() -> None:
    closed = replace(BATCH, state=State.CLOSED, closed_at=NOW)
    due = replace(closed, deadline=NOW + 1_000)

    assert due.look_at(NOW) == due.due_at == NOW + 61_000
    assert replace(BATCH, deadline=NOW + 1_000).look_at(NOW) == min(BATCH.idle_at, NOW + 61_000)


def test_the_last_activity_is_known_to_a_tenth_of_the_idle_time() -> None:
    assert BATCH.active_until(NOW) == NOW
    assert BATCH.active_until(NOW + 60_000) == NOW + 10_000
    assert replace(BATCH, ended_at=NOW + 7).active_until(NOW + 60_000) == NOW + 7


def test_a_row_does_not_show_its_salt() -> None:
    assert "salt" not in repr(BATCH)
