"""How many items failed: exact where the tree knows, else from the notes, else a lower bound."""

from __future__ import annotations

import pytest

from fanin.app.ports.parts import FailureRow
from fanin.domain.acks import ItemRange
from fanin.domain.batch import Batch, Mode, State
from tests.unit.app.conftest import World


def failed(world: World, batch: Batch, *, exact: bool = False) -> tuple[int, bool]:
    """What the status says: how many failed, and whether more may have."""
    row = world.ledger.status(batch.batch_id, exact=exact).batch
    return row.failed, row.failed_more


class TestStatus:
    def test_of_a_new_batch_is_none(self, world: World) -> None:
        batch, _ = world.batch(4**4)

        assert failed(world, batch) == (0, False)

    def test_counts_in_one_word_and_in_the_words_below_the_root(self, world: World) -> None:
        small, (few,) = world.batch(4)
        large, (many,) = world.batch(16)
        world.fail(few[0], few[2], many[0], many[1], many[5], many[15])

        assert failed(world, small) == (2, False)
        assert failed(world, large) == (4, False)

    def test_of_a_complete_batch_stands_in_its_row(self, world: World) -> None:
        # Given 64 items, 5 of them failed in words that were finished by others
        batch, (group,) = world.batch(64, closed=True)
        world.fail(*(group[n] for n in (0, 1, 17, 33, 63)))
        world.ledger.ack(list(group))
        world.accesses.reads.clear()

        # Then one read tells how many failed, and how many were acknowledged
        row = world.ledger.status(batch.batch_id).batch
        assert (row.state, row.failed, row.failed_more, row.acked) == (State.COMPLETE, 5, False, 64)
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
        world.ledger.ack(list(group[:256]))
        world.accesses.reads.clear()

        count, more = failed(world, batch)

        assert (16 <= count < 116, more) == (True, True)
        assert world.accesses.reads.total() <= 67
        assert failed(world, batch, exact=True) == (116, False)

    def test_a_range_that_passed_over_failures_does_not_hide_them(self, world: World) -> None:
        # Given failures in words that a range marks from above
        batch, (group,) = world.batch(64, closed=True)
        world.fail(group[5], group[6], group[40])
        world.ledger.ack(ranges=[ItemRange(group.prefix)])

        row = world.ledger.status(batch.batch_id).batch

        assert row.state is State.COMPLETE
        assert failed(world, batch) == (3, False)

    def test_a_note_whose_item_succeeded_is_not_counted(self, world: World) -> None:
        """A process may die between the note and the mark; then another marks the item as done."""
        batch, (group,) = world.batch(4**5)
        note = FailureRow(0, group[0], "died")
        world.ports.parts.put_failures(batch.batch_id, [note], expires_at=batch.expires_at)
        world.ledger.ack([group[0]])
        world.fail(group[900])

        assert failed(world, batch) == (1, False)

    def test_of_an_estimated_batch_are_the_notes(self, world: World) -> None:
        batch, (group,) = world.batch(64, mode=Mode.ESTIMATED)
        world.fail(group[0], group[9])
        world.fail(group[0])

        assert failed(world, batch) == (2, False)


class TestList:
    @pytest.mark.parametrize("state", [State.OPEN, State.COMPLETE])
    def test_tells_what_the_root_knows_in_one_read_a_live_batch(self, world: World, state: State) -> None:
        # Given three batches with two failures each, whose items are all done
        batches = [world.batch(64, closed=state is State.COMPLETE) for _ in range(3)]
        for _, (group,) in batches:
            world.fail(group[5], group[40])
            world.ledger.ack(list(group))
        world.accesses.reads.clear()

        listed = world.ledger.list(state).batches

        assert {(row.state, row.failed) for row in listed} == {(state, 2)}
        assert {row.failed_more for row in listed} == {state is State.OPEN}
        assert world.accesses.reads["words.read"] == (3 if state is State.OPEN else 0)
