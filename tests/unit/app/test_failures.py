"""Where messages of failed items are kept: in rows, or in the bucket.

Notes and messages of failures, written before the items are marked.

Deleting the messages of a batch that was removed.
"""

import re
from typing import Any

import pytest

from fanin.app import failures
from fanin.app.ports.parts import IN_ROW, Redriven
from fanin.domain.batch import Batch, Mode, OnFailure
from fanin.domain.failures import Keep, KeptMessage, MessageAttribute
from fanin.domain.limits import MAX_KEPT_IN_ROW, MAX_KEPT_INLINE
from fanin.domain.marks import Failure
from fanin.errors import AccessDenied, NotConfigured, RequestTooLarge
from tests.unit.app.conftest import World

AROUND = len('{"body":""}')


def refuse(world: World, monkeypatch: Any, error: Exception) -> None:
    def put(_key: str, _content: bytes) -> None:
        raise error

    monkeypatch.setattr(world.memory.claims, "put", put)


@pytest.mark.parametrize(("size", "in_row"), [(MAX_KEPT_INLINE, True), (MAX_KEPT_INLINE + 1, False)])
def test_a_message_of_more_than_8_kib_is_in_the_bucket(world, size, *, in_row):
    batch, (group,) = world.batch(3)
    message = KeptMessage("x" * (size - AROUND))

    world.ledger.mark([Failure(group[1], "torn", message)]).whole()

    ((note,), _) = world.ports.parts.failures(batch.batch_id)
    assert (note.kept == IN_ROW) is in_row
    assert world.ledger.failure(batch.batch_id, 1).message == message
    assert len(world.memory.claims.objects) == (not in_row)


def test_large_messages_have_keys_that_say_how_long_they_are_kept_and_whose_they_are(world):
    batch, (group,) = world.batch(3, lifetime=3600)
    messages = [KeptMessage(letter * 9_000) for letter in "abc"]

    world.ledger.mark([Failure(group[n], "torn", message) for n, message in enumerate(messages)]).whole()

    assert [world.ledger.failure(batch.batch_id, n).message for n in range(3)] == messages
    # A key follows from the content, so that a repeat by any process finds the same object
    for n, key in enumerate(sorted(world.memory.claims.objects)):
        assert re.fullmatch(rf"days-2/{batch.batch_id}/{n}/message-[0-9a-f]{{32}}", key)
    assert len(world.memory.claims.objects) == 3


def test_another_message_of_the_same_item_does_not_overwrite_the_first(world):
    # Given an item that fails with one message, and then with another of the same size
    batch, (group,) = world.batch(3)
    for letter in "aba":
        world.fresh().mark([Failure(group[1], "torn", KeptMessage(letter * 9_000))]).whole()
    # Then there is an object for each message, and the failure has its last one
    assert len(world.memory.claims.objects) == 2
    assert world.ledger.failure(batch.batch_id, 1).message == KeptMessage("a" * 9_000)


@pytest.mark.parametrize("error", [NotConfigured("no bucket"), AccessDenied("not yours")])
def test_without_a_bucket_a_row_keeps_what_it_can(world, monkeypatch, error):
    # Given a process that cannot write to the bucket
    refuse(world, monkeypatch, error)
    batch, (group,) = world.batch(3)
    message = KeptMessage("x" * (MAX_KEPT_IN_ROW - AROUND))
    # When items fail with messages as large as a row takes
    world.ledger.mark([Failure(group[n], "torn", message) for n in range(2)]).whole()

    assert [world.ledger.failure(batch.batch_id, n).message for n in range(2)] == [message, message]


def test_a_message_that_nothing_can_keep_is_refused_and_others_are_kept(world, monkeypatch):
    refuse(world, monkeypatch, NotConfigured("no bucket"))
    batch, (group,) = world.batch(3)
    sizes = (5, 2 * MAX_KEPT_INLINE, MAX_KEPT_IN_ROW)  # a row keeps the first two

    marked = world.ledger.mark(
        [Failure(group[n], "torn", KeptMessage("x" * size)) for n, size in enumerate(sizes)]
    )

    with pytest.raises(RequestTooLarge, match="name the bucket"):
        raise marked.refused[2]
    assert [one.ordinal for one in world.ledger.failures(batch.batch_id).failures] == [0, 1]
    assert world.ledger.pending(batch.batch_id, 0, 3) == {2}


def test_a_message_that_was_deleted_reads_as_not_kept(world):
    batch, (group,) = world.batch(3)
    world.ledger.mark([Failure(group[0], "torn", KeptMessage("x" * 9_000))]).whole()

    world.memory.claims.objects.clear()

    found = world.ledger.failure(batch.batch_id, 0)
    assert (found.message, found.failure.kept) == (None, True)


def redrive(world: World, batch: Batch, ordinal: int) -> None:
    """Take a held item for a redrive."""
    note = world.ports.parts.notes(batch.batch_id, [ordinal])[ordinal]
    world.ports.parts.mark_redriven(
        batch.batch_id, {ordinal: Redriven("r", note.failed_at)}, {}, expires_at=batch.expires_at
    )


def test_a_failure_keeps_its_message_and_what_is_known_of_it(world):
    batch, (group,) = world.batch(3)
    message = KeptMessage("{}", {"blob": MessageAttribute("Binary", b"\x00")}, "g")

    with world.costing(writes=4):  # the message, the note, the flag of the batch, once, and the word
        world.ledger.mark([Failure(group[1], "row 7 is torn", message, attempts=4, source="arn:q")]).whole()

    found = world.ledger.failure(batch.batch_id, 1)
    assert found.message == message
    assert (found.failure.attempts, found.failure.source, found.failure.kept) == (4, "arn:q", True)
    assert (found.failure.failed_at, found.failure.error) == (world.clock.at, "row <n> is torn")


@pytest.mark.parametrize(("on_failure", "noted"), [(OnFailure.HOLD, (("rows", 5),)), (OnFailure.DONE, ())])
def test_what_a_held_item_brings_to_the_totals_is_noted_until_it_is_released(world, on_failure, noted):
    batch, (group,) = world.batch(3, on_failure=on_failure, totals=("rows",))

    world.ledger.mark([Failure(group[1], "torn", totals={"rows": 5})]).whole()

    assert world.ports.parts.notes(batch.batch_id, [1])[1].totals == noted


def test_of_two_failures_of_one_item_at_once_the_first_note_stays(world):
    # Given a failure that is overtaken by another one between its message and its note
    batch, (group,) = world.batch(3)
    other = world.fresh()
    world.at(
        "parts.put_failures",
        "before",
        lambda: other.mark([Failure(group[1], "second", KeptMessage("body"))]).whole(),
    )

    world.ledger.mark([Failure(group[1], "first", KeptMessage("body"))]).whole()
    # Then the note that was there stays, and the message
    found = world.ledger.failure(batch.batch_id, 1)
    assert (found.failure.reason, found.message) == ("second", KeptMessage("body"))
    assert world.ledger.status(batch.batch_id, exact=True).batch.failed == 1


def test_a_batch_may_keep_reasons_alone_whoever_fails_its_items(world):
    batch, (group,) = world.batch(3, keep=Keep.REASON)

    world.ledger.mark([Failure(group[1], "torn", KeptMessage("private"), attempts=2)]).whole()

    found = world.ledger.failure(batch.batch_id, 1)
    assert (found.message, found.failure.kept, found.failure.attempts) == (None, False, 2)
    assert world.accesses.writes["parts.put_messages"] == 0
    assert world.accesses.sends["claims.put"] == 0


def test_failures_of_an_estimated_batch_keep_their_messages_too(world):
    batch, (group,) = world.batch(3, mode=Mode.ESTIMATED)

    world.ledger.mark([Failure(group[1], "torn", KeptMessage("body"))]).whole()

    assert world.ledger.failure(batch.batch_id, 1).message == KeptMessage("body")


def test_a_failure_that_is_noted_late_does_not_hide_a_later_one(world):
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

    world.fresh().mark([Failure(group[1], "late", KeptMessage("body"))]).whole()
    # Then the item is held for its last failure, with its message
    found = world.fresh().failure(batch.batch_id, 1)
    assert world.happened
    assert (found.failure.reason, found.failure.held, found.message) == ("third", True, KeptMessage("body"))
    assert world.fresh().release(batch.batch_id).released == 1


def failed(world: World, count: int) -> int:
    batch, (group,) = world.batch(count)
    sizes = (1, 9_000)
    world.ledger.mark(
        [Failure(item, "torn", KeptMessage("x" * sizes[n % 2])) for n, item in enumerate(group)]
    ).whole()
    return batch.batch_id


def test_rows_and_objects_go_page_by_page(world, monkeypatch):
    # Given failures in rows and in the bucket
    monkeypatch.setattr(failures, "PAGE", 3)
    batch_id = failed(world, 8)

    for _ in range(2):  # a repeat does no harm
        failures.forget(world.ports, world.ports.batches.read([batch_id])[batch_id])
    # Then no message is left, and the notes are
    assert world.memory.claims.objects == {}
    assert world.ports.parts.messages(batch_id, range(8)) == {}
    assert len(world.ports.parts.failures(batch_id)[0]) == 8


def test_one_call_is_bounded(world, monkeypatch):
    monkeypatch.setattr(failures, "PAGE", 2)
    monkeypatch.setattr(failures, "PAGES", 2)
    batch_id = failed(world, 6)

    failures.forget(world.ports, world.ports.batches.read([batch_id])[batch_id])

    assert set(world.ports.parts.messages(batch_id, range(6))) == {4}


def test_a_failure_without_a_message_asks_nothing_of_the_bucket(world):
    batch, (group,) = world.batch(2)
    world.ledger.mark([Failure(item, "x") for item in group]).whole()

    failures.forget(world.ports, batch)

    assert world.accesses.sends["claims.delete"] == 0


def test_what_fails_again_in_the_same_millisecond_as_it_was_redriven_is_held(world):
    batch, (group,) = world.batch(3, on_failure=OnFailure.HOLD)
    world.ledger.mark([Failure(group[1], "first", KeptMessage("body"))]).whole()
    redrive(world, batch, 1)

    world.fresh().mark([Failure(group[1], "second", KeptMessage("body"))]).whole()

    assert world.fresh().failure(batch.batch_id, 1).failure.held
