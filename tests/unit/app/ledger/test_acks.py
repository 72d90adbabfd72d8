"""Acknowledging: what is marked, what it costs, and who was first."""

from __future__ import annotations

from typing import Any

import pytest

from fanin.domain.acks import Count, Failure, ItemRange, Receipt
from fanin.domain.batch import Mode, State
from fanin.domain.reports import FailedItem
from fanin.errors import (
    InvalidRequest,
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

    def test_count_an_item_named_twice_once(self, world: World) -> None:
        _, (group,) = world.batch(6)

        (receipt,) = world.ledger.ack([group[1], group[2], group[1], group[1]])

        assert (receipt.first, receipt.duplicates) == (2, (group[1], group[1]))

    def test_know_an_item_under_any_of_its_ids(self, world: World) -> None:
        # Given an item that is listed as missing under a group id of its own
        batch, (group,) = world.batch(6)
        world.ledger.ack([group[i] for i in (0, 1, 2, 4, 5)])
        (gap,) = world.ledger.missing(batch.batch_id).ranges
        other = f"{batch.batch_id}:{gap.id}:0"

        (receipt,) = world.ledger.ack([group[3], other])

        assert (receipt.first, receipt.duplicates) == (1, (other,))

    def test_come_for_each_batch_of_a_call(self, world: World) -> None:
        (one, (a,)), (two, (b,)), (three, (c,)) = (world.batch(5) for _ in range(3))

        receipts = world.ledger.ack([a[0], b[0], a[1]], ranges=[ItemRange(c.prefix, 1, 4)])

        assert {r.batch_id: (r.first, r.ranged) for r in receipts} == {
            one.batch_id: (2, 0),
            two.batch_id: (1, 0),
            three.batch_id: (0, 3),
        }

    def test_tell_the_completion_to_whoever_made_it(self, world: World) -> None:
        batch, (group,) = world.batch(21, closed=True)

        receipts = [world.fresh().ack([item])[0] for item in group]

        assert [receipt.complete for receipt in receipts] == [False] * 20 + [True]
        assert world.row(batch).state is State.COMPLETE

    def test_of_a_complete_batch_are_duplicates(self, world: World) -> None:
        _, (group,) = world.batch(3, closed=True)
        world.ledger.ack(list(group))
        writes = world.accesses.writes.total()

        (receipt,) = world.ledger.ack(list(group[:2]), ranges=[ItemRange(group.prefix)])

        assert (receipt.complete, receipt.first, receipt.late) == (True, 0, 0)
        assert (receipt.duplicates, receipt.ranged) == (tuple(group[:2]), 3)
        assert world.accesses.writes.total() == writes

    def test_of_a_batch_that_ended_otherwise_are_late(self, world: World) -> None:
        batch, (group,) = world.batch(6)
        world.ledger.ack([group[0]])
        world.ledger.cancel(batch.batch_id)
        writes = world.accesses.writes.total()

        (receipt,) = world.ledger.ack([group[0], group[1]], ranges=[ItemRange(group.prefix, 2)])

        assert receipt == Receipt(batch.batch_id, "", State.CANCELLED, late=6)
        assert world.accesses.writes.total() == writes

    def test_of_nothing_are_none(self, world: World) -> None:
        assert world.ledger.ack() == []
        assert world.ledger.fail([]) == []


class TestCost:
    def test_an_item_is_one_write_and_no_read_in_a_warm_process(self) -> None:
        world = World(width=64)
        _, (group,) = world.batch(10_000)
        writes, reads = world.accesses.writes.total(), world.accesses.reads.total()

        world.ledger.ack([group[7]])

        assert world.accesses.writes.total() - writes == 1
        assert world.accesses.reads.total() == reads

    def test_items_of_one_word_are_one_write(self) -> None:
        world = World(width=64)
        _, (group,) = world.batch(10_000)
        writes = world.accesses.writes.total()

        world.ledger.ack([group[i] for i in range(64, 127)])

        assert world.accesses.writes.total() - writes == 1

    def test_a_whole_closed_batch_is_few_writes(self) -> None:
        world = World(width=64)
        batch, (group,) = world.batch(10**6, closed=True)
        writes = world.accesses.writes.total()

        (receipt,) = world.ledger.ack(ranges=[ItemRange(group.prefix)])

        assert receipt.complete
        assert world.accesses.writes.total() - writes <= 6
        assert world.row(batch).state is State.COMPLETE


class TestRanges:
    @pytest.mark.parametrize("width", [2, 3, 4, 64])
    def test_mark_exactly_their_items(self, width: int) -> None:
        world = World(width)
        for start, stop in [(0, 1), (0, 70), (3, 4), (1, 69), (8, 16), (7, 17), (64, 70)]:
            batch, (_, group, _) = world.batch(5, 70, 2)

            (receipt,) = world.ledger.ack(ranges=[ItemRange(group.prefix, start, stop)])

            assert receipt.ranged == stop - start
            missing = world.ledger.missing(batch.batch_id, limit=1000).ranges
            listed = {i for found in missing for i in range(found.start, found.stop)}
            assert set(range(77)) - listed == set(range(5 + start, 5 + stop))

    def test_go_to_the_end_of_the_group_unless_told(self, world: World) -> None:
        _, (group,) = world.batch(9, closed=True)

        (receipt,) = world.ledger.ack([group[0]], ranges=[ItemRange(group.prefix, 1)])

        assert receipt.complete

    @pytest.mark.parametrize(
        ("start", "stop"),
        [(0, 0), (3, 3), (4, 3), (-1, 2), (0, 10), (9, None), ("0", 3), (0, "3"), (0, True)],
    )
    def test_must_lie_within_their_group(self, world: World, start: Any, stop: Any) -> None:
        _, (group, _) = world.batch(9, 20)
        writes = world.accesses.writes.total()

        if stop is True:
            with pytest.raises(InvalidRequest, match="whole number"):
                world.ledger.ack(ranges=[ItemRange(group.prefix, start, stop)])
        else:
            with pytest.raises(InvalidRequest, match="range"):
                world.ledger.ack(ranges=[ItemRange(group.prefix, start, stop)])

        assert world.accesses.writes.total() == writes


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

    def test_lists_what_failed(self, world: World) -> None:
        batch, (group,) = world.batch(3, mode=Mode.ESTIMATED)

        world.ledger.fail([Failure(group[1], "no")])

        assert world.ledger.failures(batch.batch_id).failures == (FailedItem(1, group[1], "no"),)
        assert world.row(batch).acked == 1

    def test_is_asked_for_no_items(self, world: World) -> None:
        batch, _ = world.batch(3, mode=Mode.ESTIMATED)

        for call in (world.ledger.missing, world.ledger.verify):
            with pytest.raises(InvalidRequest, match="estimated"):
                call(batch.batch_id)

    def test_alone_takes_counts(self, world: World) -> None:
        batch, (group,) = world.batch(3)
        writes = world.accesses.writes.total()

        with pytest.raises(InvalidRequest, match="acknowledge its items by their ids"):
            world.ledger.ack([group[0]], counts=[Count(batch.batch_id, 3)])

        assert world.accesses.writes.total() == writes

    @pytest.mark.parametrize(
        "count", [Count(-1, 1), Count(2**53, 1), Count(5, 0), Count(5, -1), Count(5, 2**32), Count(5, True)]
    )
    def test_refuses_bad_counts(self, world: World, count: Count) -> None:
        with pytest.raises(InvalidRequest, match="whole number"):
            world.ledger.ack(counts=[count])


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
