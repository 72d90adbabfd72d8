"""Notes and messages of failures, written before the items are marked."""

from __future__ import annotations

import pytest

from fanin.app.ports.parts import Redriven
from fanin.domain.batch import Batch, Mode, OnFailure
from fanin.domain.failures import Keep, KeptMessage, MessageAttribute
from fanin.domain.marks import Failure
from fanin.errors import FailureNotFound
from tests.unit.app.conftest import World

STEPS = ("parts.put_messages", "parts.put_failures", "words.clear")


def redrive(world: World, batch: Batch, ordinal: int) -> None:
    """Take a held item for a redrive."""
    note = world.ports.parts.notes(batch.batch_id, [ordinal])[ordinal]
    world.ports.parts.mark_redriven(
        batch.batch_id, {ordinal: Redriven("r", note.failed_at)}, {}, expires_at=batch.expires_at
    )


def test_a_failure_keeps_its_message_and_what_is_known_of_it(world: World) -> None:
    batch, (group,) = world.batch(3)
    message = KeptMessage("{}", {"blob": MessageAttribute("Binary", b"\x00")}, "g")

    with world.costing(writes=3):  # the message, the note, and the word
        world.ledger.mark([Failure(group[1], "row 7 is torn", message, attempts=4, source="arn:q")]).whole()

    found = world.ledger.failure(batch.batch_id, 1)
    assert found.message == message
    assert (found.failure.attempts, found.failure.source, found.failure.kept) == (4, "arn:q", True)
    assert (found.failure.failed_at, found.failure.error) == (world.clock.at, "row <n> is torn")


@pytest.mark.parametrize("moment", ["before", "after"])
@pytest.mark.parametrize("call", STEPS)
def test_an_item_that_reads_as_failed_has_its_message(world: World, call: str, moment: str) -> None:
    # Given a call that dies at some step
    batch, (group,) = world.batch(3)
    failing = [Failure(group[1], "torn", KeptMessage("body"))]
    with world.dying(call, moment):
        world.ledger.mark(failing).whole()

    # When somebody reads before the call is repeated
    early = world.fresh().failures(batch.batch_id).failures

    # Then the item has not failed yet, or its message is there
    assert all(world.fresh().failure(batch.batch_id, one.ordinal).message for one in early)
    assert bool(early) is ((call, moment) == ("words.clear", "after"))

    # And when it is repeated, then the item has failed with its message, once
    world.fresh().mark(failing).whole()
    assert world.fresh().failure(batch.batch_id, 1).message == KeptMessage("body")
    assert world.fresh().status(batch.batch_id, exact=True).batch.failed == 1


@pytest.mark.parametrize(("on_failure", "noted"), [(OnFailure.HOLD, (("rows", 5),)), (OnFailure.DONE, ())])
def test_what_a_held_item_brings_to_the_totals_is_noted_until_it_is_released(
    world: World, on_failure: OnFailure, noted: tuple[tuple[str, int], ...]
) -> None:
    batch, (group,) = world.batch(3, on_failure=on_failure, totals=("rows",))

    world.ledger.mark([Failure(group[1], "torn", totals={"rows": 5})]).whole()

    assert world.ports.parts.notes(batch.batch_id, [1])[1].totals == noted


@pytest.mark.parametrize(
    ("on_failure", "reason"), [(OnFailure.HOLD, "by hand"), (OnFailure.DONE, "torn")], ids=["held", "done"]
)
def test_failing_again_without_a_message_does_not_hide_the_one_that_was_kept(
    world: World, on_failure: OnFailure, reason: str
) -> None:
    batch, (group,) = world.batch(3, on_failure=on_failure)
    world.ledger.mark([Failure(group[1], "torn", KeptMessage("body"), attempts=3, source="arn:q")]).whole()
    world.clock.advance(5)

    world.fresh().mark([Failure(group[1], "by hand")]).whole()

    found = world.ledger.failure(batch.batch_id, 1)
    assert found.message == KeptMessage("body")
    assert (found.failure.reason, found.failure.attempts, found.failure.source) == (reason, 3, "arn:q")


def test_of_two_failures_of_one_item_at_once_the_first_note_stays(world: World) -> None:
    # Given a failure that is overtaken by another one between its message and its note
    batch, (group,) = world.batch(3)
    other = world.fresh()
    world.at(
        "parts.put_failures",
        "before",
        lambda: other.mark([Failure(group[1], "second", KeptMessage("body"))]).whole(),
    )

    # When it goes on
    world.ledger.mark([Failure(group[1], "first", KeptMessage("body"))]).whole()

    # Then the note that was there stays, and the message
    found = world.ledger.failure(batch.batch_id, 1)
    assert (found.failure.reason, found.message) == ("second", KeptMessage("body"))
    assert world.ledger.status(batch.batch_id, exact=True).batch.failed == 1


def test_a_batch_may_keep_reasons_alone_whoever_fails_its_items(world: World) -> None:
    batch, (group,) = world.batch(3, keep=Keep.REASON)

    world.ledger.mark([Failure(group[1], "torn", KeptMessage("private"), attempts=2)]).whole()

    found = world.ledger.failure(batch.batch_id, 1)
    assert (found.message, found.failure.kept, found.failure.attempts) == (None, False, 2)
    assert world.accesses.writes["parts.put_messages"] == 0
    assert world.accesses.sends["claims.put"] == 0


def test_a_failure_after_the_end_of_its_batch_keeps_nothing(world: World) -> None:
    batch, (group,) = world.batch(3)
    world.ledger.cancel(batch.batch_id)

    with world.costing(writes=0):
        world.ledger.mark([Failure(group[1], "torn", KeptMessage("body"))]).whole()

    with pytest.raises(FailureNotFound):
        world.ledger.failure(batch.batch_id, 1)


def test_failures_of_an_estimated_batch_keep_their_messages_too(world: World) -> None:
    batch, (group,) = world.batch(3, mode=Mode.ESTIMATED)

    world.ledger.mark([Failure(group[1], "torn", KeptMessage("body"))]).whole()

    assert world.ledger.failure(batch.batch_id, 1).message == KeptMessage("body")


def test_a_failure_that_is_noted_late_does_not_hide_a_later_one(world: World) -> None:
    # Given a process that fails an item, and stalls while the item is redriven, and fails again
    batch, (group,) = world.batch(3, on_failure=OnFailure.HOLD)
    world.ledger.mark([Failure(group[1], "first", KeptMessage("body"))]).whole()

    def meanwhile() -> None:
        world.clock.advance(5)
        world.fresh().mark([Failure(group[1], "second", KeptMessage("body"))]).whole()
        redrive(world, batch, 1)
        world.clock.advance(5)
        world.fresh().mark([Failure(group[1], "third", KeptMessage("body"))]).whole()

    world.at("parts.update_failures", "before", meanwhile)

    # When it goes on
    world.fresh().mark([Failure(group[1], "late", KeptMessage("body"))]).whole()

    # Then the item is held for its last failure, with its message
    found = world.fresh().failure(batch.batch_id, 1)
    assert world.happened
    assert (found.failure.reason, found.failure.held, found.message) == ("third", True, KeptMessage("body"))
    assert world.fresh().release(batch.batch_id).released == 1


def test_what_fails_again_in_the_same_millisecond_as_it_was_redriven_is_held(world: World) -> None:
    batch, (group,) = world.batch(3, on_failure=OnFailure.HOLD)
    world.ledger.mark([Failure(group[1], "first", KeptMessage("body"))]).whole()
    redrive(world, batch, 1)

    world.fresh().mark([Failure(group[1], "second", KeptMessage("body"))]).whole()

    assert world.fresh().failure(batch.batch_id, 1).failure.held
