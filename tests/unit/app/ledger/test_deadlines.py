"""What happens when a batch's time is up."""

from __future__ import annotations

import pytest

from fanin.app.ledger.deadlines import EARLY_MS
from fanin.domain.batch import Batch, Mode, OnDeadline, State
from tests.unit.app.conftest import World

MINUTE = 60_000


def with_deadline(world: World, *counts: int, **request: object) -> Batch:
    batch, _ = world.batch(*counts, deadline=world.clock.at + MINUTE, **request)
    return batch


@pytest.mark.parametrize("closed", [False, True])
@pytest.mark.parametrize(
    ("on_deadline", "state", "partial"),
    [(OnDeadline.TIME_OUT, State.TIMED_OUT, False), (OnDeadline.COMPLETE, State.COMPLETE, True)],
)
def test_a_batch_ends_as_it_asked_to(
    world: World, on_deadline: OnDeadline, state: State, partial: bool, closed: bool
) -> None:
    batch = with_deadline(world, 5, on_deadline=on_deadline, closed=closed)
    world.clock.advance(MINUTE)

    ended = world.fresh().meet_deadline(batch.batch_id)

    assert ended == world.row(batch)
    assert (ended.state, ended.partial, ended.ended_at) == (state, partial, world.clock.at)


@pytest.mark.parametrize("mode", Mode)
def test_a_batch_that_is_done_after_all_is_complete_and_not_partial(world: World, mode: Mode) -> None:
    # Given a closer that died before it could complete the batch
    batch, (group,) = world.batch(3, deadline=world.clock.at + MINUTE, mode=mode)
    world.ledger.mark(list(group)).whole()
    with world.dying("batches.close", "after"):
        world.ledger.close(batch.batch_id)
    world.clock.advance(MINUTE)

    ended = world.fresh().meet_deadline(batch.batch_id)

    assert ended is not None
    assert (ended.state, ended.partial) == (State.COMPLETE, False)


@pytest.mark.parametrize(("early", "state"), [(EARLY_MS, State.TIMED_OUT), (EARLY_MS + 1, State.OPEN)])
def test_an_alarm_may_be_early_by_what_clocks_differ(world: World, early: int, state: State) -> None:
    batch = with_deadline(world, 5)
    world.clock.advance(MINUTE - early)

    ended = world.ledger.meet_deadline(batch.batch_id)

    assert ended is not None
    assert ended.state is state


def test_an_alarm_for_an_ended_batch_one_without_deadline_or_none_changes_nothing(world: World) -> None:
    ended, (endless, _) = with_deadline(world, 5), world.batch(5)
    world.ledger.cancel(ended.batch_id)
    world.clock.advance(MINUTE)

    with world.costing(writes=0):
        assert world.ledger.meet_deadline(ended.batch_id) == world.row(ended)
        assert world.ledger.meet_deadline(endless.batch_id) == endless
        assert world.ledger.meet_deadline(5) is None


def test_the_last_item_and_the_deadline_race_to_one_end(world: World) -> None:
    # Given an alarm that has found the batch not done
    batch, (group,) = world.batch(5, deadline=world.clock.at + MINUTE, closed=True)
    world.clock.advance(MINUTE)
    world.at("batches.end", "before", lambda: world.fresh().mark(list(group)).whole())

    # When the last item comes before its write
    ended = world.ledger.meet_deadline(batch.batch_id)

    # Then the batch is complete, and stays so
    assert ended == world.row(batch)
    assert ended.state is State.COMPLETE
