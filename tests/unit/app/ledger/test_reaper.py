"""The reaper ends what nobody ends, and nothing else."""

from __future__ import annotations

import pytest

from fanin.app.ledger.reaper import Reaped
from fanin.domain.batch import RETENTION, OnDeadline, State
from tests.unit.app.conftest import Crash, World

MINUTE = 60_000
HOUR = 60 * MINUTE
DAY = 24 * HOUR


def test_leaves_batches_that_are_not_due(world: World) -> None:
    world.batch(5)
    world.batch(5, closed=True)
    world.clock.advance(14 * MINUTE)

    assert world.ledger.reap() == Reaped()


def test_looks_at_a_closed_batch_ever_more_seldom(world: World) -> None:
    world.batch(5, closed=True)
    looks = []

    for minutes in range(0, 8 * 60, 5):
        if world.ledger.reap().seen:
            looks.append(minutes)
        world.clock.advance(5 * MINUTE)

    # A key that is due at the very moment of a run is seen by the next one
    assert looks == [20, 45, 95, 195, 395]


def test_completes_within_minutes_what_nobody_else_heals(world: World) -> None:
    # Given a batch whose last word was written, and is no zero, so that no stream tells of it
    batch, (group,) = world.batch(5, closed=True)
    world.ledger.ack(list(group[:4]))
    world.crash_at("words.clear", "after")
    with pytest.raises(Crash):
        world.ledger.ack([group[4]])

    world.clock.advance(16 * MINUTE)

    assert world.fresh().reap() == Reaped(seen=1, settled=1)
    assert world.row(batch).state is State.COMPLETE


def test_orphans_an_open_batch_that_nobody_touches(world: World) -> None:
    batch, _ = world.batch(5)
    world.clock.advance(2 * HOUR)

    assert world.ledger.reap() == Reaped(seen=1, orphaned=1)
    assert world.row(batch).state is State.ORPHANED


def test_orphans_a_closed_batch_later_and_calls_it_stuck(world: World) -> None:
    batch, _ = world.batch(5, closed=True)

    world.clock.advance(6 * DAY)
    assert world.ledger.reap().orphaned == 0
    world.clock.advance(DAY)
    assert world.ledger.reap() == Reaped(seen=1, orphaned=1, stuck=1)
    assert world.row(batch).state is State.ORPHANED


def test_completes_a_batch_that_is_done_instead(world: World) -> None:
    batch, (group,) = world.batch(5, closed=True)
    world.ledger.ack(list(group[:4]))
    world.crash_at("words.clear", "after")
    with pytest.raises(Crash):
        world.ledger.ack([group[4]])
    world.clock.advance(8 * DAY)

    assert world.fresh().reap() == Reaped(seen=1, settled=1)
    assert world.row(batch).state is State.COMPLETE


def test_a_batch_lives_no_longer_than_its_lifetime(world: World) -> None:
    batch, (group,) = world.batch(1_000, lifetime=3_600)
    for item in group[:11]:
        world.clock.advance(HOUR // 10)
        world.ledger.ack([item])

    assert world.clock.at > (batch.expires_at - RETENTION) * 1000
    assert world.ledger.reap().orphaned == 1


class TestNotIdle:
    """A row's index key may say sooner than the row: it was set before the batch was closed."""

    def test_is_looked_at_once_and_moved_to_when_it_is_due(self, world: World) -> None:
        batch, _ = world.batch(5)
        world.fresh().close(batch.batch_id)
        world.clock.advance(3 * HOUR)

        assert world.fresh().reap() == Reaped(seen=1)
        assert world.fresh().reap() == Reaped()
        assert world.row(batch).state is State.CLOSED

    def test_is_found_again_when_it_is_due(self, world: World) -> None:
        batch, _ = world.batch(5)
        world.fresh().close(batch.batch_id)
        world.clock.advance(3 * HOUR)
        world.fresh().reap()
        world.clock.advance(7 * DAY)

        assert world.fresh().reap().stuck == 1
        assert world.row(batch).state is State.ORPHANED


class TestRace:
    """Somebody comes between the reaper's look and its write."""

    def test_with_an_acknowledgement(self, world: World) -> None:
        batch, (group,) = world.batch(5)
        world.clock.advance(2 * HOUR)
        world.at("batches.end", "before", lambda: world.fresh().ack([group[0]]))

        assert world.ledger.reap() == Reaped(seen=1)
        assert world.row(batch).state is State.OPEN

    def test_with_an_addition(self, world: World) -> None:
        batch, _ = world.batch(5)
        world.clock.advance(2 * HOUR)
        world.at("batches.end", "before", lambda: world.fresh().add(batch.batch_id, 1))

        assert world.ledger.reap() == Reaped(seen=1)
        assert world.row(batch).state is State.OPEN

    def test_with_a_close(self, world: World) -> None:
        # Given a process that dies right after the close, before it can count it as activity
        batch, _ = world.batch(5)
        world.clock.advance(2 * HOUR)

        def close() -> None:
            world.ports.batches.close(batch.batch_id, now=world.clock.at)

        world.at("batches.end", "before", close)

        assert world.ledger.reap().orphaned == 0
        assert world.row(batch).state is State.CLOSED

    def test_with_the_end(self, world: World) -> None:
        batch, _ = world.batch(5)
        world.clock.advance(2 * HOUR)
        world.at("batches.end", "before", lambda: world.fresh().cancel(batch.batch_id))

        assert world.ledger.reap() == Reaped(seen=1)
        assert world.row(batch).state is State.CANCELLED


class TestDeadline:
    def test_is_left_to_its_alarm_for_a_minute(self, world: World) -> None:
        batch, _ = world.batch(5, deadline=world.clock.at + 1_000)
        world.clock.advance(60_999)

        assert world.ledger.reap() == Reaped()
        assert world.row(batch).state is State.OPEN

    @pytest.mark.parametrize(
        ("on_deadline", "state"),
        [(OnDeadline.TIME_OUT, State.TIMED_OUT), (OnDeadline.COMPLETE, State.COMPLETE)],
    )
    def test_is_met_when_the_alarm_did_not_come(
        self, world: World, on_deadline: OnDeadline, state: State
    ) -> None:
        batch, _ = world.batch(5, deadline=world.clock.at + 1_000, on_deadline=on_deadline)
        world.clock.advance(61_001)

        assert world.ledger.reap() == Reaped(seen=1, timed_out=1)
        assert world.row(batch).state is state

    def test_of_a_batch_that_stays_active_is_not_forgotten(self, world: World) -> None:
        """Activity moves the index key, but never past the deadline."""
        batch, (group,) = world.batch(50, deadline=world.clock.at + 5 * HOUR)
        for item in group[:40]:
            world.clock.advance(HOUR // 4)
            world.fresh().ack([item])

        assert world.fresh().reap() == Reaped(seen=1, timed_out=1)
        assert world.row(batch).state is State.TIMED_OUT


class TestBudget:
    def test_ends_a_run_and_the_next_goes_on(self, world: World) -> None:
        for _ in range(250):
            world.batch(1)
        world.clock.advance(2 * HOUR)

        runs = [world.ledger.reap(budget=100) for _ in range(4)]

        assert [run.seen for run in runs] == [100, 100, 50, 0]
        assert [run.more for run in runs] == [True, True, False, False]
        assert sum(run.orphaned for run in runs) == 250

    def test_covers_open_and_closed_batches(self, world: World) -> None:
        world.batch(1)
        world.batch(1, closed=True)
        world.clock.advance(8 * DAY)

        assert world.ledger.reap() == Reaped(seen=2, orphaned=2, stuck=1)
