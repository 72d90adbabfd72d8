"""The walk visits what is pending, in order, and stops where its budget says."""

from __future__ import annotations

from collections.abc import Iterable

import pytest

from fanin.app.ledger.walk import CHUNK, Visited, Walk
from fanin.domain.batch import Batch
from fanin.domain.marks import ItemRange
from tests.unit.app.conftest import World

FULL = 0b1111
"""A word of the world's narrow tree; one of level 1 stands for 16 items, one of level 2 for 64."""


def walk(world: World, batch: Batch, start: int = 0, stop: int | None = None, budget: int = 10_000) -> Walk:
    return Walk(world.ports, batch, start=start, stop=stop, budget=budget)


def leaves(found: Iterable[Visited]) -> list[int]:
    """The words of level 0 that a walk visits."""
    return [one.number for one in found if one.level == 0]


def pending_leaves(world: World, batch: Batch) -> list[int]:
    """The words of level 0 that hold pending items, each looked at by itself."""
    return sorted({ordinal // 4 for ordinal in world.ledger.pending(batch.batch_id, 0, batch.items)})


class TestVisits:
    def test_nothing_of_an_empty_batch_and_the_one_word_of_a_small_one(self, world: World) -> None:
        batch, _ = world.batch()
        found = walk(world, batch)

        assert list(found) == []
        assert (found.reads, found.stopped_at) == (0, None)
        world.ledger.mark([world.ledger.add(batch.batch_id, 4)[1]]).whole()
        assert [one[:3] for one in walk(world, world.row(batch))] == [(0, 0, 0b1101)]

    def test_parents_before_children_and_items_in_order(self, world: World) -> None:
        batch, (group,) = world.batch(20)
        world.ledger.mark([group[5]]).whole()

        assert [one[:3] for one in walk(world, batch)] == [
            (2, 0, FULL),
            (1, 0, FULL),
            (1, 1, FULL),
            (0, 0, FULL),
            (0, 1, 0b1101),
            (0, 2, FULL),
            (0, 3, FULL),
            (0, 4, FULL),
        ]

    def test_no_word_below_a_bit_that_is_done(self, world: World) -> None:
        # Given 64 items of which the second and third sixteen are done, and four of the last
        batch, (group,) = world.batch(64)
        world.ledger.mark([ItemRange(group.prefix, 16, 48), ItemRange(group.prefix, 52, 56)]).whole()

        found = walk(world, batch)

        assert [one[:2] for one in found] == [
            (2, 0),
            *[(1, 0), (1, 3)],
            *[(0, number) for number in (0, 1, 2, 3, 12, 14, 15)],
        ]
        assert found.reads == 10

    def test_no_more_than_the_missing_costs(self, world: World) -> None:
        # Given a million items of which one is missing
        n = 4**10
        batch, (group,) = world.batch(n)
        world.ledger.mark([ItemRange(group.prefix, 0, 777_777), ItemRange(group.prefix, 777_778, n)]).whole()
        found = walk(world, batch)

        assert leaves(found) == [777_777 // 4]
        assert found.reads == 1 + world.ports.tree.root_level(n)

    def test_only_items_that_the_row_counts(self, world: World) -> None:
        # Given items that were added after the row was read
        batch, _ = world.batch(5)
        world.ledger.add(batch.batch_id, 20)

        assert leaves(walk(world, batch)) == [0, 1]


class TestRange:
    @pytest.mark.parametrize(
        ("start", "stop", "expected"),
        [
            (0, None, range(16)),
            (0, 64, range(16)),
            (0, 1_000, range(16)),
            (5, None, range(1, 16)),
            (4, 8, [1]),
            (7, 9, [1, 2]),
            (63, 64, [15]),
            (0, 1, [0]),
            (9, 8, []),
            (64, None, []),
        ],
    )
    def test_bounds_the_words_that_are_visited(
        self, world: World, start: int, stop: int | None, expected: range | list[int]
    ) -> None:
        batch, _ = world.batch(64)

        assert leaves(walk(world, batch, start, stop)) == list(expected)

    def test_bounds_the_words_above_the_leaves_too(self, world: World) -> None:
        batch, _ = world.batch(64)
        found = walk(world, batch, 30, 34)

        assert [one[:2] for one in found] == [(2, 0), (1, 1), (1, 2), (0, 7), (0, 8)]
        assert found.reads == world.accesses.reads["words.read"] == 5


class TestBudget:
    @pytest.mark.parametrize(("start", "stop", "stopped_at"), [(0, None, 0), (30, None, 30), (8, 8, None)])
    def test_of_nothing_stops_at_the_start(
        self, world: World, start: int, stop: int | None, stopped_at: int | None
    ) -> None:
        batch, _ = world.batch(64)
        found = walk(world, batch, start, stop, budget=0)

        assert list(found) == []
        assert (found.reads, found.stopped_at) == (0, stopped_at)
        assert world.accesses.reads["words.read"] == 0

    def test_is_kept_to_the_word(self, world: World) -> None:
        # Given words of level 0 below others, eight of which are read at a time
        batch, _ = world.batch(1_024)
        above = 1 + 4 + 8 + 8
        found = walk(world, batch, budget=above + 7)

        assert leaves(found) == list(range(7))
        assert found.reads == world.accesses.reads["words.read"] == above + 7
        assert found.stopped_at == 7 * 4

    def test_that_ends_above_the_leaves_stops_before_the_first_of_them(self, world: World) -> None:
        batch, _ = world.batch(64)
        found = walk(world, batch, 30, budget=2)

        assert leaves(found) == []
        assert found.stopped_at == 30

    @pytest.mark.parametrize("budget", [190, 300, 10_000])
    def test_never_loses_a_word_when_the_walk_goes_on_where_it_stopped(
        self, world: World, budget: int
    ) -> None:
        # Given a deep batch in which a third is done, in large pieces and small ones
        batch, (group,) = world.batch(3_000)
        done = [(0, 70), (100, 101), (400, 900), (1_500, 1_507), (2_996, 3_000)]
        world.ledger.mark([ItemRange(group.prefix, *span) for span in done]).whole()
        expected = pending_leaves(world, batch)

        # When each walk begins where the one before stopped
        seen: list[int] = []
        at: int | None = 0
        walks = 0
        while at is not None:
            found = walk(world, batch, at, budget=budget)
            seen += leaves(found)
            assert found.reads <= budget
            assert found.stopped_at is None or found.stopped_at >= at
            at, walks = found.stopped_at, walks + 1
            assert walks < 100

        # Then every pending word was visited once, in order
        assert seen == expected
        assert (walks == 1) == (budget == 10_000)


def test_the_words_that_are_read_at_once_may_become_more_on_the_way(world: World) -> None:
    # Given a walk that reads one word after the other on its way to the first item, and may just read all
    batch, _ = world.batch(64)
    steps = Walk(world.ports, batch, budget=21, chunk=1)
    found = iter(steps)
    first = [next(found) for _ in range(3)]
    assert [one[:3] for one in first] == [(2, 0, FULL), (1, 0, FULL), (0, 0, FULL)]
    assert steps.reads == world.accesses.reads["words.read"] == 3

    # When it may read many at once from there on, then it goes on to the end
    steps.chunk = CHUNK
    assert leaves(found) == list(range(1, 16))
    assert (steps.reads, steps.stopped_at) == (21, None)


def test_items_that_are_done_while_the_walk_is_under_way_are_not_visited_below_their_parent(
    world: World,
) -> None:
    # Given a walk that has read the root only, when the first sixteen items are done
    batch, (group,) = world.batch(64)
    steps = iter(walk(world, batch))
    next(steps)
    assert world.accesses.reads["words.read"] == 1
    world.ledger.mark([ItemRange(group.prefix, 0, 16)]).whole()

    # Then it finds the word of level 1 done, and nothing below it
    rest = list(steps)
    assert rest[0][:3] == (1, 0, 0)
    assert leaves(rest) == list(range(4, 16))
