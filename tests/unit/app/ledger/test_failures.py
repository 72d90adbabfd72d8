"""Reading failures: a page, one with its message, and by error."""

from __future__ import annotations

import pytest

from fanin.app.ledger.service import LedgerService
from fanin.app.ports.parts import Redriven
from fanin.domain.failures import KeptMessage
from fanin.domain.marks import Failure
from fanin.domain.reports import by_error
from fanin.errors import FailureNotFound, InvalidRequest
from tests.unit.app.conftest import World


def test_one_that_has_not_failed_is_not_found(world: World) -> None:
    batch, (group,) = world.batch(3)
    world.ledger.mark([group[0]]).whole()
    world.ledger.mark([Failure(group[0], "too late", KeptMessage("body"))]).whole()

    for ordinal in (0, 1):
        with pytest.raises(FailureNotFound, match=f"item {ordinal} of batch"):
            world.ledger.failure(batch.batch_id, ordinal)
    with pytest.raises(InvalidRequest):
        world.ledger.failure(batch.batch_id, -1)


def test_failures_say_which_redrive_took_them(world: World) -> None:
    batch, (group,) = world.batch(3)
    world.ledger.mark([Failure(group[0], "a"), Failure(group[1], "b")]).whole()

    world.ports.parts.mark_redriven(
        batch.batch_id, {1: Redriven("redrive/r1", world.clock.at)}, {}, expires_at=9
    )

    page = world.ledger.failures(batch.batch_id)
    assert [one.redriven for one in page.failures] == [None, "r1"]


def test_reasons_that_are_alike_are_counted_together_the_most_frequent_first(world: World) -> None:
    # Given three failures of one kind, of which one message was kept, and one of another
    batch, (group,) = world.batch(9)
    world.ledger.mark([Failure(group[3], "torn"), Failure(group[1], "row 7 has no 'price'")]).whole()
    world.clock.advance(7)
    world.ledger.mark(
        [Failure(group[2], "row 9 has no 'name'", KeptMessage("b")), Failure(group[5], "row 1 has no 'x'")]
    ).whole()

    # When they are grouped
    errors = world.ledger.errors(batch.batch_id)

    # Then
    assert errors.cursor is None
    frequent, other = errors.errors
    assert (frequent.error, frequent.failed, frequent.kept) == ("row <n> has no <text>", 3, 1)
    assert (frequent.example, frequent.first, frequent.last_failed_at) == (
        "row 7 has no 'price'",
        1,
        world.clock.at,
    )
    assert (other.error, other.failed, other.first) == ("torn", 1, 3)


def test_a_call_reads_a_part_and_the_parts_add_up(world: World) -> None:
    ledger = LedgerService(world.ports, rows=5)  # the batch, two notes, their word, and no further note
    batch, (group,) = world.batch(9)
    world.ledger.mark([Failure(group[n], "torn" if n % 2 else f"row {n}") for n in range(5)]).whole()

    pages = [ledger.errors(batch.batch_id)]
    while pages[-1].cursor is not None:
        pages.append(ledger.errors(batch.batch_id, cursor=pages[-1].cursor))

    assert len(pages) == 3
    merged = by_error(group for page in pages for group in page.errors)
    assert [(one.error, one.failed, one.first) for one in merged] == [("row <n>", 3, 0), ("torn", 2, 1)]
