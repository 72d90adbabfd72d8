"""Bits that a caller coalesced itself: checked, written word by word, settled, and told exactly."""

from contextlib import suppress

import pytest

from fanin.app.ledger.clearing import BitsCleared
from fanin.domain import limits
from fanin.domain.batch import Mode, OnDeadline, State
from fanin.domain.marks import Done
from fanin.domain.tree import Bits
from fanin.errors import BatchNotFound, InvalidRequest, RequestTooLarge
from tests.unit.app.conftest import Crash, World


def test_tell_who_was_first(world):
    batch, (group,) = world.batch(40)
    world.ledger.mark([group[0], group[1]]).whole()
    # When words of level 0, and a bit of level 1 that stands for the four items 8 to 11
    marks = {batch.batch_id: [Bits(0, 0, 0b0111), Bits(1, 0, 0b0100)]}
    (told,) = world.ledger.clear(marks)
    # Then of the items, one is new and two are not; of the range it is only known that it was marked
    assert told == BitsCleared(batch.batch_id, State.OPEN, first=1, ranged=4, duplicates=2)
    assert {n for n in range(40) if n not in world.ledger.pending(batch.batch_id, 0, 40)} == {
        *(0, 1, 2),
        *range(8, 12),
    }
    # And the same again is all duplicates
    assert world.fresh().clear(marks) == [BitsCleared(batch.batch_id, State.OPEN, duplicates=7)]


def test_a_word_is_one_write_and_parents_are_coalesced(world):
    batch, _ = world.batch(40)

    with world.costing(writes=6):  # four words, their parent, and its parent
        world.ledger.clear({batch.batch_id: [Bits(0, number, 0b1111) for number in range(4)]})


def test_a_word_that_is_named_twice_is_marked_for_both_in_one_write(world):
    batch, _ = world.batch(40)

    with world.costing(writes=1):
        (told,) = world.ledger.clear({batch.batch_id: [Bits(0, 0, 0b0011), Bits(0, 0, 0b0110)]})

    assert told == BitsCleared(batch.batch_id, State.OPEN, first=3)
    assert world.ledger.pending(batch.batch_id, 0, 4) == {3}


def test_are_activity(world):
    batch, _ = world.batch(40)
    world.clock.advance(batch.open_idle_ttl * 900)

    world.ledger.clear({batch.batch_id: [Bits(0, 0, 0b0001)]})
    world.clock.advance(batch.open_idle_ttl * 900)

    assert world.fresh().reap().orphaned == 0


def test_of_several_batches_are_one_call(world):
    (one, _), (two, _) = world.batch(4, closed=True), world.batch(3)

    told = world.ledger.clear({one.batch_id: [Bits(0, 0, 0b1111)], two.batch_id: [Bits(0, 0, 0b001)]})

    assert [(mark.batch_id, mark.complete, mark.first) for mark in told] == [
        (one.batch_id, True, 4),
        (two.batch_id, False, 1),
    ]
    assert world.row(one).state is State.COMPLETE


@pytest.mark.parametrize(
    "mark",
    [
        Bits(0, 2, 0b0100),  # an item that is not there
        Bits(0, 3, 0b0001),
        Bits(1, 0, 0b0100),  # a word that may get items yet
        Bits(2, 0, 0b0001),  # above the root
        Bits(0, 0, 0),
        Bits(0, 0, 0b1_0000),
        Bits(0, -1, 0b1),
        Bits(-1, 0, 0b1),
    ],
)
def test_a_bit_that_does_not_exist_refuses_the_call(world, mark):
    # Given ten items, so that the third word has two
    batch, _ = world.batch(10)

    with world.refusing(InvalidRequest, "nothing was done"):
        world.ledger.clear({batch.batch_id: [Bits(0, 0, 0b1), mark]})


def test_items_that_another_process_added_are_looked_for(world):
    batch, _ = world.batch(4)
    world.fresh().add(batch.batch_id, 4)

    (told,) = world.ledger.clear({batch.batch_id: [Bits(0, 1, 0b1111)]})

    assert told.first == 4


def test_a_batch_that_ended_is_left_alone(world):
    # Given a batch that is done, one that is cancelled, and one that ended as complete without its items
    (done, (group,)), (cancelled, _) = world.batch(3, closed=True), world.batch(3)
    partial, _ = world.batch(3, deadline=world.clock.at + 1, on_deadline=OnDeadline.COMPLETE)
    world.ledger.mark(list(group)).whole()
    world.ledger.cancel(cancelled.batch_id)
    world.clock.advance(1)
    world.ledger.meet_deadline(partial.batch_id)

    with world.costing(writes=0):
        told = world.fresh().clear(
            {batch.batch_id: [Bits(0, 0, 0b11)] for batch in (done, cancelled, partial)}
        )

    assert told == [
        BitsCleared(done.batch_id, State.COMPLETE, complete=True, duplicates=2),
        BitsCleared(cancelled.batch_id, State.CANCELLED, late=2),
        BitsCleared(partial.batch_id, State.COMPLETE, complete=True, late=2),
    ]


def test_what_cannot_be_marked_is_refused(world):
    estimated, _ = world.batch(3, mode=Mode.ESTIMATED)

    with pytest.raises(InvalidRequest, match="estimated"):
        world.ledger.clear({estimated.batch_id: [Bits(0, 0, 1)]})
    for unknown in (0, 4711):
        with pytest.raises(BatchNotFound):
            world.ledger.clear({unknown: [Bits(0, 0, 1)]})
    with pytest.raises(InvalidRequest, match=r"^batch_id must be a whole number from 0 to"):
        world.ledger.clear({-1: [Bits(0, 0, 1)]})
    with pytest.raises(RequestTooLarge, match=r"^10001 marks in one call"):
        world.ledger.clear({estimated.batch_id: [Bits(0, 0, 1)] * (limits.MAX_MARKS + 1)})


@pytest.mark.parametrize("moment", ["before", "after"])
@pytest.mark.parametrize("step", range(6))
def test_a_repeat_after_a_crash_at_any_write_completes(step, moment):
    # Given a closed batch of which a process marks everything, and dies at its n-th write
    world = World()
    batch, _ = world.batch(15, closed=True)
    marks = {batch.batch_id: [Bits(0, n, 0b1111) for n in range(3)] + [Bits(0, 3, 0b0111)]}
    world.crash_at("words.clear", moment, after=step)
    with suppress(Crash):
        world.fresh().clear(marks)

    world.fresh().clear(marks)

    assert world.happened or step == 5
    assert world.row(batch).state is State.COMPLETE
    ends = [new for old, new in world.memory.batches.changes if new.state.terminal and old]
    assert len(ends) == 1


class TestResults:
    """What items bring to the totals of their batch, whose items are named by their ordinals."""

    def test_count_with_the_write_that_clears_the_bit_of_their_item(self, world):
        # Given a batch of 20 items with totals, of which item 1 was acknowledged before
        batch, (group,) = world.batch(20, closed=True, totals=("rows", "cents"))
        world.ledger.mark([Done(group[1], {"rows": 100})]).whole()
        marks = {batch.batch_id: [Bits(0, number, 0b1111) for number in range(5)]}
        values = {n: {"cents": -n, "rows": 2} for n in range(20) if n != 3}
        before = world.written()
        # When all are marked, in two calls
        (told,) = world.ledger.clear(marks, values={batch.batch_id: values})
        writes = world.written() - before
        world.fresh().clear(marks, values={batch.batch_id: values})
        # Then what came second brought nothing, nor did the item without values, and no write was added:
        # five words, two and one of the levels above, and the row
        row = world.ledger.status(batch.batch_id).batch
        assert (told.first, told.duplicates, row.state) == (19, 1, State.COMPLETE)
        assert (row.totals, row.totals_exact) == (
            {"rows": 100 + 2 * 18, "cents": -(sum(range(20)) - 1 - 3)},
            True,
        )
        assert writes == 5 + 2 + 1 + 1

    @pytest.mark.parametrize(
        ("values", "why"),
        [
            ({0: {"rows": 1.5}}, "a whole number"),
            ({0: {"rows": 2**53 + 1}}, "9007199254740992"),
            ({0: {"bytes": 1}}, "has no total 'bytes': its totals are rows"),
            ({1: {"rows": 1}}, "item 1 of batch .* is not among the items that are marked"),
            ({-4: {"rows": 1}}, "item -4 of batch .* is not among the items that are marked"),
        ],
    )
    def test_that_cannot_be_added_refuse_the_call(self, world, values, why):
        batch, _ = world.batch(4, totals=("rows",))

        with world.refusing(InvalidRequest, why):
            world.ledger.clear({batch.batch_id: [Bits(0, 0, 0b1)]}, values={batch.batch_id: values})

    def test_of_a_batch_without_marks_or_totals_refuse_the_call(self, world):
        one, _ = world.batch(4)
        other, _ = world.batch(4, totals=("rows",))

        for batch, why in ((one, "it was opened without totals"), (other, "not among the items")):
            with world.refusing(InvalidRequest, why):
                world.ledger.clear(
                    {one.batch_id: [Bits(0, 0, 0b1)]}, values={batch.batch_id: {0: {"rows": 1}}}
                )
