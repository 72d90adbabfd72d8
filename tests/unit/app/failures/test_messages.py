"""Where messages of failed items are kept: in rows, or in the bucket."""

from __future__ import annotations

import re
from typing import Any

import pytest

from fanin.app.ports.parts import IN_ROW
from fanin.domain.failures import KeptMessage
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
def test_a_message_of_more_than_8_kib_is_in_the_bucket(world: World, size: int, *, in_row: bool) -> None:
    batch, (group,) = world.batch(3)
    message = KeptMessage("x" * (size - AROUND))

    world.ledger.mark([Failure(group[1], "torn", message)]).whole()

    ((note,), _) = world.ports.parts.failures(batch.batch_id)
    assert (note.kept == IN_ROW) is in_row
    assert world.ledger.failure(batch.batch_id, 1).message == message
    assert len(world.memory.claims.objects) == (not in_row)


def test_large_messages_have_keys_that_say_how_long_they_are_kept_and_whose_they_are(world: World) -> None:
    batch, (group,) = world.batch(3, lifetime=3600)
    messages = [KeptMessage(letter * 9_000) for letter in "abc"]

    world.ledger.mark([Failure(group[n], "torn", message) for n, message in enumerate(messages)]).whole()

    assert [world.ledger.failure(batch.batch_id, n).message for n in range(3)] == messages
    # A key follows from the content, so that a repeat by any process finds the same object
    for n, key in enumerate(sorted(world.memory.claims.objects)):
        assert re.fullmatch(rf"days-2/{batch.batch_id}/{n}/message-[0-9a-f]{{32}}", key)
    assert len(world.memory.claims.objects) == 3


def test_another_message_of_the_same_item_does_not_overwrite_the_first(world: World) -> None:
    # Given an item that fails with one message, and then with another of the same size
    batch, (group,) = world.batch(3)
    for letter in "aba":
        world.fresh().mark([Failure(group[1], "torn", KeptMessage(letter * 9_000))]).whole()

    # Then there is an object for each message, and the failure has its last one
    assert len(world.memory.claims.objects) == 2
    assert world.ledger.failure(batch.batch_id, 1).message == KeptMessage("a" * 9_000)


@pytest.mark.parametrize("error", [NotConfigured("no bucket"), AccessDenied("not yours")])
def test_without_a_bucket_a_row_keeps_what_it_can(world: World, monkeypatch, error: Exception) -> None:
    # Given a process that cannot write to the bucket
    refuse(world, monkeypatch, error)
    batch, (group,) = world.batch(3)
    message = KeptMessage("x" * (MAX_KEPT_IN_ROW - AROUND))

    # When items fail with messages as large as a row takes
    world.ledger.mark([Failure(group[n], "torn", message) for n in range(2)]).whole()

    # Then they are kept in rows
    assert [world.ledger.failure(batch.batch_id, n).message for n in range(2)] == [message, message]


def test_a_message_that_nothing_can_keep_is_refused_and_others_are_kept(world: World, monkeypatch) -> None:
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


def test_a_message_that_was_deleted_reads_as_not_kept(world: World) -> None:
    batch, (group,) = world.batch(3)
    world.ledger.mark([Failure(group[0], "torn", KeptMessage("x" * 9_000))]).whole()

    world.memory.claims.objects.clear()

    found = world.ledger.failure(batch.batch_id, 0)
    assert (found.message, found.failure.kept) == (None, True)
