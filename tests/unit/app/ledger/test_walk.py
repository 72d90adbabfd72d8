"""The walk down the pending words: in order, no further than it must, and resumable."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fanin.app.ledger import walk
from fanin.app.ledger.walk import Walk
from fanin.domain.acks import ItemRange
from fanin.domain.batch import Batch
from tests.unit.app.conftest import World


def batch_of(world: World, items: int, *done: tuple[int, int]) -> Batch:
    """A batch of which some ranges are done."""
    batch, (group,) = world.batch(items)
    if done:
        world.fresh().ack(ranges=[ItemRange(group.prefix, start, stop) for start, stop in done])
    return world.row(batch)


def test_parents_come_before_children_and_leaves_ascend(world: World) -> None:
    batch = batch_of(world, 20)

    visited = [(level, number) for level, number, _ in Walk(world.ports, batch, budget=100)]

    assert visited == [(2, 0), (1, 0), (1, 1), *[(0, n) for n in range(5)]]


def test_what_is_done_high_up_is_not_visited(world: World) -> None:
    # Given 64 items, of which a quarter was marked two levels up
    batch = batch_of(world, 64, (16, 32))

    found = Walk(world.ports, batch, budget=100)
    leaves = [number for level, number, _ in found if level == 0]

    assert leaves == [n for n in range(16) if n not in range(4, 8)]
    assert found.reads == 1 + 3 + 12


def test_it_costs_what_is_missing_and_not_what_there_is() -> None:
    world = World(width=64)
    items = 10**6
    batch = batch_of(world, items, (0, 500_000), (500_001, items))

    found = Walk(world.ports, batch, budget=1_000)
    leaves = [number for level, number, _ in found if level == 0]

    assert leaves == [500_000 // 64]
    assert found.reads <= 8


@given(st.integers(1, 70), st.data())
def test_words_outside_of_the_bounds_are_not_visited(items: int, data: st.DataObject) -> None:
    world = World()
    batch = batch_of(world, items)
    start = data.draw(st.integers(0, items - 1))
    stop = data.draw(st.one_of(st.none(), st.integers(start + 1, items + 9)))

    leaves = [n for level, n, _ in Walk(world.ports, batch, start=start, stop=stop, budget=99) if level == 0]

    last = min(items, items if stop is None else stop) - 1
    assert leaves == list(range(start // 4, last // 4 + 1))


@pytest.mark.parametrize("items", [0, 5])
def test_nothing_to_visit_reads_nothing(world: World, items: int) -> None:
    batch, _ = world.batch(*([items] if items else []))
    found = Walk(world.ports, world.row(batch), start=items, budget=9)

    assert list(found) == []
    assert found.reads == 0
    assert found.stopped_at is None


def test_a_walk_goes_on_where_its_budget_ended(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    # Given words that are read two at a time, and a budget of five
    monkeypatch.setattr(walk, "CHUNK", 2)
    batch = batch_of(world, 64, (20, 24))
    leaves: list[int] = []
    walks: list[Walk] = []

    # When walk follows walk until the end
    start: int | None = 0
    while start is not None:
        found = Walk(world.ports, batch, start=start, budget=5)
        leaves += [number for level, number, _ in found if level == 0]
        walks.append(found)
        start = found.stopped_at

    # Then every pending word was visited, in order, and each walk kept its budget but for a chunk
    assert list(dict.fromkeys(leaves)) == [n for n in range(16) if n != 5]
    assert leaves == sorted(leaves)
    assert all(found.reads <= 5 + 1 for found in walks)
    assert len(walks) > 2


def test_a_budget_that_suffices_stops_nothing(world: World) -> None:
    found = Walk(world.ports, batch_of(world, 20), budget=9)

    assert len(list(found)) == found.reads == 8
    assert found.stopped_at is None
