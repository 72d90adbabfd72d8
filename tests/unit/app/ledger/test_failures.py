"""Reading failures: a page, one with its message, and by error."""

from __future__ import annotations

import pytest

from fanin.app.ledger.held import READS
from fanin.app.ledger.reading import AROUND
from fanin.app.ledger.service import LedgerService
from fanin.app.ports.parts import Redriven
from fanin.domain.batch import OnFailure, State
from fanin.domain.failures import KeptMessage
from fanin.domain.marks import Done, Failure
from fanin.domain.redrives import OrdinalRange, Selection
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


HOLD = OnFailure.HOLD


def test_what_is_released_has_failed_and_the_batch_completes(world: World) -> None:
    # Given
    batch, (group,) = world.batch(20, closed=True, on_failure=HOLD)
    world.fail(*group[0:5])
    world.ledger.mark(list(group[5:20])).whole()

    # When
    released = world.ledger.release(batch.batch_id)

    # Then
    row = world.row(batch)
    assert (released.released, released.cursor, released.batch.state) == (5, None, State.COMPLETE)
    assert (row.failed, row.failed_more, released.batch.held) == (5, False, 0)


def test_only_what_is_selected_and_held(world: World) -> None:
    batch, (group,) = world.batch(16, closed=True, on_failure=HOLD)
    world.fail(*group[0:4], reason="row 1 has no price")
    world.fail(*group[4:8], reason="no customer 7")
    world.ledger.mark([group[0]]).whole()
    mark = Redriven("r", world.clock.at)
    world.ports.parts.mark_redriven(batch.batch_id, {1: mark, 4: mark}, {}, expires_at=1)

    by_error = world.ledger.release(batch.batch_id, Selection(errors=["row <n> has no"]))
    by_range = world.ledger.release(batch.batch_id, Selection(ranges=[OrdinalRange(0, 6)]))

    assert (by_error.released, by_error.batch.held) == (2, 3)
    assert (by_range.released, by_range.batch.held) == (1, 2)
    assert world.ledger.failed_among(batch.batch_id, range(16)) == {2, 3, 5}


def test_pages_with_a_cursor(world: World) -> None:
    batch, (group,) = world.batch(16, closed=True, on_failure=HOLD)
    world.fail(*group[0:5])
    release = LedgerService(world.ports, rows=AROUND + READS + 10)

    counts, cursor = [], None
    while True:
        page = release.release(batch.batch_id, Selection(), cursor=cursor)
        counts.append(page.released)
        cursor = page.cursor
        if cursor is None:
            break

    assert counts == [2, 2, 1]


@pytest.mark.parametrize("call", ["words.clear", "batches.end"])
@pytest.mark.parametrize("moment", ["before", "after"])
def test_a_repeat_after_a_crash_goes_on(world: World, call: str, moment: str) -> None:
    batch, (group,) = world.batch(5, closed=True, on_failure=HOLD)
    world.fail(*group)
    with world.dying(call, moment):
        world.ledger.release(batch.batch_id)

    process = world.fresh()
    process.release(batch.batch_id)
    process.verify(batch.batch_id)  # does what the stream of finished words does

    assert (world.row(batch).state, world.row(batch).failed) == (State.COMPLETE, 5)


def test_a_batch_that_holds_nothing_and_an_empty_range_are_refused(world: World) -> None:
    batch, _ = world.batch(1)
    with pytest.raises(InvalidRequest, match="holds no items: an item that fails in it is done"):
        world.ledger.release(batch.batch_id)
    with pytest.raises(InvalidRequest, match="the start of a range"):
        world.ledger.release(0, Selection(ranges=[OrdinalRange(2, 2)]))


def test_what_a_held_failure_brought_is_added_when_it_is_released(world: World) -> None:
    # Given failures with values, of which the second of an item is the one that is held
    batch, (group,) = world.batch(70, closed=True, on_failure=HOLD, totals=("rows", "cents"))
    world.ledger.mark([Failure(group[0], "no price", totals={"rows": 1})]).whole()
    world.ledger.mark([Failure(group[0], "no price", totals={"rows": 5, "cents": -2})]).whole()
    world.ledger.mark([Failure(group[66], "no price", totals={"rows": 7}), Failure(group[67], "no")]).whole()
    world.ledger.mark([*list(group[1:66]), *[Done(item, {"cents": 1}) for item in group[68:70]]]).whole()
    assert world.ledger.status(batch.batch_id, exact=True).batch.totals == {"rows": 0, "cents": 2}

    # When an acknowledgement decides one of them, and the others are released, twice
    world.ledger.mark([Done(group[66], {"rows": 100})]).whole()
    world.ledger.release(batch.batch_id)
    world.ledger.release(batch.batch_id)

    # Then each item has brought its values once
    row = world.row(batch)
    assert (row.state, row.failed) == (State.COMPLETE, 2)
    assert (row.totals, row.totals_exact) == ({"rows": 105, "cents": 0}, True)


def test_a_release_is_activity(world: World) -> None:
    batch, (group,) = world.batch(3, on_failure=HOLD)
    world.fail(group[1])
    world.clock.advance(3_600_000)

    world.ledger.release(batch.batch_id)

    assert world.clock.at - world.row(batch).touched_at < 3_600_000


def test_a_release_after_the_end_marks_nothing(world: World) -> None:
    batch, (group,) = world.batch(3, on_failure=HOLD)
    world.fail(group[1])
    world.ledger.cancel(batch.batch_id)

    with world.costing(writes=0):
        found = world.fresh().release(batch.batch_id)

    assert (found.released, found.batch.held) == (0, 1)


def test_a_batch_that_completes_ends_the_pages(world: World) -> None:
    # Given notes on two pages, of which the items behind the first are done by now
    batch, (group,) = world.batch(3, closed=True, on_failure=HOLD)
    world.fail(*group)
    world.ledger.mark(list(group[1:3])).whole()

    # When the first page is released
    released = LedgerService(world.ports, rows=AROUND + READS + 1).release(batch.batch_id)

    # Then nothing is left to release
    assert (released.released, released.batch.state, released.cursor) == (1, State.COMPLETE, None)


@pytest.mark.parametrize("moment", ["before", "after"])
def test_an_acknowledgement_meanwhile_decides_if_it_is_first(world: World, moment: str) -> None:
    batch, (group,) = world.batch(1, closed=True, on_failure=HOLD)
    world.fail(group[0])
    world.at("words.clear", moment, lambda: world.fresh().mark([group[0]]).whole())

    released = world.ledger.release(batch.batch_id)

    won = moment == "after"
    assert world.happened
    assert (released.released, world.row(batch).failed) == (int(won), int(won))
    assert world.row(batch).state is State.COMPLETE
