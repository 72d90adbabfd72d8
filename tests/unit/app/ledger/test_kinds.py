"""Hooks of patterns: called for batches of their kind, on the occasion that they are for."""

from __future__ import annotations

from dataclasses import replace

import pytest

from fanin.app.api import Ledger
from fanin.app.ledger.kinds import Kinds
from fanin.app.ledger.service import LedgerService
from fanin.app.ports.batches import Activity
from fanin.app.ports.events import Event
from fanin.domain.batch import Batch, Kind, OpenBatch, State
from tests.unit.app.conftest import World


class Pattern:
    """A pattern of one kind, that keeps what it is called with."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.called: list[tuple[str, Ledger, int]] = []
        self.answer: State | None = None

    def ended(self, ledger: Ledger, batch: Batch, event: Event) -> Event:
        self.called.append(("ended", ledger, batch.batch_id))
        return event._replace(detail_type="Buffer Ended")

    def due(self, ledger: Ledger, batch: Batch) -> Batch | None:
        self.called.append(("due", ledger, batch.batch_id))
        return None if self.answer else batch

    def idle(self, ledger: Ledger, batch: Batch) -> State | None:
        self.called.append(("idle", ledger, batch.batch_id))
        later = replace(batch, touched_at=self.world.clock.at)
        self.world.ports.batches.touch(batch.batch_id, Activity(later.touched_at, later.due_at))
        return self.answer


@pytest.fixture
def pattern(world: World) -> Pattern:
    return Pattern(world)


@pytest.fixture
def ledger(world: World, pattern: Pattern) -> LedgerService:
    kind = Kind.BUFFER
    return LedgerService(world.ports, Kinds({kind: pattern.ended}, {kind: pattern.due}, {kind: pattern.idle}))


def test_a_plain_batch_is_none_of_a_pattern_s_business(
    world: World, ledger: LedgerService, pattern: Pattern
) -> None:
    # Given plain batches that end, are due and are idle
    for request in (OpenBatch(deadline=world.clock.at + 1_000), OpenBatch(idle_ttl=60)):
        world.ports.batches.read([ledger.open(request).batch_id])
    world.clock.advance(100_000)

    # When the reaper comes by, and the ends are announced
    reaped = ledger.reap()
    for _, row in world.memory.batches.changes:
        if row.state.terminal:
            ledger.announce(row)

    # Then they end as any batch
    assert (reaped.timed_out, reaped.orphaned) == (1, 1)
    assert pattern.called == []


def test_the_end_of_a_batch_is_told_as_its_pattern_says(
    world: World, ledger: LedgerService, pattern: Pattern
) -> None:
    batch = ledger.cancel(ledger.open(OpenBatch(kind=Kind.BUFFER)).batch_id)

    ledger.announce(batch)

    assert world.memory.events.published[-1].detail_type == "Buffer Ended"
    assert pattern.called == [("ended", ledger, batch.batch_id)]


@pytest.mark.parametrize(("answer", "state"), [(None, State.OPEN), (State.CANCELLED, State.TIMED_OUT)])
def test_a_deadline_is_postponed_or_met(
    world: World, ledger: LedgerService, pattern: Pattern, answer: State | None, state: State
) -> None:
    batch = ledger.open(OpenBatch(kind=Kind.BUFFER, deadline=world.clock.at + 1_000))
    world.clock.advance(1_000)
    pattern.answer = answer

    row = ledger.meet_deadline(batch.batch_id)

    assert row is not None
    assert row.state is world.row(batch).state is state
    assert pattern.called == [("due", ledger, batch.batch_id)]


def test_a_deadline_that_has_not_come_asks_no_pattern(
    world: World, ledger: LedgerService, pattern: Pattern
) -> None:
    batch = ledger.open(OpenBatch(kind=Kind.BUFFER, deadline=world.clock.at + 10_000))

    ledger.meet_deadline(batch.batch_id)

    assert pattern.called == []


def test_an_idle_batch_is_spared_or_ends_in_the_state_its_pattern_names(
    world: World, ledger: LedgerService, pattern: Pattern
) -> None:
    # Given an idle batch that its pattern spares once
    batch = ledger.open(OpenBatch(kind=Kind.BUFFER, idle_ttl=60))
    world.clock.advance(60_000)
    spared, at_once = ledger.reap(), ledger.reap()

    # When it is idle again, and the pattern has had enough
    assert world.row(batch).state is State.OPEN
    world.clock.advance(60_001)
    pattern.answer = State.TIMED_OUT
    pattern.idle = lambda *_: State.TIMED_OUT  # type: ignore[method-assign]
    ended = LedgerService(world.ports, Kinds(idle={Kind.BUFFER: pattern.idle})).reap()

    # Then it was looked at twice, and ended once
    assert (spared.spared, at_once.seen) == (1, 0)
    assert (ended.spared, ended.timed_out, ended.orphaned) == (0, 1, 0)
    assert world.row(batch).state is State.TIMED_OUT
