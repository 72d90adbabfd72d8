"""Reading failures: a page, one with its message, and by error."""

from dataclasses import replace

import pytest

from fanin.app.ledger import failed as module
from fanin.app.ledger.failed import READS, Failed
from fanin.app.ledger.reading import AROUND
from fanin.app.ledger.service import LedgerService
from fanin.app.ports.parts import FailureRow, Redriven
from fanin.app.ports.words import Tally
from fanin.domain.batch import Batch, Kind, Mode, OnDeadline, OnFailure, OpenBatch, State
from fanin.domain.failures import KeptMessage
from fanin.domain.ids import Group
from fanin.domain.marks import Done, Failure, ItemRange
from fanin.domain.redrives import OrdinalRange, Selection
from fanin.domain.reports import by_error
from fanin.errors import FailureNotFound, InvalidRequest, Throttled
from tests.unit.app.conftest import World


def test_one_that_has_not_failed_is_not_found(world):
    batch, (group,) = world.batch(3)
    world.ledger.mark([group[0]]).whole()
    world.ledger.mark([Failure(group[0], "too late", KeptMessage("body"))]).whole()

    for ordinal in (0, 1):
        with pytest.raises(FailureNotFound, match=f"item {ordinal} of batch"):
            world.ledger.failure(batch.batch_id, ordinal)
    with pytest.raises(InvalidRequest):
        world.ledger.failure(batch.batch_id, -1)


def test_failures_say_which_redrive_took_them(world):
    batch, (group,) = world.batch(3)
    world.ledger.mark([Failure(group[0], "a"), Failure(group[1], "b")]).whole()

    world.ports.parts.mark_redriven(
        batch.batch_id, {1: Redriven("redrive/r1", world.clock.at)}, {}, expires_at=9
    )

    page = world.ledger.failures(batch.batch_id)
    assert [one.redriven for one in page.failures] == [None, "r1"]


def test_reasons_that_are_alike_are_counted_together_the_most_frequent_first(world):
    # Given three failures of one kind, of which one message was kept, and one of another
    batch, (group,) = world.batch(9)
    world.ledger.mark([Failure(group[3], "torn"), Failure(group[1], "row 7 has no 'price'")]).whole()
    world.clock.advance(7)
    world.ledger.mark(
        [Failure(group[2], "row 9 has no 'name'", KeptMessage("b")), Failure(group[5], "row 1 has no 'x'")]
    ).whole()

    errors = world.ledger.errors(batch.batch_id)

    assert errors.cursor is None
    frequent, other = errors.errors
    assert (frequent.error, frequent.failed, frequent.kept) == ("row <n> has no <text>", 3, 1)
    assert (frequent.example, frequent.first, frequent.last_failed_at) == (
        "row 7 has no 'price'",
        1,
        world.clock.at,
    )
    assert (other.error, other.failed, other.first) == ("torn", 1, 3)


@pytest.mark.parametrize(("rows", "parts"), [(5, 3), (6, 2)])  # the batch, two notes, their word; or three
def test_a_call_reads_a_part_and_the_parts_add_up(world, rows, parts):
    ledger = LedgerService(world.ports, rows=rows)
    batch, (group,) = world.batch(9)
    world.ledger.mark([Failure(group[n], "torn" if n % 2 else f"row {n}") for n in range(5)]).whole()

    pages = [ledger.errors(batch.batch_id)]
    while pages[-1].cursor is not None:
        pages.append(ledger.errors(batch.batch_id, cursor=pages[-1].cursor))

    assert len(pages) == parts
    merged = by_error(group for page in pages for group in page.errors)
    assert [(one.error, one.failed, one.first) for one in merged] == [("row <n>", 3, 0), ("torn", 2, 1)]


# How many items failed: exact where the tree knows, else from the notes, else a lower bound.


def failed(world: World, batch: Batch, *, exact: bool = False) -> tuple[int, bool]:
    """What the status says: how many failed, and whether more may have."""
    row = world.ledger.status(batch.batch_id, exact=exact).batch
    return row.failed, row.failed_more


class TestStatus:
    def test_of_a_complete_batch_stands_in_its_row(self, world):
        # Given 64 items, 5 of them failed in words that were finished by others
        batch, (group,) = world.batch(64, closed=True)
        world.fail(*(group[n] for n in (0, 1, 17, 33, 63)))
        world.ledger.mark(list(group)).whole()
        world.accesses.reads.clear()
        # Then one read tells how many failed
        row = world.ledger.status(batch.batch_id).batch
        assert (row.state, row.failed, row.failed_more) == (State.COMPLETE, 5, False)
        assert world.accesses.reads.total() == 1

    def test_of_a_large_running_batch_counts_few_failures_by_their_notes(self, world):
        batch, (group,) = world.batch(4**5)
        world.fail(*(group[n] for n in range(0, 30, 3)))

        assert failed(world, batch) == (10, False)

    def test_of_a_large_running_batch_is_a_lower_bound_where_many_failed(self, world):
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

    def test_a_note_whose_item_succeeded_is_not_counted(self, world):
        """A process may die between the note and the mark; then another marks the item as done."""
        batch, (group,) = world.batch(4**5)
        note = FailureRow(0, group[0], "died")
        world.ports.parts.put_failures(batch.batch_id, [note], expires_at=batch.expires_at)
        world.ledger.mark([group[0]]).whole()
        world.fail(group[900])

        assert failed(world, batch) == (1, False)

    def test_of_an_estimated_batch_are_the_notes(self, world):
        batch, (group,) = world.batch(64, mode=Mode.ESTIMATED)
        world.fail(group[0], group[9])
        world.fail(group[0])

        assert failed(world, batch) == (2, False)

    def test_is_never_less_than_its_row_says(self, world):
        batch, (group,) = world.batch(64)
        world.fail(group[0])
        row = replace(batch, failed=7, failed_more=True)

        assert Failed(world.ports).counted(row, Tally(whole=False), budget=0).failed == 7

    def test_counts_in_one_word_and_in_the_words_below_the_root(self, world):
        small, (few,) = world.batch(4)
        large, (many,) = world.batch(16)
        world.fail(few[0], few[2], many[0], many[1], many[5], many[15])

        assert failed(world, small) == (2, False)
        assert failed(world, large) == (4, False)


class TestAtTheEnd:
    """What a batch is written as complete with, when a range was marked from above."""

    def test_a_word_that_is_throttled_is_tried_again_with_the_end(self, world):
        batch, (group,) = world.batch(64, closed=True)
        note = FailureRow(9, group[9], "slow")
        world.ports.parts.put_failures(batch.batch_id, [note], expires_at=batch.expires_at)
        world.at("words.clear", "before", lambda: None)
        world.raise_at("words.clear", "before", Throttled("busy"))

        assert list(world.ledger.mark([ItemRange(group.prefix)]).left) == [0]
        assert world.ledger.mark([ItemRange(group.prefix)]).whole()[0].complete

    def test_a_note_whose_item_is_pending_on_its_own_level_is_done_and_not_failed(self, world):
        # Given notes of two items, of which one has failed, and a range over both
        batch, (group,) = world.batch(64, closed=True)
        world.fail(group[5])
        note = FailureRow(9, group[9], "slow")
        world.ports.parts.put_failures(batch.batch_id, [note], expires_at=batch.expires_at)
        world.ledger.mark([ItemRange(group.prefix)]).whole()

        row = world.row(batch)

        assert (row.state, row.failed, row.failed_more) == (State.COMPLETE, 1, False)
        assert world.word(batch, 0, 2) == 0b1101  # the other items of its word stay as they were


@pytest.mark.parametrize("state", [State.OPEN, State.COMPLETE])
def test_list_tells_what_the_root_knows_in_one_read_a_live_batch(world, state):
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
def test_of_more_notes_than_are_counted_at_the_end_there_may_be_more(world, monkeypatch, counted, failed):
    # Given failures of which the tree has carried three up, before a range passed over two others
    monkeypatch.setattr(module, "MOST_COUNTED", counted)
    batch, (group,) = world.batch(4**3, closed=True)
    world.fail(*group[:3], group[17], group[33])
    world.ledger.mark([*group[3:16]]).whole()
    world.ledger.mark([ItemRange(group.prefix)]).whole()

    row = world.ports.batches.read([batch.batch_id])[batch.batch_id]
    assert (row.state, row.failed, row.failed_more) == (State.COMPLETE, failed, True)


# Held items: they failed, are pending, and no redrive has taken them.


HOLD = OnFailure.HOLD


def held(world: World, batch: Batch, *, exact: bool = False) -> tuple[int, bool]:
    row = world.ledger.status(batch.batch_id, exact=exact).batch
    return row.held, row.may_hold_more


def holding(world: World, size: int, *, closed: bool = True) -> tuple[Batch, Group]:
    batch, (group,) = world.batch(size, closed=closed, on_failure=HOLD)
    return batch, group


class TestFailing:
    def test_an_item_stays_pending_and_the_receipt_says_so(self, world):
        # Given a batch that holds, with an item that is done
        batch, group = holding(world, 4)
        world.ledger.mark([group[0]]).whole()
        # When three fail, one of them named twice, and one that is done
        (receipt,) = world.fail(group[1], group[2], group[1], group[0])
        # Then two are held, and nothing was marked
        assert (receipt.held, receipt.first, receipt.state) == (2, 0, State.CLOSED)
        assert receipt.duplicates == (group[1], group[0])
        progress = world.ledger.status(batch.batch_id, exact=True)
        assert (progress.done_min, progress.batch.failed, progress.batch.held) == (1, 0, 2)

    def test_a_range_far_above_ends_the_hold_too(self, world):
        batch, group = holding(world, 64)
        world.fail(group[5])
        world.ledger.mark([ItemRange(group.prefix, 0, 16)]).whole()

        (receipt,) = world.fail(group[6])

        assert (receipt.held, receipt.duplicates) == (0, (group[6],))
        assert held(world, batch, exact=True) == (0, False)


class TestCounting:
    def test_is_exact_within_its_reads_and_a_lower_bound_beyond(self, world):
        batch, group = holding(world, 64)
        world.fail(*group[0:40])

        few, more = held(world, batch)
        assert (0 < few < 40, more) == (True, True)
        assert held(world, batch, exact=True) == (40, False)

    @pytest.mark.parametrize("apart", [1, 3, 64, 997])
    def test_a_status_reads_no_more_rows_than_that_of_another_batch(self, apart):
        # Given a large batch that holds failures near each other or far apart, some of them released
        world = World(64)
        batch, group = holding(world, 300_000)
        world.fail(*(group[n * apart] for n in range(200)))
        world.ledger.mark([ItemRange(group.prefix, 100 * apart + 1, 100 * apart + 10_000)]).whole()
        world.ledger.release(batch.batch_id, Selection(ranges=(OrdinalRange(0, 2),)))
        world.accesses.reads.clear()

        progress = world.ledger.status(batch.batch_id)
        # Then what it says is a lower bound, and not none
        assert world.accesses.reads.total() <= 67
        assert (0 < progress.batch.held < 200, progress.batch.may_hold_more) == (True, True)
        exact = world.ledger.status(batch.batch_id, exact=True)
        assert progress.batch.held <= exact.batch.held
        assert progress.done_min <= exact.done_min <= progress.done_max

    def test_costs_a_batch_that_holds_nothing_no_read(self, world):
        def reads(**request: object) -> int:
            batch, (group,) = world.batch(16, **request)
            world.ledger.mark([group[0]]).whole()
            world.accesses.reads.clear()
            world.ledger.status(batch.batch_id)
            return world.accesses.reads.total()

        assert reads() < reads(on_failure=HOLD)
        assert "parts.redriven" not in world.accesses.reads

    def test_a_listing_of_failures_tells_held_from_failed(self, world):
        batch, group = holding(world, 8)
        world.fail(*group[0:4])
        world.ledger.release(batch.batch_id)
        world.ledger.mark([group[4]]).whole()
        world.fail(group[4], group[5])

        listed = world.ledger.failures(batch.batch_id).failures

        assert [(one.ordinal, one.held) for one in listed] == [(n, False) for n in range(4)] + [(5, True)]

    def test_a_brief_status_reads_the_row_alone(self, world):
        batch, group = holding(world, 64)
        world.fail(group[0])
        world.accesses.reads.clear()

        progress = world.ledger.status(batch.batch_id, brief=True)

        assert world.accesses.reads.total() == 1
        assert (progress.done_min, progress.done_max, progress.batch.may_hold_more) == (0, 64, True)


@pytest.mark.parametrize("action", OnDeadline)
def test_ends_a_deadline_ends_it_and_the_event_says_what_is_held(world, action):
    batch, (group,) = world.batch(
        3, closed=True, on_failure=HOLD, deadline=world.clock.at + 1_000, on_deadline=action
    )
    world.ledger.mark([group[0]]).whole()
    world.fail(group[1])
    world.clock.advance(2_000)

    row = world.ledger.meet_deadline(batch.batch_id)
    assert row is not None
    world.ledger.announce(row)

    detail = world.memory.events.published[-1].detail
    assert (detail["held"], detail["held_more"]) == (1, False)
    assert (detail["failed"], detail["failures"]) == (0, [])


def test_only_a_plain_batch_that_knows_its_items_can_hold(world):
    with pytest.raises(InvalidRequest, match=r'on_failure="hold" needs to know which items failed'):
        world.ledger.open(OpenBatch(mode=Mode.ESTIMATED, on_failure=HOLD))
    with pytest.raises(InvalidRequest, match="is for plain batches, not for a buffer"):
        world.ledger.open(OpenBatch(kind=Kind.BUFFER, on_failure=HOLD))


# Held items are given up: in pages, once, and by whoever is first.


def test_what_is_released_has_failed_and_the_batch_completes(world):
    batch, (group,) = world.batch(20, closed=True, on_failure=HOLD)
    world.fail(*group[0:5])
    world.ledger.mark(list(group[5:20])).whole()

    released = world.ledger.release(batch.batch_id)

    row = world.row(batch)
    assert (released.released, released.cursor, released.batch.state) == (5, None, State.COMPLETE)
    assert (row.failed, row.failed_more, released.batch.held) == (5, False, 0)


def test_only_what_is_selected_and_held(world):
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


def test_pages_with_a_cursor(world):
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
def test_a_repeat_after_a_crash_goes_on(world, call, moment):
    batch, (group,) = world.batch(5, closed=True, on_failure=HOLD)
    world.fail(*group)
    with world.dying(call, moment):
        world.ledger.release(batch.batch_id)

    process = world.fresh()
    process.release(batch.batch_id)
    process.verify(batch.batch_id)  # does what the stream of finished words does

    assert (world.row(batch).state, world.row(batch).failed) == (State.COMPLETE, 5)


def test_a_batch_that_holds_nothing_and_an_empty_range_are_refused(world):
    batch, _ = world.batch(1)
    with pytest.raises(InvalidRequest, match="holds no items: an item that fails in it is done"):
        world.ledger.release(batch.batch_id)
    with pytest.raises(InvalidRequest, match="the start of a range"):
        world.ledger.release(0, Selection(ranges=[OrdinalRange(2, 2)]))


def test_what_a_held_failure_brought_is_added_when_it_is_released(world):
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


def test_a_release_is_activity(world):
    batch, (group,) = world.batch(3, on_failure=HOLD)
    world.fail(group[1])
    world.clock.advance(3_600_000)

    world.ledger.release(batch.batch_id)

    assert world.clock.at - world.row(batch).touched_at < 3_600_000


def test_a_release_after_the_end_marks_nothing(world):
    batch, (group,) = world.batch(3, on_failure=HOLD)
    world.fail(group[1])
    world.ledger.cancel(batch.batch_id)

    with world.costing(writes=0):
        found = world.fresh().release(batch.batch_id)

    assert (found.released, found.batch.held) == (0, 1)


def test_a_batch_that_completes_ends_the_pages(world):
    # Given notes on two pages, of which the items behind the first are done by now
    batch, (group,) = world.batch(3, closed=True, on_failure=HOLD)
    world.fail(*group)
    world.ledger.mark(list(group[1:3])).whole()

    released = LedgerService(world.ports, rows=AROUND + READS + 1).release(batch.batch_id)

    assert (released.released, released.batch.state, released.cursor) == (1, State.COMPLETE, None)


@pytest.mark.parametrize("moment", ["before", "after"])
def test_an_acknowledgement_meanwhile_decides_if_it_is_first(world, moment):
    batch, (group,) = world.batch(1, closed=True, on_failure=HOLD)
    world.fail(group[0])
    world.at("words.clear", moment, lambda: world.fresh().mark([group[0]]).whole())

    released = world.ledger.release(batch.batch_id)

    won = moment == "after"
    assert world.happened
    assert (released.released, world.row(batch).failed) == (int(won), int(won))
    assert world.row(batch).state is State.COMPLETE
