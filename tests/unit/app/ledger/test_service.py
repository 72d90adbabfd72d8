"""The ledger of one process: what it remembers, and what the functions behind streams call."""

from __future__ import annotations

import pytest

from fanin.app.ports.words import WordKey
from fanin.domain.batch import State
from fanin.domain.tree import Mark
from fanin.errors import BatchGone, BatchNotFound
from tests.unit.app.conftest import Crash, World


def test_a_refreshed_batch_is_not_worked_with_as_it_was(world: World) -> None:
    # Given a process that remembers a batch alive, which another has cancelled
    batch, (group,) = world.batch(3)
    world.fresh().cancel(batch.batch_id)
    writes = world.written()

    # When it is told to look again
    assert world.ledger.refresh([batch.batch_id])[batch.batch_id].state is State.CANCELLED

    # Then it marks nothing
    assert world.ledger.ack([group[0]])[0].late == 1
    assert world.written() == writes


def test_a_batch_that_is_not_there_cannot_be_refreshed(world: World) -> None:
    batch, _ = world.batch(closed=True)
    world.ledger.expire(State.COMPLETE, idle_since=world.clock.at + 1)

    with pytest.raises(BatchGone):
        world.ledger.refresh([batch.batch_id])
    with pytest.raises(BatchNotFound, match="no batch 5"):
        world.ledger.refresh([5])


def test_pending_items_of_a_part_are_named(world: World) -> None:
    batch, (group,) = world.batch(20)
    world.ledger.ack([group[3], group[9]])

    assert world.fresh().pending(batch.batch_id, 2, 11) == {2, 4, 5, 6, 7, 8, 10}


def test_a_word_that_was_finished_by_one_who_died_is_settled_from_the_stream(world: World) -> None:
    # Given a process that died between the last word and its parent
    batch, (group,) = world.batch(16, closed=True)
    world.ledger.ack(list(group[:12]))
    world.crash_at("words.clear", "after")
    with pytest.raises(Crash):
        world.ledger.ack(list(group[12:]))
    assert world.row(batch).state is State.CLOSED

    # When the stream tells of finished words
    world.fresh().heal(world.memory.words.finished)

    # Then the batch is complete
    assert world.row(batch).state is State.COMPLETE


def test_finished_words_of_batches_that_are_gone_hold_up_nothing(world: World) -> None:
    batch, (group,) = world.batch(4, closed=True)
    world.crash_at("words.clear", "after")
    with pytest.raises(Crash):
        world.ledger.ack(list(group))

    world.fresh().heal([WordKey(5, 0, 0), *world.memory.words.finished])

    assert world.row(batch).state is State.COMPLETE


def test_marks_and_acknowledgements_are_of_one_ledger(world: World) -> None:
    batch, (group,) = world.batch(4, closed=True)
    world.ledger.ack([group[0]])

    (marked,) = world.ledger.mark({batch.batch_id: [Mark(0, 0, 0b1111)]})

    assert (marked.first, marked.duplicates, marked.complete) == (3, 1, True)
    assert world.ledger.status(batch.batch_id).batch.state is State.COMPLETE
