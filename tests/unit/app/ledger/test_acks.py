"""Acknowledging and failing: checked first, then written, then told exactly."""

from __future__ import annotations

from typing import Any

import pytest

from fanin.domain import ids, limits
from fanin.domain.acks import Acks, Count, Failure, ItemRange, Receipt, join
from fanin.domain.batch import Mode, State
from fanin.domain.reports import FailedItem
from fanin.errors import (
    BatchGone,
    BatchNotFound,
    InvalidItemId,
    InvalidRequest,
    OutcomeUnknown,
    PartlyMarked,
    ServiceUnavailable,
    Throttled,
)
from tests.unit.app.conftest import World


class TestReceipts:
    def test_tell_who_was_first(self, world: World) -> None:
        batch, (group,) = world.batch(6, user_key="mine")

        first = world.ledger.ack(list(group[:3]))
        second = world.fresh().ack(list(group[1:5]))

        assert first == [Receipt(batch.batch_id, "mine", State.OPEN, first=3)]
        assert second == [
            Receipt(batch.batch_id, "mine", State.OPEN, first=2, duplicates=(group[1], group[2]))
        ]

    def test_know_an_item_under_any_of_its_ids(self, world: World) -> None:
        # Given an item that is listed as missing under a group id of its own
        batch, (group,) = world.batch(6)
        world.ledger.ack([group[i] for i in (0, 1, 2, 4, 5)])
        (gap,) = world.ledger.missing(batch.batch_id).ranges
        other = f"{gap.group}:0"

        (receipt,) = world.ledger.ack([group[3], other])

        assert (receipt.first, receipt.duplicates) == (1, (other,))

    def test_come_in_the_order_in_which_batches_are_named(self, world: World) -> None:
        ended, (late,) = world.batch(2)
        world.ledger.cancel(ended.batch_id)
        live, (group,) = world.batch(2)
        counted, (some,) = world.batch(2, mode=Mode.ESTIMATED)

        receipts = world.ledger.ack([some[0], late[0], group[0]], ranges=[ItemRange(group.prefix, 1, 2)])

        assert [(r.batch_id, r.first, r.ranged, r.late) for r in receipts] == [
            (counted.batch_id, 0, 1, 0),
            (ended.batch_id, 0, 0, 1),
            (live.batch_id, 1, 1, 0),
        ]

    def test_of_a_complete_batch_are_duplicates(self, world: World) -> None:
        _, (group,) = world.batch(3, closed=True)
        world.ledger.ack(list(group))

        with world.costing(writes=0):
            (receipt,) = world.ledger.ack(list(group[:2]), ranges=[ItemRange(group.prefix)])

        assert (receipt.complete, receipt.first, receipt.late) == (True, 0, 0)
        assert (receipt.duplicates, receipt.ranged) == (tuple(group[:2]), 3)

    def test_of_a_batch_that_ended_otherwise_are_late(self, world: World) -> None:
        batch, (group,) = world.batch(6)
        world.ledger.ack([group[0]])
        world.ledger.cancel(batch.batch_id)

        with world.costing(writes=0):
            (acked,) = world.ledger.ack([group[0], group[1]], ranges=[ItemRange(group.prefix, 2)])
            (failed,) = world.fail(group[0])

        assert acked == Receipt(batch.batch_id, "", State.CANCELLED, late=6)
        assert failed.late == 1

    def test_of_nothing_are_none(self, world: World) -> None:
        assert world.ledger.ack() == []
        assert world.ledger.fail([]) == []


class TestCost:
    @pytest.mark.parametrize("ordinals", [range(7, 8), range(64, 127)])
    def test_items_of_one_word_are_one_write_and_no_read_in_a_warm_process(self, ordinals: range) -> None:
        world = World(width=64)
        _, (group,) = world.batch(10_000)

        with world.costing(writes=1, reads=0):
            world.ledger.ack([group[i] for i in ordinals])

    def test_a_whole_closed_batch_is_few_writes(self) -> None:
        world = World(width=64)
        batch, (group,) = world.batch(10**6, closed=True)

        with world.costing(writes=4):  # three words, and the row
            (receipt,) = world.ledger.ack(ranges=[ItemRange(group.prefix)])

        assert receipt.complete
        assert world.row(batch).state is State.COMPLETE


@pytest.mark.parametrize("width", [3, 64])
def test_a_range_marks_exactly_its_items(width: int) -> None:
    world = World(width)
    for start, stop in [(0, 1), (0, 70), (3, 4), (1, 69), (8, 16), (7, 17), (64, 70)]:
        batch, (_, group, _) = world.batch(5, 70, 2)

        (receipt,) = world.ledger.ack(ranges=[ItemRange(group.prefix, start, stop)])

        assert receipt.ranged == stop - start
        done = {*range(77)} - world.ledger.pending(batch.batch_id, 0, 77)
        assert done == {*range(5 + start, 5 + stop)}


class TestEstimated:
    def test_counts_ids_ranges_and_numbers_alike(self, world: World) -> None:
        batch, (group,) = world.batch(10, mode=Mode.ESTIMATED)

        (receipt,) = world.ledger.ack(
            list(group[:2]), ranges=[ItemRange(group.prefix, 2, 5)], counts=[Count(batch.batch_id, 4)]
        )

        assert (receipt.ranged, receipt.first) == (9, 0)
        assert world.row(batch).acked == 9

    def test_may_count_a_duplicate_twice(self, world: World) -> None:
        batch, (group,) = world.batch(2, mode=Mode.ESTIMATED, closed=True)

        receipts = [world.ledger.ack([group[0]])[0] for _ in range(2)]

        assert [receipt.complete for receipt in receipts] == [False, True]
        assert world.row(batch).state is State.COMPLETE

    def test_says_that_a_repeat_would_count_again(self, world: World) -> None:
        # Given two estimated batches, of which the first is complete with this count
        counted, other = (world.batch(3, mode=Mode.ESTIMATED, closed=True)[0] for _ in range(2))
        counts = [Count(counted.batch_id, 3), Count(other.batch_id, 1)]

        # When the store does not answer once the first is counted
        world.at("batches.count", "after", lambda: None)
        world.raise_at("batches.count", "before", ServiceUnavailable("no answer"))

        # Then the caller does not hear that nothing was done
        with pytest.raises(OutcomeUnknown, match=rf"\[{counted.batch_id}\] were counted") as raised:
            world.ledger.ack(counts=counts)
        assert not raised.value.retryable
        assert (world.row(counted).acked, world.row(other).acked) == (3, 0)
        assert [receipt.batch_id for receipt in raised.value.receipts] == [counted.batch_id]
        assert raised.value.unknown == join([])
        assert raised.value.rest == join([Acks(counts=counts[1:])])

    def test_says_what_may_be_counted_and_what_is_left(self, world: World) -> None:
        # Given an item, and counts of three batches, and a lost answer to the second
        rows = [world.batch(3, mode=Mode.ESTIMATED)[0] for _ in range(3)]
        exact, (group,) = world.batch(2)
        counts = [Count(row.batch_id, 1) for row in rows]
        world.raise_at("batches.count", "after", OutcomeUnknown("no answer"), after=1)

        # When they are marked
        with pytest.raises(OutcomeUnknown) as raised:
            world.ledger.ack([group[0]], counts=counts)

        # Then the third is not tried
        assert [world.row(row).acked for row in rows] == [1, 1, 0]
        assert [receipt.batch_id for receipt in raised.value.receipts] == [exact.batch_id, rows[0].batch_id]
        assert raised.value.unknown == join([Acks(counts=counts[1:2])])
        assert raised.value.rest == join([Acks(counts=counts[2:])])

    def test_may_be_repeated_while_nothing_is_counted(self, world: World) -> None:
        counted, _ = world.batch(3, mode=Mode.ESTIMATED)
        world.raise_at("batches.count", "before", Throttled("busy"))

        with pytest.raises(Throttled, match="busy"):
            world.ledger.ack(counts=[Count(counted.batch_id, 3)])
        assert world.row(counted).acked == 0

    def test_completes_when_closed_after_all_was_counted(self, world: World) -> None:
        batch, _ = world.batch(3, mode=Mode.ESTIMATED)
        world.ledger.ack(counts=[Count(batch.batch_id, 3)])

        assert world.fresh().close(batch.batch_id).state is State.COMPLETE

    @pytest.mark.parametrize("fresh", [False, True])
    def test_counts_nothing_after_its_end(self, world: World, fresh: bool) -> None:
        batch, _ = world.batch(3, mode=Mode.ESTIMATED)
        (world.fresh() if fresh else world.ledger).cancel(batch.batch_id)

        (receipt,) = world.ledger.ack(counts=[Count(batch.batch_id, 3)])

        assert (receipt.state, receipt.late, receipt.ranged) == (State.CANCELLED, 3, 0)
        assert world.row(batch).acked == 0

    def test_is_asked_for_no_items(self, world: World) -> None:
        batch, _ = world.batch(3, mode=Mode.ESTIMATED)

        for call in (world.ledger.missing, world.ledger.verify):
            with pytest.raises(InvalidRequest, match="estimated"):
                call(batch.batch_id)

    def test_alone_takes_counts(self, world: World) -> None:
        batch, (group,) = world.batch(3)

        with world.refusing(InvalidRequest, "acknowledge its items by their ids"):
            world.ledger.ack([group[0]], counts=[Count(batch.batch_id, 3)])


class TestFailures:
    def test_are_listed_with_their_reasons(self, world: World) -> None:
        batch, (group,) = world.batch(9)

        (receipt,) = world.ledger.fail([Failure(group[7], "late"), Failure(group[2], "broken")])

        assert receipt.first == 2
        assert world.ledger.failures(batch.batch_id).failures == (
            FailedItem(2, group[2], "broken", failed_at=world.clock.at),
            FailedItem(7, group[7], "late", failed_at=world.clock.at),
        )

    def test_are_not_listed_for_items_of_a_range_marked_high_up(self, world: World) -> None:
        # Given 64 items of words of four bits, and a range that left no trace on its leaves
        batch, (group,) = world.batch(64)
        world.ledger.ack(ranges=[ItemRange(group.prefix, 16, 32)])

        # When some of them fail, and one beside them
        (receipt,) = world.fail(*(group[index] for index in (16, 21, 31, 32)))

        # Then only the one beside them has failed
        assert (receipt.first, receipt.duplicates) == (1, (group[16], group[21], group[31]))
        assert [failure.ordinal for failure in world.ledger.failures(batch.batch_id).failures] == [32]
        assert world.ledger.status(batch.batch_id, exact=True).done_min == 17

    def test_are_not_listed_either_where_the_tree_has_grown_since_it_was_seen(self, world: World) -> None:
        # Given a process that saw one word, and another that added to the batch and marked it high up
        batch, (group,) = world.batch(4)
        other = world.fresh()
        other.add(batch.batch_id, 60)
        whole = ids.issue(batch.batch_id, 0, 64, batch.salt)
        other.ack(ranges=[ItemRange(whole.prefix, 0, 16)])

        (receipt,) = world.ledger.fail([Failure(group[3], "no")])

        assert receipt.duplicates == (group[3],)
        assert world.ledger.failures(batch.batch_id).failures == ()

    def test_that_repeat_a_crashed_one_finish_what_it_began(self, world: World) -> None:
        # Given a failure of the last item that died between a word and its parent
        batch, (group,) = world.batch(16, closed=True)
        world.ledger.ack(group[:15])
        with world.dying("words.clear", "after"):
            world.ledger.fail([Failure(group[15], "no")])

        assert world.fresh().fail([Failure(group[15], "no")])[0].complete
        assert [failure.ordinal for failure in world.ledger.failures(batch.batch_id).failures] == [15]


class TestRefusal:
    """One bad id refuses the whole call, names itself, and nothing is written."""

    @pytest.fixture(params=["ack", "range", "fail"])
    def call(self, request: pytest.FixtureRequest, world: World) -> Any:
        """Marks good items, and one that may be bad."""
        _, (good,) = world.batch(8)

        def ack(item: str) -> None:
            world.ledger.ack([good[0], item, good[1]])

        def by_range(item: str) -> None:
            prefix, _, index = item.rpartition(":")
            start = int(index) if index.isdecimal() else 0
            world.ledger.ack([good[0]], ranges=[ItemRange(prefix, start, start + 1)])

        def fail(item: str) -> None:
            world.fail(good[0], item)

        return {"ack": ack, "range": by_range, "fail": fail}[request.param]

    def test_malformed(self, world: World, call: Any) -> None:
        for item in ("", "1:00000000-0000-8000-8000-000000000000:0"):
            with world.refusing(InvalidItemId):
                call(item)

    def test_never_issued(self, world: World, call: Any) -> None:
        (batch, (group,)), (other, _) = world.batch(8), world.batch(8)
        block = ids.parse_prefix(group.prefix)
        ahead = ids.issue(batch.batch_id, 8, 8, batch.salt)  # not yet added, though the salt vouches for it
        prefixes = [
            block._replace(size=9).prefix,
            block._replace(check=block.check ^ 1).prefix,
            ids.issue(batch.batch_id, 0, 8, bytes(16)).prefix,
            f"{other.batch_id}:{group.id}",
            ahead.prefix,
        ]

        for prefix in prefixes:
            with world.refusing(InvalidItemId):
                call(f"{prefix}:0")
        with world.refusing(InvalidRequest):
            call(f"{group.prefix}:8")
        with world.refusing(BatchNotFound):
            call(f"{ids.issue(5, 0, 8, bytes(16)).prefix}:0")

    def test_forged_beside_a_genuine_id_of_the_same_batch(self, world: World) -> None:
        batch, (group, other) = world.batch(8, 8)
        block = ids.parse_prefix(other.prefix)
        forged = f"{block._replace(check=block.check ^ 1).prefix}:0"

        for call in (
            lambda: world.ledger.ack([group[0], forged]),
            lambda: world.ledger.ack([group[0]], ranges=[ItemRange(forged.rpartition(":")[0])]),
            lambda: world.fail(group[0], forged),
        ):
            with pytest.raises(InvalidItemId):
                call()
        assert world.word(batch, 0, 0) == 0b1111

    def test_of_a_batch_that_was_removed(self, world: World, call: Any) -> None:
        batch, (group,) = world.batch(8)
        world.ledger.cancel(batch.batch_id)
        world.ledger.expire(State.CANCELLED, idle_since=world.clock.at + 1)
        world.ledger = world.fresh()

        with world.refusing(BatchGone):
            call(group[0])


def test_a_call_takes_as_many_ids_ranges_and_failures_as_it_may() -> None:
    world = World(width=64)
    _, (group, more) = world.batch(limits.MAX_IDS, limits.MAX_FAILURES)

    spans = [ItemRange(group.prefix, i, i + 1) for i in range(limits.MAX_RANGES)]

    assert world.ledger.ack(list(group))[0].first == limits.MAX_IDS
    assert world.ledger.ack(ranges=spans)[0].ranged == limits.MAX_RANGES
    assert world.fail(*more)[0].first == limits.MAX_FAILURES


def test_an_item_added_by_another_process_is_known_at_once(world: World) -> None:
    batch, _ = world.batch(3)
    late = world.fresh().add(batch.batch_id, 40)

    assert world.ledger.ack(list(late))[0].first == 40


def test_consumers_keep_a_batch_alive(world: World) -> None:
    batch, (group,) = world.batch(10, idle_ttl=1_000)
    for item in group:
        world.clock.advance(500_000)
        world.fresh().ack([item])

    assert world.fresh().reap().orphaned == 0
    assert world.row(batch).touched_at > world.clock.at - 100_000


class TestOverload:
    """The width of a word is 4: items 0 to 3 are of word 0, 4 to 7 of word 1."""

    def refuse(self, world: World, call: str, *, after: int = 0) -> None:
        """Let one write of a kind be throttled, after so many that are not."""
        world.raise_at(call, "before", Throttled("slow down"), after=after)

    def test_names_the_items_that_are_left_and_a_repeat_of_those_marks_them(self, world: World) -> None:
        batch, (group,) = world.batch(9, closed=True)
        world.ledger.ack([group[n] for n in (2, 3, 6, 7)])
        self.refuse(world, "words.clear", after=1)

        with pytest.raises(PartlyMarked, match="slow down") as found:
            world.ledger.ack([group[0], group[4], group[1], group[5], group[8]])

        assert found.value.rest == Acks(items=[group[4], group[5]], ranges=[], counts=[], failures=[])
        assert found.value.receipts == [Receipt(batch.batch_id, "", State.CLOSED, first=3)]
        assert found.value.retry_after == 1
        assert found.value.retryable
        assert world.ledger.ack(found.value.rest.items) == [
            Receipt(batch.batch_id, "", State.COMPLETE, complete=True, first=2)
        ]

    def test_says_plainly_that_nothing_is_marked(self, world: World) -> None:
        _, (group,) = world.batch(12)
        self.refuse(world, "words.clear")

        with pytest.raises(Throttled) as found:
            world.ledger.ack([group[0]])

        assert type(found.value) is Throttled

    def test_one_batch_holds_up_no_other(self, world: World) -> None:
        """The end of a batch is a write to its row, and each batch has its own."""
        (one, (first,)), (two, (second,)) = world.batch(2, closed=True), world.batch(2, closed=True)
        self.refuse(world, "batches.end")
        self.refuse(world, "batches.end")

        with pytest.raises(PartlyMarked) as found:
            world.ledger.ack([*first, *second])

        assert found.value.rest.items == list(first)
        assert world.row(two).state is State.COMPLETE
        world.ledger.ack(found.value.rest.items)
        assert world.row(one).state is State.COMPLETE

    def test_activity_that_cannot_be_noted_is_noted_by_the_repeat(self, world: World) -> None:
        batch, (group,) = world.batch(12)
        world.clock.advance(batch.open_idle_ttl * 500)
        self.refuse(world, "batches.touch")

        with pytest.raises(Throttled):
            world.ledger.ack([group[0]])
        world.ledger.ack([group[0]])

        assert world.row(batch).touched_at > batch.touched_at

    def test_a_call_whose_time_is_up_while_it_ends_batches_marks_the_rest_when_it_is_repeated(
        self, world: World, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """The stores begin nothing when the time is up, be it the end of one batch in a thousand."""
        # Given many closed batches with one item each, and a call that has time to end three of them
        made = [world.batch(1, closed=True) for _ in range(20)]
        items = [group[0] for _, (group,) in made]
        ended: list[int] = []

        def stop(call: str, moment: str) -> None:
            if len(ended) == 3:
                raise Throttled("the time for this call is up")
            if (call, moment) == ("batches.end", "after"):
                ended.append(1)

        monkeypatch.setattr(world.accesses, "_on_call", stop)

        # When all items are acknowledged
        with pytest.raises(Throttled):
            world.ledger.ack(items)

        # Then a repeat with more time ends the other batches
        monkeypatch.setattr(world.accesses, "_on_call", lambda *_: None)
        receipts = world.fresh().ack(items)
        assert all(receipt.complete for receipt in receipts)
        assert len(receipts) == 20

    def test_failures_are_left_with_their_reasons(self, world: World) -> None:
        batch, (group,) = world.batch(12)
        self.refuse(world, "words.clear", after=1)

        with pytest.raises(PartlyMarked) as found:
            world.ledger.fail(
                [Failure(group[0], "torn"), Failure(group[4], "lost"), Failure(group[8], "wet")]
            )
        assert found.value.rest == Acks(items=[], ranges=[], counts=[], failures=[Failure(group[4], "lost")])

        world.ledger.fail(found.value.rest.failures)
        listed = world.ledger.failures(batch.batch_id).failures
        assert [failure.reason for failure in listed] == ["torn", "lost", "wet"]

    def test_counts_wait_for_the_items(self, world: World) -> None:
        """Whoever repeats the whole call counts once."""
        estimated, _ = world.batch(5, mode=Mode.ESTIMATED)
        _, (group,) = world.batch(12)
        count = Count(estimated.batch_id, 3)
        self.refuse(world, "words.clear", after=1)

        with pytest.raises(PartlyMarked) as found:
            world.ledger.ack([group[0], group[4]], counts=[count])
        assert (found.value.rest.items, found.value.rest.counts) == ([group[4]], [count])
        assert world.row(estimated).acked == 0

        world.ledger.ack([group[0], group[4]], counts=[count])
        assert world.row(estimated).acked == 3

    def test_a_count_that_is_throttled_is_left_alone(self, world: World) -> None:
        rows = [world.batch(5, mode=Mode.ESTIMATED)[0] for _ in range(3)]
        self.refuse(world, "batches.count", after=1)

        with pytest.raises(PartlyMarked) as found:
            world.ledger.ack(counts=[Count(row.batch_id, 2) for row in rows])

        # The third waits as well: what is left must not have been counted.
        assert found.value.rest.counts == [Count(row.batch_id, 2) for row in rows[1:]]
        assert [world.row(row).acked for row in rows] == [2, 0, 0]

    @pytest.mark.parametrize("error", [Throttled, ServiceUnavailable])
    def test_what_is_counted_is_not_asked_for_again(
        self, world: World, error: type[Throttled | ServiceUnavailable]
    ) -> None:
        batch, _ = world.batch(5, mode=Mode.ESTIMATED, closed=True)

        world.raise_at("batches.end", "before", error("not now"))
        (receipt,) = world.ledger.ack(counts=[Count(batch.batch_id, 5)])

        assert (receipt.ranged, receipt.complete) == (5, False)
        assert world.happened
        world.clock.advance(3_600_000)
        world.ledger.reap()
        assert world.row(batch).state is State.COMPLETE

    def test_what_came_late_is_receipted_with_the_rest(self, world: World) -> None:
        ended, (late,) = world.batch(2)
        world.ledger.cancel(ended.batch_id)
        _, (group,) = world.batch(12)
        self.refuse(world, "words.clear")

        with pytest.raises(PartlyMarked) as found:
            world.ledger.ack([late[0], group[0]])

        assert [receipt.late for receipt in found.value.receipts] == [1]
        assert found.value.rest.items == [group[0]]
