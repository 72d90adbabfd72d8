"""The walk visits what is pending, in order, and stops where its budget says.

Totals ride the tree: each item's values count once, and a status finds their sum at any time.
"""

from collections.abc import Iterable, Mapping

import pytest

from fanin.app.ledger.walk import CHUNK, Visited, Walk, count_totals
from fanin.app.ports import batches
from fanin.domain.batch import Batch, OpenBatch, State
from fanin.domain.ids import Group
from fanin.domain.marks import Done, Failure, ItemRange
from fanin.domain.tree import Bits
from fanin.errors import InvalidRequest
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
    def test_parents_before_children_and_items_in_order(self, world):
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

    def test_no_more_than_the_missing_costs(self, world):
        # Given a million items of which one is missing
        n = 4**10
        batch, (group,) = world.batch(n)
        world.ledger.mark([ItemRange(group.prefix, 0, 777_777), ItemRange(group.prefix, 777_778, n)]).whole()
        found = walk(world, batch)

        assert leaves(found) == [777_777 // 4]
        assert found.reads == 1 + world.ports.tree.root_level(n)


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
    def test_bounds_the_words_that_are_visited(self, world, start, stop, expected):
        batch, _ = world.batch(64)

        assert leaves(walk(world, batch, start, stop)) == list(expected)

    def test_bounds_the_words_above_the_leaves_too(self, world):
        batch, _ = world.batch(64)
        found = walk(world, batch, 30, 34)

        assert [one[:2] for one in found] == [(2, 0), (1, 1), (1, 2), (0, 7), (0, 8)]
        assert found.reads == world.accesses.reads["words.read"] == 5


class TestBudget:
    @pytest.mark.parametrize(("start", "stop", "stopped_at"), [(0, None, 0), (30, None, 30), (8, 8, None)])
    def test_of_nothing_stops_at_the_start(self, world, start, stop, stopped_at):
        batch, _ = world.batch(64)
        found = walk(world, batch, start, stop, budget=0)

        assert list(found) == []
        assert (found.reads, found.stopped_at) == (0, stopped_at)
        assert world.accesses.reads["words.read"] == 0

    def test_is_kept_to_the_word(self, world):
        # Given words of level 0 below others, eight of which are read at a time
        batch, _ = world.batch(1_024)
        above = 1 + 4 + 8 + 8
        found = walk(world, batch, budget=above + 7)

        assert leaves(found) == list(range(7))
        assert found.reads == world.accesses.reads["words.read"] == above + 7
        assert found.stopped_at == 7 * 4

    def test_that_ends_above_the_leaves_stops_before_the_first_of_them(self, world):
        batch, _ = world.batch(64)
        found = walk(world, batch, 30, budget=2)

        assert leaves(found) == []
        assert found.stopped_at == 30

    @pytest.mark.parametrize("budget", [190, 300, 10_000])
    def test_never_loses_a_word_when_the_walk_goes_on_where_it_stopped(self, world, budget):
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


def test_the_words_that_are_read_at_once_may_become_more_on_the_way(world):
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


NAMES = ("rows", "cents")


def opened(world: World, items: int, *, closed: bool = False, **request: object) -> tuple[Batch, Group]:
    batch = world.ledger.open(OpenBatch(totals=NAMES, **request))
    group = world.ledger.add(batch.batch_id, items)
    if closed:
        world.ledger.close(batch.batch_id)
    return batch, group


def results(group: Group, ordinals: Iterable[int], *, rows: int = 1) -> list[Done]:
    return [Done(group[n], {"rows": rows, "cents": -n}) for n in ordinals]


def totals(world: World, batch: Batch, *, exact: bool = True) -> tuple[Mapping[str, int], bool]:
    row = world.ledger.status(batch.batch_id, exact=exact).batch
    return row.totals, row.totals_exact


def completed(world: World, items: int, done: batches.Completion) -> Batch:
    """A batch of so many items, all done, whose row was completed by somebody else than the ledger."""
    batch, group = opened(world, items)
    world.ledger.mark(results(group, range(items))).whole()
    now, store = world.clock.now(), world.ports.batches
    store.close(batch.batch_id, now=now)
    store.end(batch.batch_id, State.COMPLETE, now=now, sources=(State.CLOSED,), done=done)
    return batch


class TestSums:
    @pytest.mark.parametrize("closed", [True, False])
    def test_of_a_complete_batch_stand_in_its_row(self, world, *, closed):
        # Given a batch whose last words are residues, closed before or after its last item
        batch, group = opened(world, 39, closed=closed)
        world.ledger.mark(results(group, range(39))).whole()
        world.ledger.close(batch.batch_id)

        row = world.ledger.status(batch.batch_id).batch
        assert (row.state, row.totals_exact) == (State.COMPLETE, True)
        assert row.totals == {"rows": 39, "cents": -sum(range(39))}

    def test_a_walk_that_ends_early_and_a_plain_status_say_that_they_do_not_know_all(self, world):
        batch, group = opened(world, 4**4)
        world.ledger.mark(results(group, range(0, 256, 4))).whole()

        assert totals(world, batch, exact=False) == ({"rows": 0, "cents": 0}, False)
        assert not count_totals(world.ports, world.row(batch), budget=3).totals_exact

    def test_of_a_new_batch_are_zero(self, world):
        batch, _ = opened(world, 4**4)

        assert totals(world, batch) == ({"rows": 0, "cents": 0}, True)
        assert totals(world, world.ledger.open(OpenBatch(totals=NAMES))) == ({"rows": 0, "cents": 0}, True)


class TestVerify:
    def test_says_that_a_row_has_other_totals_than_its_words_and_repairs_nothing(self, world):
        # Given a complete batch whose row says something else
        done = batches.Completion(0, failed_more=False, totals={"rows": 21, "cents": 0}, totals_exact=True)
        batch = completed(world, 16, done)

        verdict = world.ledger.verify(batch.batch_id)
        assert not verdict.repaired
        (found,) = verdict.disagreements
        assert "{'rows': 21, 'cents': 0}, but its words {'rows': 16, 'cents': -120}" in found

    def test_repairs_words_of_a_batch_that_was_completed_around_them(self, world):
        # Given a complete row whose last word was never settled
        batch = completed(world, 20, batches.Completion(0, False))

        assert world.ledger.verify(batch.batch_id).repaired
        assert totals(world, batch) == ({"rows": 20, "cents": -190}, True)


def test_ranges_are_marked_on_level_0_and_pass_over_nothing(world):
    batch, group = opened(world, 64, closed=True)
    world.ledger.mark(results(group, [5, 22])).whole()
    with pytest.raises(InvalidRequest, match="which has totals: mark its items on level 0"):
        world.ledger.clear({batch.batch_id: [Bits(1, 0, 1)]})
    world.ledger.mark([ItemRange(group.prefix)]).whole()

    row = world.ledger.status(batch.batch_id).batch
    assert (row.state, row.totals, row.totals_exact) == (State.COMPLETE, {"rows": 2, "cents": -27}, True)


class TestRefused:
    @pytest.mark.parametrize(
        ("values", "why"),
        [
            ({"row": 1}, "has no total 'row': its totals are rows, cents"),
            ({"rows": 1.5}, "whole number"),
            ({"rows": 2**53 + 1}, "whole number"),
        ],
    )
    def test_values_write_nothing(self, world, values, why):
        _, group = opened(world, 4)

        for mark in (Done(group[1], values), Failure(group[1], "no", totals=values)):
            with world.refusing(InvalidRequest, why):
                world.ledger.mark([mark]).whole()

    def test_names_at_the_opening(self, world):
        with pytest.raises(InvalidRequest, match="at most 4 totals"):
            world.ledger.open(OpenBatch(totals=("a", "b", "c", "d", "e")))


def test_a_batch_with_totals_takes_the_writes_of_one_without(world):
    def writes(names: tuple[str, ...]) -> dict[str, int]:
        _, (group,) = world.batch(64, closed=True, totals=names)
        world.accesses.writes.clear()
        for item in group:
            world.ledger.mark([Done(item, dict.fromkeys(names, 1))]).whole()
        return dict(world.accesses.writes)

    assert writes(NAMES) == writes(())
    assert not world.accesses.refused


def test_a_retry_starts_at_zero_and_knows_the_sums_before(world):
    first, group = opened(world, 4, closed=True)
    world.ledger.mark(results(group, range(3))).whole()
    world.ledger.mark([Failure(group[3], "no price")]).whole()
    second = world.ledger.open(OpenBatch(totals=NAMES, retry_of=first.batch_id))
    third = world.ledger.open(OpenBatch(totals=("rows",), retry_of=second.batch_id))

    assert (second.totals, second.totals_before) == ({"rows": 0, "cents": 0}, {"rows": 3, "cents": -3})
    assert third.totals_before == {"rows": 3}
