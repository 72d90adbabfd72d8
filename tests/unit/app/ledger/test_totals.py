"""Totals ride the tree: each item's values count once, and a status finds their sum at any time."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import pytest

from fanin.app.ledger.totals import Totals
from fanin.app.ports import batches
from fanin.domain.batch import Batch, OpenBatch, State
from fanin.domain.ids import Group
from fanin.domain.marks import Done, Failure, ItemRange
from fanin.domain.tree import Bits
from fanin.errors import InvalidRequest
from tests.unit.app.conftest import World

NAMES = ("rows", "cents")


def opened(world: World, items: int, *, closed: bool = False, **request: object) -> tuple[Batch, Group]:
    batch = world.ledger.open(OpenBatch(totals=NAMES, **request))  # type: ignore[arg-type]
    group = world.ledger.add(batch.batch_id, items)
    if closed:
        world.ledger.close(batch.batch_id)
    return batch, group


def results(group: Group, ordinals: Iterable[int], *, rows: int = 1) -> list[Done]:
    return [Done(group[n], {"rows": rows, "cents": -n}) for n in ordinals]


def totals(world: World, batch: Batch, *, exact: bool = True) -> tuple[Mapping[str, int], bool]:
    row = world.ledger.status(batch.batch_id, exact=exact).batch
    return row.totals, row.totals_exact


def completed(world: World, done: batches.Done) -> Batch:
    """A batch of so many items, all done, whose row was completed by somebody else than the ledger."""
    batch, group = opened(world, done.acked)
    world.ledger.mark(results(group, range(done.acked))).whole()
    now, store = world.clock.now(), world.ports.batches
    store.close(batch.batch_id, now=now)
    store.end(batch.batch_id, State.COMPLETE, now=now, sources=(State.CLOSED,), done=done)
    return batch


class TestSums:
    def test_of_a_new_batch_are_zero(self, world: World) -> None:
        batch, _ = opened(world, 4**4)

        assert totals(world, batch) == ({"rows": 0, "cents": 0}, True)
        assert totals(world, world.ledger.open(OpenBatch(totals=NAMES))) == ({"rows": 0, "cents": 0}, True)

    def test_are_exact_while_words_are_unfinished_on_every_level(self, world: World) -> None:
        # Given finished words, words with some items done, and untouched ones
        batch, group = opened(world, 4**3)
        done = [*range(16), 17, 20, 21, 22, 23, 63]
        world.ledger.mark(results(group, done)).whole()

        assert totals(world, batch) == ({"rows": len(done), "cents": -sum(done)}, True)

    def test_count_the_first_acknowledgement_of_an_item(self, world: World) -> None:
        batch, group = opened(world, 16)
        world.ledger.mark([Done(group[0], {"rows": 5})]).whole()
        world.ledger.mark([Done(group[0], {"rows": 7}), Done(group[1], {"rows": 3})]).whole()
        world.ledger.mark([group[1]]).whole()
        world.ledger.mark([Failure(group[n], "late", totals={"rows": 9 + n}) for n in (1, 2)]).whole()

        assert totals(world, batch)[0] == {"rows": 8 + 11, "cents": 0}

    @pytest.mark.parametrize("closed", [True, False])
    def test_of_a_complete_batch_stand_in_its_row(self, world: World, *, closed: bool) -> None:
        # Given a batch whose last words are residues, closed before or after its last item
        batch, group = opened(world, 39, closed=closed)
        world.ledger.mark(results(group, range(39))).whole()
        world.ledger.close(batch.batch_id)

        row = world.ledger.status(batch.batch_id).batch
        assert (row.state, row.totals_exact) == (State.COMPLETE, True)
        assert row.totals == {"rows": 39, "cents": -sum(range(39))}

    def test_of_an_empty_batch_are_exact_at_its_end(self, world: World) -> None:
        row = world.ledger.close(world.ledger.open(OpenBatch(totals=NAMES)).batch_id)

        assert (row.state, row.totals, row.totals_exact) == (State.COMPLETE, {"rows": 0, "cents": 0}, True)

    def test_a_walk_that_ends_early_and_a_plain_status_say_that_they_do_not_know_all(
        self, world: World
    ) -> None:
        batch, group = opened(world, 4**4)
        world.ledger.mark(results(group, range(0, 256, 4))).whole()

        assert totals(world, batch, exact=False) == ({"rows": 0, "cents": 0}, False)
        assert not Totals(world.ports).counted(world.row(batch), budget=3).totals_exact

    def test_survive_a_crash_between_a_word_and_its_parent(self, world: World) -> None:
        batch, group = opened(world, 16, closed=True)
        world.ledger.mark(results(group, range(12))).whole()
        with world.dying("words.clear", "after"):
            world.ledger.mark(results(group, range(12, 16))).whole()

        assert totals(world, batch)[0]["rows"] == 16
        assert world.ledger.verify(batch.batch_id).batch.totals == {"rows": 16, "cents": -120}
        assert totals(world, batch) == ({"rows": 16, "cents": -120}, True)


class TestVerify:
    def test_says_that_a_row_has_other_totals_than_its_words_and_repairs_nothing(self, world: World) -> None:
        # Given a complete batch whose row says something else
        done = batches.Done(16, 0, failed_more=False, totals={"rows": 21, "cents": 0}, totals_exact=True)
        batch = completed(world, done)

        verdict = world.ledger.verify(batch.batch_id)
        assert not verdict.repaired
        (found,) = verdict.disagreements
        assert "{'rows': 21, 'cents': 0}, but its words {'rows': 16, 'cents': -120}" in found

    def test_repairs_words_of_a_batch_that_was_completed_around_them(self, world: World) -> None:
        # Given a complete row whose last word was never settled
        batch = completed(world, batches.Done(20, 0, False))

        assert world.ledger.verify(batch.batch_id).repaired
        assert totals(world, batch) == ({"rows": 20, "cents": -190}, True)

    def test_finds_nothing_in_a_complete_batch_of_any_depth(self, world: World) -> None:
        for items in (1, 4, 16, 17, 65):
            batch, group = opened(world, items)
            world.ledger.mark(results(group, range(items))).whole()
            world.ledger.close(batch.batch_id)

            verdict = world.ledger.verify(batch.batch_id)
            assert (verdict.disagreements, verdict.batch.totals["rows"]) == ((), items)
            assert verdict.batch.totals_exact


def test_ranges_are_marked_on_level_0_and_pass_over_nothing(world: World) -> None:
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
    def test_values_write_nothing(self, world: World, values: Mapping[str, int], why: str) -> None:
        _, group = opened(world, 4)

        for mark in (Done(group[1], values), Failure(group[1], "no", totals=values)):
            with world.refusing(InvalidRequest, why):
                world.ledger.mark([mark]).whole()

    def test_names_at_the_opening(self, world: World) -> None:
        with pytest.raises(InvalidRequest, match="at most 4 totals"):
            world.ledger.open(OpenBatch(totals=("a", "b", "c", "d", "e")))


def test_a_batch_with_totals_takes_the_writes_of_one_without(world: World) -> None:
    def writes(names: tuple[str, ...]) -> dict[str, int]:
        _, (group,) = world.batch(64, closed=True, totals=names)
        world.accesses.writes.clear()
        for item in group:
            world.ledger.mark([Done(item, dict.fromkeys(names, 1))]).whole()
        return dict(world.accesses.writes)

    assert writes(NAMES) == writes(())
    assert not world.accesses.refused


def test_a_retry_starts_at_zero_and_knows_the_sums_before(world: World) -> None:
    first, group = opened(world, 4, closed=True)
    world.ledger.mark(results(group, range(3))).whole()
    world.ledger.mark([Failure(group[3], "no price")]).whole()
    second = world.ledger.open(OpenBatch(totals=NAMES, retry_of=first.batch_id))
    third = world.ledger.open(OpenBatch(totals=("rows",), retry_of=second.batch_id))

    assert (second.totals, second.totals_before) == ({"rows": 0, "cents": 0}, {"rows": 3, "cents": -3})
    assert third.totals_before == {"rows": 3}
