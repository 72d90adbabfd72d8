"""What a process remembers of batches.

Only blocks that the service gave, of items that are there, pass.
"""

from __future__ import annotations

from dataclasses import replace

import pytest

from fanin.adapters.memory import Memory
from fanin.app.ledger.known_batches import KnownBatches
from fanin.app.ledger.service import LedgerService
from fanin.domain.batch import Batch, OpenBatch, State
from fanin.domain.marks import Failure
from fanin.errors import BatchNotFound, InvalidItemId
from tests.unit.app.conftest import World


@pytest.fixture
def known(world: World) -> KnownBatches:
    return KnownBatches(world.ports.batches, world.clock, capacity=2)


def test_a_live_row_is_read_again_after_half_a_minute(world: World, known: KnownBatches) -> None:
    batch, _ = world.batch(3)
    known.fresh([batch.batch_id])
    world.fresh().cancel(batch.batch_id)

    world.clock.advance(29_999)
    with world.costing(reads=0):
        assert known.fresh([batch.batch_id]) == {batch.batch_id: batch}
    world.clock.advance(1)
    assert known.fresh([batch.batch_id])[batch.batch_id].state is State.CANCELLED


def test_a_row_that_does_not_reach_far_enough_is_read_again(world: World, known: KnownBatches) -> None:
    # Given a row that was seen before two more items were added
    batch, _ = world.batch(3)
    known.fresh([batch.batch_id])
    world.fresh().add(batch.batch_id, 2)

    # Then it is read again by who names the new ones alone, and one that falls short stays as it is
    with world.costing(reads=0):
        assert known.reaching({batch.batch_id: 3})[batch.batch_id].items == 3
    assert known.reaching({batch.batch_id: 5})[batch.batch_id].items == 5
    assert known.reaching({batch.batch_id: 9})[batch.batch_id].items == 5


def test_the_oldest_row_makes_room(world: World, known: KnownBatches) -> None:
    first, second, third = (world.batch()[0] for _ in range(3))

    for batch in (first, second, first, third):
        known.remember(batch)

    assert known.cached(second.batch_id) is None
    assert known.cached(first.batch_id) == first
    assert known.cached(third.batch_id) == third


@pytest.mark.parametrize(
    "later",
    [{"state": State.CLOSED}, {"state": State.COMPLETE}, {"items": 4}, {"acked": 1}],
    ids=str,
)
def test_an_answer_that_was_overtaken_by_another_thread_changes_nothing(
    world: World, known: KnownBatches, later: dict[str, object]
) -> None:
    # Given a row, and the row as it was before
    before, _ = world.batch(3)
    after = replace(before, **later)

    # When the older is remembered last
    known.remember(after)

    # Then the later one stays
    assert known.remember(before) == after
    assert known.cached(before.batch_id) == after


def test_activity_is_written_once_in_a_tenth_of_the_idle_time(world: World, known: KnownBatches) -> None:
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
def test_an_item_id_of_another_deployment_is_unknown(*, same_id: bool) -> None:
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
    # Then nothing is marked there
    assert not ours.accesses.writes["words.clear"]
    assert ledger.mark([group[0]]).whole()[0].first == 1


def test_a_row_is_read_anew_however_fresh_it_is_for_who_asks(world: World, known: KnownBatches) -> None:
    (one, _), (other, _) = world.batch(3), world.batch(3)
    known.fresh([one.batch_id, other.batch_id])
    world.fresh().close(one.batch_id)

    with world.costing(reads=1):
        rows = known.try_reaching({one.batch_id: 0, other.batch_id: 0}, anew=[one.batch_id])

    assert rows[one.batch_id].state is State.CLOSED  # type: ignore[union-attr]
    assert rows[other.batch_id] == other
