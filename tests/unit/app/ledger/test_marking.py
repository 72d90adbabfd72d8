"""Marking: every mark is judged at its place, and one that is at fault affects no other."""

from collections import Counter
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fanin.domain import ids, limits
from fanin.domain.batch import Batch, Mode, OnFailure, OpenBatch, State
from fanin.domain.failures import KeptMessage
from fanin.domain.ids import Group
from fanin.domain.marks import (
    Count,
    Done,
    Failure,
    ItemRange,
    Malformed,
    Mark,
    Marked,
    Receipt,
    merge,
    merge_receipts,
)
from fanin.errors import (
    BatchGone,
    BatchNotFound,
    FaninError,
    InvalidItemId,
    InvalidRequest,
    NotConfigured,
    OutcomeUnknown,
    RequestTooLarge,
    ServiceUnavailable,
    Throttled,
)
from tests.unit.app.conftest import World


def kinds(errors: Any) -> dict[int, type[FaninError]]:
    """The classes of errors, by place."""
    return {place: type(error) for place, error in errors.items()}


def no_bucket(world: World, monkeypatch: pytest.MonkeyPatch) -> KeptMessage:
    """Take the bucket away; returns a message that only a bucket can keep."""

    def put(_key: str, _content: bytes) -> None:
        raise NotConfigured("no bucket")

    monkeypatch.setattr(world.memory.claims, "put", put)
    return KeptMessage("x" * limits.MAX_KEPT_IN_ROW)


class TestVerdicts:
    """Every good mark is in a receipt, every bad one is refused at its place, and nothing is in neither."""

    def test_a_bad_mark_affects_no_other(self, world, monkeypatch):
        # Given a live batch with totals, one that was removed, one that was never opened, and no bucket
        unknown = f"{ids.issue(5, 0, 8, bytes(16)).prefix}:0"
        gone, (lost,) = world.batch(2)
        world.ledger.cancel(gone.batch_id)
        world.ledger.expire(State.CANCELLED, idle_since=world.clock.at + 1)
        world.ledger = world.fresh()
        batch, (group,) = world.batch(20, user_key="mine", totals=("rows",))
        other, (plain,) = world.batch(4, closed=True)
        counted, _ = world.batch(9, mode=Mode.ESTIMATED)
        block = ids.parse_prefix(group.prefix)
        forged = block._replace(check=block.check ^ 1).prefix
        ahead = ids.issue(batch.batch_id, 20, 5, batch.salt).prefix  # the salt vouches for it
        huge = no_bucket(world, monkeypatch)
        # When one request has marks of every kind, and each may be at fault
        good: list[Mark] = [
            group[0],
            Done(group[1], {"rows": 5}),
            Failure(group[2], "torn", KeptMessage("small"), totals={"rows": -1}),
            ItemRange(group.prefix, 3, 6),
            group[0],
            group[6],
            *plain,
            Count(counted.batch_id, 3),
        ]
        bad: list[tuple[Any, type[FaninError]]] = [
            ("nonsense", InvalidItemId),
            (f"{group.prefix}:20", InvalidItemId),
            (None, InvalidItemId),
            (f"{forged}:0", InvalidItemId),
            (f"{ahead}:0", InvalidItemId),
            (f"{other.batch_id}:{group.id}:0", InvalidItemId),
            (ItemRange(forged), InvalidItemId),
            (ItemRange(group.prefix, 19, 21), InvalidRequest),
            (Failure(f"{forged}:0"), InvalidItemId),
            (lost[0], BatchGone),
            (ItemRange(lost.prefix), BatchGone),
            (unknown, BatchNotFound),
            (Failure(unknown), BatchNotFound),
            (Done(group[7], {"cents": 1}), InvalidRequest),
            (Done(plain[0], {"rows": 1}), InvalidRequest),
            (Count(counted.batch_id, 1, {"rows": 1}), InvalidRequest),
            (Done(group[7], {"rows": 2**53 + 1}), InvalidRequest),
            (Failure(group[8], "r" * 1_025), InvalidRequest),
            (Failure(group[9], "torn", huge), RequestTooLarge),
            (Malformed(InvalidRequest("no mark")), InvalidRequest),
            (Count(batch.batch_id, 3), InvalidRequest),
        ]
        marks, refused = list[Mark](), dict[int, type[FaninError]]()
        for mark, error in bad:
            if good:
                marks.append(good.pop(0))
            refused[len(marks)] = error
            marks.append(mark)
        marked = world.ledger.mark(marks)

        assert kinds(marked.refused) == refused
        assert (marked.left, marked.unknown) == ({}, {})
        assert marked.receipts == [
            Receipt(batch.batch_id, "mine", State.OPEN, first=4, failed=1, duplicates=(group[0],), ranged=3),
            Receipt(other.batch_id, "", State.COMPLETE, complete=True, first=4),
            Receipt(counted.batch_id, "", State.OPEN, ranged=3),
        ]
        # And what is stored says the same
        row = world.ledger.status(batch.batch_id, exact=True).batch
        assert (row.failed, row.totals) == (1, {"rows": 4})
        assert world.ledger.pending(batch.batch_id, 0, 20) == {*range(7, 20)}
        assert [one.ordinal for one in world.ledger.failures(batch.batch_id).failures] == [2]
        assert world.row(counted).acked == 3

    def test_of_bad_marks_alone_are_no_receipt_and_no_write(self, world):
        batch, (group,) = world.batch(3)

        with world.costing(writes=0):
            marked = world.ledger.mark(["", f"{group.prefix}:3", Count(batch.batch_id, 1)])

        assert (marked.receipts, list(marked.refused)) == ([], [0, 1, 2])

    def test_of_nothing_are_none(self, world):
        assert world.ledger.mark([]) == Marked([])

    def test_a_later_mark_of_an_item_whose_first_is_refused_is_left_or_decides(self, world, monkeypatch):
        # Given a failure that cannot be kept, which is found out late, and values that are refused at once
        batch, (group,) = world.batch(3, totals=("rows",))
        marks = [
            Failure(group[0], "torn", no_bucket(world, monkeypatch)),
            group[0],
            Done(group[1], {"cents": 1}),
            Done(group[1], {"rows": 1}),
        ]

        marked = world.ledger.mark(marks)

        assert (sorted(marked.refused), list(marked.left)) == ([0, 2], [1])
        assert marked.receipts == [Receipt(batch.batch_id, "", State.OPEN, first=1)]
        assert world.ledger.mark([group[0]]).whole()[0].first == 1

    def test_weigh_at_most_so_much_and_more_is_refused_as_a_whole(self):
        world = World(width=64)
        _, (group,) = world.batch(limits.MAX_MARKS + 1)
        heavy = limits.MAX_MARKS // 10

        with world.refusing(RequestTooLarge, "weigh 10001"):
            world.ledger.mark(list(group))
        with world.refusing(RequestTooLarge, "weigh 10010"):
            world.ledger.mark([Failure(group[n]) for n in range(heavy + 1)])

        assert world.fail(*group[:heavy])[0].failed == heavy
        assert world.ledger.mark(list(group[1:])).whole()[0].first == limits.MAX_MARKS - heavy + 1
        spans = [ItemRange(group.prefix, n, n + 1) for n in range(heavy)]
        assert world.ledger.mark(spans).whole()[0].ranged == heavy


@pytest.mark.parametrize("size", [3, 64])
@pytest.mark.parametrize("fails_first", [True, False])
@pytest.mark.parametrize("on_failure", OnFailure)
def test_first_of_an_item_that_a_range_covers(world, on_failure, size, *, fails_first):
    """The first mark of an item decides, with its values; later ones are duplicates."""
    # Given a range that is marked on the item's own level, or above it
    batch, (group,) = world.batch(size, on_failure=on_failure)
    marks: list[Mark] = [Failure(group[1], "torn"), ItemRange(group.prefix)]

    marks = marks if fails_first else marks[::-1]
    marked = world.ledger.mark(marks)
    again = world.ledger.mark([marks[place] for place in marked.left])
    (receipt,) = merge_receipts([*marked.receipts, *again.whole()])
    # Then a failure that came first is one, unless the batch holds it until the range has it done
    held = fails_first and on_failure is OnFailure.HOLD
    failed = fails_first and not held
    assert receipt == Receipt(
        batch.batch_id,
        "",
        State.OPEN,
        first=failed,
        failed=failed,
        held=held,
        ranged=size,
        duplicates=() if fails_first else (group[1],),
    )
    row = world.ledger.close(batch.batch_id)
    assert (row.state, row.failed, row.failed_more) == (State.COMPLETE, failed, False)


def test_a_word_of_which_some_items_failed_and_others_are_done_is_one_write(world):
    batch, (group,) = world.batch(8)

    with world.costing(writes=1, of="words.clear"):
        (receipt,) = world.ledger.mark(
            [group[0], Failure(group[1]), Done(group[2]), Failure(group[0])]
        ).whole()

    assert (receipt.first, receipt.failed, receipt.duplicates) == (3, 1, (group[0],))
    assert [one.ordinal for one in world.ledger.failures(batch.batch_id).failures] == [1]


class TestReceipts:
    def test_know_an_item_under_any_of_its_ids(self, world):
        # Given an item that is listed as missing under a group id of its own
        batch, (group,) = world.batch(6)
        world.ledger.mark([group[i] for i in (0, 1, 2, 4, 5)]).whole()
        (gap,) = world.ledger.missing(batch.batch_id).ranges
        other = f"{gap.group}:0"

        (receipt,) = world.ledger.mark([group[3], other]).whole()

        assert (receipt.first, receipt.duplicates) == (1, (other,))

    def test_come_in_the_order_in_which_batches_are_named(self, world):
        ended, (late,) = world.batch(2)
        world.ledger.cancel(ended.batch_id)
        live, (group,) = world.batch(2)
        counted, (some,) = world.batch(2, mode=Mode.ESTIMATED)

        receipts = world.ledger.mark([some[0], late[0], group[0], ItemRange(group.prefix, 1, 2)]).whole()

        assert [(r.batch_id, r.first, r.ranged, r.late) for r in receipts] == [
            (counted.batch_id, 0, 1, 0),
            (ended.batch_id, 0, 0, 1),
            (live.batch_id, 1, 1, 0),
        ]


class TestCost:
    @pytest.mark.parametrize("ordinals", [range(7, 8), range(64, 127)])
    def test_items_of_one_word_are_one_write_and_no_read_in_a_warm_process(self, ordinals):
        world = World(width=64)
        _, (group,) = world.batch(10_000)

        with world.costing(writes=1, reads=0):
            world.ledger.mark([group[i] for i in ordinals]).whole()

    def test_a_whole_closed_batch_is_few_writes(self):
        world = World(width=64)
        batch, (group,) = world.batch(10**6, closed=True)

        with world.costing(writes=4):  # three words, and the row
            (receipt,) = world.ledger.mark([ItemRange(group.prefix)]).whole()

        assert receipt.complete
        assert world.row(batch).state is State.COMPLETE


class TestEstimated:
    def test_counts_ids_ranges_failures_and_numbers_alike(self, world):
        batch, (group,) = world.batch(10, mode=Mode.ESTIMATED, totals=("rows", "cents"))

        (receipt,) = world.ledger.mark(
            [
                *group[:2],
                ItemRange(group.prefix, 2, 5),
                Count(batch.batch_id, 4, {"cents": -4}),
                Done(group[0], {"rows": 7}),
                Failure(group[1], "torn", totals={"rows": 1}),
            ]
        ).whole()

        assert (receipt.ranged, receipt.first, receipt.failed) == (11, 0, 1)
        row = world.ledger.status(batch.batch_id).batch
        assert (row.acked, row.totals, row.totals_exact) == (11, {"rows": 8, "cents": -4}, False)
        assert [one.ordinal for one in world.ledger.failures(batch.batch_id).failures] == [1]

    def test_may_count_a_duplicate_twice(self, world):
        batch, (group,) = world.batch(2, mode=Mode.ESTIMATED, closed=True)

        receipts = [world.ledger.mark([group[0]]).whole()[0] for _ in range(2)]

        assert [receipt.complete for receipt in receipts] == [False, True]
        assert world.row(batch).state is State.COMPLETE

    def test_is_unknown_if_the_answer_is_lost_and_the_rest_is_settled(self, world):
        # Given an item of an exact batch, and counts of three others, of which one answer is lost
        rows = [world.batch(3, mode=Mode.ESTIMATED, closed=True)[0] for _ in range(3)]
        exact, (group,) = world.batch(2)
        counts = [Count(row.batch_id, 1) for row in rows]
        world.raise_at("batches.count", "after", OutcomeUnknown("no answer"), after=1)

        marked = world.ledger.mark([counts[0], counts[1], group[0], counts[1], counts[2]])

        assert kinds(marked.unknown) == dict.fromkeys((1, 3), OutcomeUnknown)
        assert (marked.refused, marked.left) == ({}, {})
        assert [world.row(row).acked for row in rows] == [1, 2, 1]
        assert [(one.batch_id, one.first, one.ranged) for one in marked.receipts] == [
            (rows[0].batch_id, 0, 1),
            (exact.batch_id, 1, 0),
            (rows[2].batch_id, 0, 1),
        ]

    def test_that_is_throttled_is_left_alone(self, world):
        rows = [world.batch(5, mode=Mode.ESTIMATED)[0] for _ in range(3)]
        world.raise_at("batches.count", "before", Throttled("busy"), after=1)

        marked = world.ledger.mark([Count(row.batch_id, 2) for row in rows])

        assert list(marked.left) == [1]
        assert [world.row(row).acked for row in rows] == [2, 0, 2]

    @pytest.mark.parametrize("error", [Throttled, ServiceUnavailable])
    def test_that_is_counted_is_not_asked_for_again(self, world, error):
        batch, _ = world.batch(5, mode=Mode.ESTIMATED, closed=True)

        world.raise_at("batches.end", "before", error("not now"))
        (receipt,) = world.ledger.mark([Count(batch.batch_id, 5)]).whole()

        assert (receipt.ranged, receipt.complete) == (5, False)
        assert world.happened
        world.clock.advance(3_600_000)
        world.ledger.reap()
        assert world.row(batch).state is State.COMPLETE

    @pytest.mark.parametrize("fresh", [False, True])
    def test_counts_nothing_after_its_end(self, world, fresh):
        batch, _ = world.batch(3, mode=Mode.ESTIMATED)
        (world.fresh() if fresh else world.ledger).cancel(batch.batch_id)

        (receipt,) = world.ledger.mark([Count(batch.batch_id, 3)]).whole()

        assert (receipt.state, receipt.late, receipt.ranged) == (State.CANCELLED, 3, 0)
        assert world.row(batch).acked == 0


def test_failures_are_not_listed_for_items_of_a_range_marked_high_up(world):
    # Given 64 items of words of four bits, and a range that left no trace on its leaves
    batch, (group,) = world.batch(64)
    world.ledger.mark([ItemRange(group.prefix, 16, 32)]).whole()
    # When some of them fail, and one beside them
    (receipt,) = world.fail(*(group[index] for index in (16, 21, 31, 32)))
    # Then only the one beside them has failed
    assert (receipt.first, receipt.duplicates) == (1, (group[16], group[21], group[31]))
    assert [failure.ordinal for failure in world.ledger.failures(batch.batch_id).failures] == [32]
    assert world.ledger.status(batch.batch_id, exact=True).done_min == 17


class TestLeft:
    """Words have 4 items: 0 to 3 are of word 0, 4 to 7 of word 1. A repeat settles what is left."""

    def test_a_throttled_word_leaves_only_its_marks(self, world):
        batch, (group,) = world.batch(9, closed=True)
        world.ledger.mark([group[n] for n in (2, 3, 6, 7)]).whole()
        world.raise_at("words.clear", "before", Throttled("slow down"), after=1)
        marks = [group[0], Failure(group[4], "lost"), group[1], group[5], group[8], group[4]]

        marked = world.ledger.mark(marks)

        assert kinds(marked.left) == dict.fromkeys((1, 3, 5), Throttled)
        assert marked.receipts == [Receipt(batch.batch_id, "", State.CLOSED, first=3)]
        assert world.ledger.mark([marks[place] for place in marked.left]).whole() == [
            Receipt(
                batch.batch_id, "", State.COMPLETE, complete=True, first=2, failed=1, duplicates=(group[4],)
            )
        ]
        assert [one.reason for one in world.ledger.failures(batch.batch_id).failures] == ["lost"]

    def test_a_row_that_is_gone_while_words_are_written_leaves_all_marks_to_the_repeat(self, world):
        _, (group,) = world.batch(3)
        world.raise_at("words.clear", "before", BatchGone("a batch was removed"))

        assert kinds(world.ledger.mark(list(group)).left) == dict.fromkeys(range(3), Throttled)

    @pytest.mark.parametrize("error", [Throttled("busy"), ServiceUnavailable("no answer")])
    def test_a_batch_row_that_cannot_be_read_leaves_only_its_batch(self, world, error):
        _, (known,) = world.batch(3)
        unread = world.fresh().add(world.fresh().open(OpenBatch()).batch_id, 3)
        world.raise_at("batches.read", "before", error)
        marks = [unread[0], known[0], ItemRange(unread.prefix, 1)]

        marked = world.ledger.mark(marks)

        assert kinds(marked.left) == dict.fromkeys((0, 2), type(error))
        assert [receipt.first for receipt in marked.receipts] == [1]
        assert world.ledger.mark([marks[0], marks[2]]).whole()[0].first == 1

    @pytest.mark.parametrize(
        ("call", "after"),
        [("parts.put_failures", 0), ("parts.put_messages", 0), ("batches.read", 1), ("words.read", 0)],
    )
    def test_notes_that_cannot_be_written_leave_only_failures(self, world, call, after):
        batch, (group,) = world.batch(12)
        _, (other,) = world.batch(3)
        marks = [group[0], Failure(group[1], "torn", KeptMessage("body")), group[1], other[0], group[4]]
        world.raise_at(call, "before", Throttled("busy"), after=after)

        marked = world.ledger.mark(marks)

        assert list(marked.left) == [1, 2]
        assert [(receipt.first, receipt.failed) for receipt in marked.receipts] == [(2, 0), (1, 0)]
        assert world.ledger.failures(batch.batch_id).failures == ()
        (receipt,) = world.ledger.mark([marks[place] for place in marked.left]).whole()
        assert (receipt.failed, receipt.duplicates) == (1, (group[1],))

    def test_what_could_not_be_noted_is_not_held(self, world):
        _, (group,) = world.batch(3, on_failure=OnFailure.HOLD)
        world.raise_at("parts.update_failures", "before", Throttled("busy"))

        marked = world.ledger.mark([Failure(group[1]), group[0]])

        assert list(marked.left) == [0]
        assert [(receipt.first, receipt.held) for receipt in marked.receipts] == [(1, 0)]
        assert world.fail(group[1])[0].held == 1

    def test_a_range_behind_a_failure_of_one_of_its_items_waits_for_the_next_call(self, world):
        """Else a failure whose word is throttled would be found done by its repeat."""
        # Given ranges that end and begin beside the item, and two over it
        batch, (group,) = world.batch(64, closed=True)
        marks = [
            ItemRange(group.prefix, 32, 48),
            Failure(group[5], "torn"),
            ItemRange(group.prefix, 0, 5),
            ItemRange(group.prefix, 5, 6),
            ItemRange(group.prefix, 6, 32),
            ItemRange(group.prefix, 4, 6),
            ItemRange(group.prefix, 48),
        ]

        marked = world.ledger.mark(marks)

        assert sorted(marked.left) == [3, 5]
        assert marked.receipts[0].complete
        assert world.row(batch).failed == 1
        assert world.ledger.mark([marks[place] for place in marked.left]).whole()[0].ranged == 3

    def test_activity_that_cannot_be_noted_is_noted_by_the_repeat(self, world):
        batch, (group,) = world.batch(12)
        world.clock.advance(batch.open_idle_ttl * 500)
        world.raise_at("batches.touch", "before", Throttled("slow down"))

        assert list(world.ledger.mark([group[0]]).left) == [0]
        world.ledger.mark([group[0]]).whole()

        assert world.row(batch).touched_at > batch.touched_at

    def test_a_call_whose_time_is_up_while_it_ends_batches_leaves_the_rest(self, world, monkeypatch):
        """The stores begin nothing when the time is up, be it the end of one batch in a thousand."""
        # Given many closed batches with one item each, and a call that has time to end three of them
        items = [world.batch(1, closed=True)[1][0][0] for _ in range(20)]
        ended: list[int] = []

        def stop(call: str, moment: str) -> None:
            if len(ended) == 3:
                raise Throttled("the time for this call is up")
            if (call, moment) == ("batches.end", "after"):
                ended.append(1)

        monkeypatch.setattr(world.accesses, "_on_call", stop)

        marked = world.ledger.mark(items)
        # Then each is settled or left, and a repeat with more time ends the other batches
        assert len(marked.receipts) + len(marked.left) == 20
        monkeypatch.setattr(world.accesses, "_on_call", lambda *_: None)
        receipts = world.fresh().mark(items).whole()
        assert [receipt.complete for receipt in receipts] == [True] * 20

    def test_ranges_of_batches_with_totals_are_left_beyond_what_one_call_marks_item_by_item(self):
        # Given ranges of batches with totals, one of a batch without, and one of an estimated batch
        world = World(width=64)
        one, two, large, plain, estimated = (
            ItemRange(world.batch(items, mode=mode, totals=totals)[1][0].prefix)
            for items, mode, totals in [
                *((n, Mode.EXACT, ("rows",)) for n in (9_000, 1_000, 10_001)),
                (10_001, Mode.EXACT, ()),
                (10_001, Mode.ESTIMATED, ("rows",)),
            ]
        )

        marked = world.ledger.mark([one, two, large, plain, estimated])

        assert kinds(marked.refused) == {2: RequestTooLarge}
        assert [receipt.ranged for receipt in marked.receipts] == [9_000, 1_000, 10_001, 10_001]
        # And of one batch, what does not fit waits for the next call
        _, (group,) = world.batch(15_000, totals=("rows",))
        marks = [ItemRange(group.prefix, 0, 8_000), ItemRange(group.prefix, 8_000)]
        marked = world.ledger.mark(marks)
        assert (list(marked.left), marked.receipts[0].ranged) == ([1], 8_000)
        assert world.ledger.mark(marks[1:]).whole()[0].ranged == 7_000
        assert world.ledger.mark([ItemRange(group.prefix, 0, 10_000)]).whole()[0].ranged == 10_000

    def test_a_batch_whose_words_cannot_be_read_leaves_only_its_own_failures(self, world):
        groups = [world.batch(12)[1][0] for _ in range(3)]
        world.raise_at("words.read", "before", Throttled("busy"))

        marked = world.ledger.mark([Failure(group[1]) for group in groups])

        assert list(marked.left) == [0]
        assert [receipt.failed for receipt in marked.receipts] == [1, 1]


class TestFailedAtTheEnd:
    """How many failed is exact in the row of a complete batch, and no failure comes after the end."""

    @pytest.mark.parametrize("access", [("parts.put_failures", "after"), ("words.clear", "before")])
    def test_a_failure_that_is_slow_to_write_has_not_failed(self, world, access):
        # Given a failure whose note is written, when a range marks everything and completes the batch
        batch, (group,) = world.batch(64, closed=True)
        world.at(*access, lambda: world.fresh().mark([ItemRange(group.prefix)]).whole())

        (receipt,) = world.ledger.mark([Failure(group[21], "slow")]).whole()
        # Then nothing has failed, in the row, or in what is listed
        assert world.happened
        assert (receipt.first, receipt.failed, receipt.duplicates) == (0, 0, (group[21],))
        row = world.row(batch)
        assert (row.state, row.failed, row.failed_more) == (State.COMPLETE, 0, False)
        assert world.fresh().failures(batch.batch_id).failures == ()
        assert world.fresh().status(batch.batch_id, exact=True).batch.failed == 0

    def test_ranges_over_many_failures_do_not_hide_them(self, world):
        # Given 300 failures, scattered, and done items beside them
        batch, (group,) = world.batch(4**5, closed=True)
        world.fail(*(group[n] for n in range(0, 900, 3)))
        world.ledger.mark([group[n] for n in range(1, 900, 3)]).whole()

        world.ledger.mark([ItemRange(group.prefix, 0, 600), ItemRange(group.prefix, 500)]).whole()
        # Then each way to look at it tells the same
        row = world.row(batch)
        assert (row.state, row.failed, row.failed_more) == (State.COMPLETE, 300, False)
        for exact in (False, True):
            told = world.fresh().status(batch.batch_id, exact=exact).batch
            assert (told.failed, told.failed_more) == (300, False)
        listing = world.fresh().failures(batch.batch_id, limit=1_000)
        rest = world.fresh().failures(batch.batch_id, limit=1_000, cursor=listing.cursor)
        assert (len(listing.failures) + len(rest.failures), rest.cursor) == (300, None)
        (told,) = world.fresh().list(State.COMPLETE).batches
        assert (told.failed, told.failed_more) == (300, False)
        world.fresh().announce(row)
        detail = world.memory.events.published[-1].detail
        assert (detail["failed"], detail["failed_more"]) == (300, False)


class Scene:
    """A world with a batch of each kind; two scenes differ in nothing but their ids."""

    def __init__(self) -> None:
        self.world = World()
        self.batches: list[tuple[Batch, Group]] = []
        for request in (
            {"closed": True, "totals": ("rows",)},
            {"on_failure": OnFailure.HOLD},
            {"mode": Mode.ESTIMATED, "totals": ("rows",)},
            {},
        ):
            batch, (group,) = self.world.batch(9, **request)
            self.batches.append((batch, group))
        self.world.ledger.cancel(batch.batch_id)

    def mark(self, said: tuple[str, int, int, int, str]) -> Mark:
        kind, at, start, size, total = said
        batch, group = self.batches[at]
        item, totals = group[start], {total: size} if total else {}
        return {
            "id": lambda: item,
            "done": lambda: Done(item, totals),
            "failure": lambda: Failure(item, f"no {size}", totals=totals),
            # Less than a word, so that it is marked on the items' own level
            "range": lambda: ItemRange(group.prefix, start, min(start + size, 9)),
            "count": lambda: Count(batch.batch_id, size, totals),
            "bad": lambda: f"{group.prefix}:{start + 9}",
            "malformed": lambda: Malformed(InvalidRequest("no")),
        }[kind]()

    def receipts(self, marked: Marked) -> list[Any]:
        """What receipts say, without ids. An item that its batch holds may be held again by a later call."""
        numbers = {batch.batch_id: at for at, (batch, _) in enumerate(self.batches)}
        told = [replace(one, batch_id=numbers[one.batch_id]) for one in marked.receipts]
        named = {one.batch_id: [ids.parse_item(item)[1] for item in one.duplicates] for one in told}
        return sorted(
            (one.batch_id, replace(one, duplicates=(), held=0), len(named[1]) + one.held)
            if one.batch_id == 1
            else (one.batch_id, replace(one, duplicates=()), named[one.batch_id])
            for one in told
        )

    def state(self) -> list[Any]:
        ledger = self.world.fresh()
        found: list[Any] = []
        for batch, _ in self.batches:
            row = ledger.status(batch.batch_id, exact=True).batch
            exact = row.mode is Mode.EXACT
            pending = ledger.pending(batch.batch_id, 0, 9) if exact else set()
            failed = Counter(one.ordinal for one in ledger.failures(batch.batch_id).failures)
            found.append((row.state, row.acked, row.failed, row.held, row.totals, pending, failed))
        return found


said = st.tuples(
    st.sampled_from(["id", "done", "failure", "range", "count", "bad", "malformed"]),
    st.integers(0, 3),
    st.integers(0, 8),
    st.integers(1, 3),
    st.sampled_from(["rows", "rows", "", "no"]),
)


@settings(max_examples=60, deadline=None)
@given(st.lists(said, max_size=30))
def test_a_request_does_what_its_marks_do_one_by_one(request):
    # Given the same marks in one call, with one more for ranges that wait for failures, and in a call each
    one, each = Scene(), Scene()
    marks = [one.mark(said) for said in request]
    first = one.world.ledger.mark(marks)
    places = sorted(first.left)
    again = one.world.ledger.mark([marks[place] for place in places]).at(places)
    together = merge([replace(first, left={}), again])
    apart = merge(each.world.ledger.mark([each.mark(said)]).at([place]) for place, said in enumerate(request))
    # Then the same is refused, done and told
    assert kinds(together.refused) == kinds(apart.refused)
    assert (together.left, together.unknown) == (apart.left, apart.unknown) == ({}, {})
    assert one.receipts(together) == each.receipts(apart)
    assert one.state() == each.state()
