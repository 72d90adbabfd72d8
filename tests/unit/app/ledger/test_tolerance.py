"""A batch in which too much fails is cancelled, with a cause; one within its tolerance never is."""

from __future__ import annotations

import pytest

from fanin.app.ledger.reading import Inspected, Reading
from fanin.app.ports.parts import Redriven
from fanin.domain.batch import Cause, Mode, OnFailure, OpenBatch, State
from fanin.domain.failures import Tolerance
from fanin.domain.marks import Failure, Receipt
from fanin.errors import InvalidRequest, Throttled
from tests.unit.app.conftest import World


def fail(world: World, *items: str) -> Receipt:
    (receipt,) = world.ledger.mark([Failure(item, "no") for item in items]).whole()
    return receipt


def test_beyond_the_count_the_batch_is_cancelled(world: World) -> None:
    # Given a batch that tolerates three
    batch, (group,) = world.batch(20, closed=True, tolerated_failures=Tolerance(count=3))

    # When three fail
    assert fail(world, *group[0:3]).state is State.CLOSED

    # Then the fourth ends it, and the event says why
    receipt = fail(world, group[3])
    row = world.row(batch)
    assert (receipt.state, receipt.first) == (State.CANCELLED, 1)
    assert (row.state, row.cause) == (State.CANCELLED, Cause.FAILURES)
    world.ledger.announce(row)
    detail = world.memory.events.published[-1].detail
    assert (detail["cause"], detail["failed"]) == ("failures", 4)


def test_a_cancel_that_was_asked_for_has_no_cause(world: World) -> None:
    batch, _ = world.batch(1, tolerated_failures=Tolerance(count=0))
    assert world.ledger.cancel(batch.batch_id).cause is None


def test_a_share_of_what_is_done(world: World) -> None:
    batch, (group,) = world.batch(64, tolerated_failures=Tolerance(percent=25, min_sample=8))
    assert fail(world, *group[0:7]).state is State.OPEN  # all of 7, and 8 must be done
    world.ledger.mark(list(group[7:31])).whole()
    assert fail(world, group[31]).state is State.OPEN  # 8 of 32
    assert fail(world, group[32]).state is State.CANCELLED  # 9 of 33
    assert world.row(batch).cause is Cause.FAILURES


def test_repeats_of_a_failure_do_not_count(world: World) -> None:
    batch, (group,) = world.batch(20, tolerated_failures=Tolerance(count=2))
    for _ in range(5):
        fail(world, group[0], group[1])

    assert world.row(batch).state is State.OPEN
    assert world.row(batch).failing == 2


def test_what_failed_before_the_rest_of_a_call_was_throttled_counts(world: World) -> None:
    batch, (group,) = world.batch(20, closed=True, tolerated_failures=Tolerance(count=1))
    world.raise_at("words.clear", "before", Throttled("busy"), after=2)

    with pytest.raises(Throttled):
        fail(world, group[0], group[4], group[8])

    assert world.row(batch).cause is Cause.FAILURES


def test_a_hint_that_is_too_high_decides_nothing(world: World) -> None:
    batch, (group,) = world.batch(20, tolerated_failures=Tolerance(count=2))
    world.ports.batches.hint_failures(batch.batch_id, 1_000)

    assert fail(world, group[0]).state is State.OPEN
    assert fail(world, group[1]).state is State.OPEN
    assert fail(world, group[2]).state is State.CANCELLED


def test_a_hint_that_was_lost_delays(world: World) -> None:
    # Given a request whose hint is not written
    batch, (group,) = world.batch(20, closed=True, tolerated_failures=Tolerance(count=2))

    world.raise_at("batches.hint_failures", "before", Throttled("busy"))
    assert fail(world, *group[0:9]).first == 9
    assert world.row(batch).state is State.CLOSED

    # When the reaper comes by
    world.clock.advance(16 * 60_000)
    reaped = world.ledger.reap()

    # Then it ends the batch
    assert (reaped.cancelled, world.row(batch).cause) == (1, Cause.FAILURES)


def test_the_close_looks_too(world: World) -> None:
    batch, (group,) = world.batch(40, tolerated_failures=Tolerance(percent=10, min_sample=20))
    fail(world, *group[0:10])
    world.ledger.mark(list(group[10:20])).whole()

    assert world.ledger.close(batch.batch_id).cause is Cause.FAILURES


def test_held_items_count_and_released_ones_count_once(world: World) -> None:
    batch, (group,) = world.batch(20, on_failure=OnFailure.HOLD, tolerated_failures=Tolerance(count=3))
    assert fail(world, group[0], group[1]).held == 2
    world.ledger.release(batch.batch_id)
    assert fail(world, group[2]).state is State.OPEN
    assert fail(world, group[3]).state is State.CANCELLED


def test_items_that_are_redriven_while_it_counts_do_not_end_it(world: World) -> None:
    # Given a batch of which as much failed as it tolerates: 10 of 20
    batch, (group,) = world.batch(
        40, on_failure=OnFailure.HOLD, tolerated_failures=Tolerance(percent=50, min_sample=10)
    )
    world.ledger.mark(list(group[0:10])).whole()
    assert fail(world, *group[10:20]).state is State.OPEN
    notes, _ = world.ports.parts.failures(batch.batch_id)
    taken = {note.ordinal: note.failed_at for note in notes}

    # When a redrive takes them, after they were counted as failures and before as done
    for _ in taken:
        world.at("parts.redriven", "after", lambda: None)
    world.at(
        "words.read",
        "before",
        lambda: world.ports.parts.mark_redriven(
            batch.batch_id,
            {n: Redriven("r", at) for n, at in taken.items()},
            {},
            expires_at=batch.expires_at,
        ),
    )
    row = world.ledger.close(batch.batch_id)

    # Then it goes on
    assert world.happened
    assert (row.state, row.cause) == (State.CLOSED, None)


def test_a_held_item_that_is_done_while_it_counts_is_one_item_of_the_sample(world: World) -> None:
    # Given a batch of which one item is missing for the share of failures to say something
    batch, (group,) = world.batch(
        40, on_failure=OnFailure.HOLD, tolerated_failures=Tolerance(percent=10, min_sample=10)
    )
    world.ledger.mark(list(group[0:5])).whole()
    assert fail(world, *group[5:9]).state is State.OPEN

    # When a held item is acknowledged after it was counted as held, and before as done
    for _ in group[5:9]:
        world.at("parts.redriven", "after", lambda: None)
    world.at("words.read", "before", lambda: world.fresh().mark([group[5]]).whole())
    row = world.ledger.close(batch.batch_id)

    # Then nine are done still
    assert world.happened
    assert (row.state, row.cause) == (State.CLOSED, None)
    # And a tenth one that fails ends it: what is held is part of what is done
    assert fail(world, group[9]).state is State.CANCELLED


def test_a_batch_that_may_be_complete_is_not_given_up(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    _, (group,) = world.batch(20, tolerated_failures=Tolerance(count=2))
    uncertain = lambda _ledger, row: Inspected(row, certain=False)  # noqa: E731
    monkeypatch.setattr(Reading, "inspect", uncertain)
    assert fail(world, *group[0:9]).state is State.OPEN

    monkeypatch.undo()
    assert fail(world, group[9]).state is State.CANCELLED


def test_a_batch_of_which_all_is_done_completes_whatever_failed(world: World) -> None:
    batch, (group,) = world.batch(3, closed=True, tolerated_failures=Tolerance(count=0))

    assert fail(world, *group).state is State.COMPLETE
    assert (world.row(batch).cause, world.row(batch).failed) == (None, 3)


def test_costs_one_write_a_failing_request_where_it_is_set_and_else_none(world: World) -> None:
    def writes(tolerance: Tolerance | None) -> int:
        _, (group,) = world.batch(20, tolerated_failures=tolerance)
        before = world.written()
        fail(world, *group[0:5])
        return world.written() - before

    assert writes(Tolerance(count=9)) == writes(None) + 1


def test_what_cannot_be_counted_is_refused(world: World) -> None:
    with pytest.raises(InvalidRequest, match="open the batch in exact mode"):
        world.ledger.open(OpenBatch(mode=Mode.ESTIMATED, tolerated_failures=Tolerance(count=1)))
    with pytest.raises(InvalidRequest, match="needs a count"):
        world.ledger.open(OpenBatch(tolerated_failures=Tolerance()))
