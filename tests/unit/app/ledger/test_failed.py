"""How many items failed: exact where the tree knows, else from the notes, else a lower bound."""

from __future__ import annotations

from dataclasses import replace

import pytest

from fanin.app.ledger import failed as module
from fanin.app.ledger.failed import Failed
from fanin.app.ports.parts import FailureRow
from fanin.app.ports.words import Tally
from fanin.domain.batch import Batch, Mode, State
from fanin.domain.marks import ItemRange
from fanin.errors import Throttled
from tests.unit.app.conftest import World


def failed(world: World, batch: Batch, *, exact: bool = False) -> tuple[int, bool]:
    """What the status says: how many failed, and whether more may have."""
    row = world.ledger.status(batch.batch_id, exact=exact).batch
    return row.failed, row.failed_more


class TestStatus:
    def test_of_a_complete_batch_stands_in_its_row(self, world: World) -> None:
        # Given 64 items, 5 of them failed in words that were finished by others
        batch, (group,) = world.batch(64, closed=True)
        world.fail(*(group[n] for n in (0, 1, 17, 33, 63)))
        world.ledger.mark(list(group)).whole()
        world.accesses.reads.clear()

        # Then one read tells how many failed
        row = world.ledger.status(batch.batch_id).batch
        assert (row.state, row.failed, row.failed_more) == (State.COMPLETE, 5, False)
        assert world.accesses.reads.total() == 1

    def test_of_a_large_running_batch_counts_few_failures_by_their_notes(self, world: World) -> None:
        batch, (group,) = world.batch(4**5)
        world.fail(*(group[n] for n in range(0, 30, 3)))

        assert failed(world, batch) == (10, False)

    def test_of_a_large_running_batch_is_a_lower_bound_where_many_failed(self, world: World) -> None:
        # Given 100 failures in words that are not finished, and 16 in a part that is
        batch, (group,) = world.batch(4**5)
        world.fail(*(group[n] for n in range(256, 656, 4)))
        world.fail(*(group[n] for n in range(0, 64, 4)))
        world.ledger.mark(list(group[:256])).whole()
        world.accesses.reads.clear()

        count, more = failed(world, batch)

        assert (16 <= count < 116, more) == (True, True)
        assert world.accesses.reads.total() <= 67
        assert failed(world, batch, exact=True) == (116, False)

    def test_a_note_whose_item_succeeded_is_not_counted(self, world: World) -> None:
        """A process may die between the note and the mark; then another marks the item as done."""
        batch, (group,) = world.batch(4**5)
        note = FailureRow(0, group[0], "died")
        world.ports.parts.put_failures(batch.batch_id, [note], expires_at=batch.expires_at)
        world.ledger.mark([group[0]]).whole()
        world.fail(group[900])

        assert failed(world, batch) == (1, False)

    def test_of_an_estimated_batch_are_the_notes(self, world: World) -> None:
        batch, (group,) = world.batch(64, mode=Mode.ESTIMATED)
        world.fail(group[0], group[9])
        world.fail(group[0])

        assert failed(world, batch) == (2, False)

    def test_is_never_less_than_its_row_says(self, world: World) -> None:
        batch, (group,) = world.batch(64)
        world.fail(group[0])
        row = replace(batch, failed=7, failed_more=True)

        assert Failed(world.ports).counted(row, Tally(whole=False), budget=0).failed == 7

    def test_counts_in_one_word_and_in_the_words_below_the_root(self, world: World) -> None:
        small, (few,) = world.batch(4)
        large, (many,) = world.batch(16)
        world.fail(few[0], few[2], many[0], many[1], many[5], many[15])

        assert failed(world, small) == (2, False)
        assert failed(world, large) == (4, False)


class TestAtTheEnd:
    """What a batch is written as complete with, when a range was marked from above."""

    def test_a_word_that_is_throttled_is_tried_again_with_the_end(self, world: World) -> None:
        batch, (group,) = world.batch(64, closed=True)
        note = FailureRow(9, group[9], "slow")
        world.ports.parts.put_failures(batch.batch_id, [note], expires_at=batch.expires_at)
        world.at("words.clear", "before", lambda: None)
        world.raise_at("words.clear", "before", Throttled("busy"))

        assert list(world.ledger.mark([ItemRange(group.prefix)]).left) == [0]
        assert world.ledger.mark([ItemRange(group.prefix)]).whole()[0].complete

    def test_a_note_whose_item_is_pending_on_its_own_level_is_done_and_not_failed(self, world: World) -> None:
        # Given notes of two items, of which one has failed, and a range over both
        batch, (group,) = world.batch(64, closed=True)
        world.fail(group[5])
        note = FailureRow(9, group[9], "slow")
        world.ports.parts.put_failures(batch.batch_id, [note], expires_at=batch.expires_at)
        world.ledger.mark([ItemRange(group.prefix)]).whole()

        row = world.row(batch)

        assert (row.state, row.failed, row.failed_more) == (State.COMPLETE, 1, False)
        assert world.word(batch, 0, 2) == 0b1101  # the other items of its word stay as they were


class TestList:
    @pytest.mark.parametrize("state", [State.OPEN, State.COMPLETE])
    def test_tells_what_the_root_knows_in_one_read_a_live_batch(self, world: World, state: State) -> None:
        # Given three batches with two failures each, whose items are all done
        batches = [world.batch(64, closed=state is State.COMPLETE) for _ in range(3)]
        for _, (group,) in batches:
            world.fail(group[5], group[40])
            world.ledger.mark(list(group)).whole()
        world.accesses.reads.clear()

        listed = world.ledger.list(state).batches

        assert {(row.state, row.failed) for row in listed} == {(state, 2)}
        assert {row.failed_more for row in listed} == {state is State.OPEN}
        assert world.accesses.reads["words.read"] == (3 if state is State.OPEN else 0)


@pytest.mark.parametrize(("counted", "failed"), [(1, 3), (4, 4)])
def test_of_more_notes_than_are_counted_at_the_end_there_may_be_more(
    world: World, monkeypatch: pytest.MonkeyPatch, counted: int, failed: int
) -> None:
    # Given failures of which the tree has carried three up, before a range passed over two others
    monkeypatch.setattr(module, "MOST_COUNTED", counted)
    batch, (group,) = world.batch(4**3, closed=True)
    world.fail(*group[:3], group[17], group[33])
    world.ledger.mark([*group[3:16]]).whole()
    world.ledger.mark([ItemRange(group.prefix)]).whole()

    row = world.ports.batches.read([batch.batch_id])[batch.batch_id]
    assert (row.state, row.failed, row.failed_more) == (State.COMPLETE, failed, True)
