"""Held items: they failed, are pending, and no redrive has taken them."""

from __future__ import annotations

import pytest

from fanin.domain.batch import Batch, Kind, Mode, OnDeadline, OnFailure, OpenBatch, State
from fanin.domain.ids import Group
from fanin.domain.marks import ItemRange
from fanin.domain.redrives import OrdinalRange, Selection
from fanin.errors import InvalidRequest
from tests.unit.app.conftest import World

HOLD = OnFailure.HOLD


def held(world: World, batch: Batch, *, exact: bool = False) -> tuple[int, bool]:
    row = world.ledger.status(batch.batch_id, exact=exact).batch
    return row.held, row.may_hold_more


def holding(world: World, size: int, *, closed: bool = True) -> tuple[Batch, Group]:
    batch, (group,) = world.batch(size, closed=closed, on_failure=HOLD)
    return batch, group


class TestFailing:
    def test_an_item_stays_pending_and_the_receipt_says_so(self, world: World) -> None:
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

    def test_a_range_far_above_ends_the_hold_too(self, world: World) -> None:
        batch, group = holding(world, 64)
        world.fail(group[5])
        world.ledger.mark([ItemRange(group.prefix, 0, 16)]).whole()

        (receipt,) = world.fail(group[6])

        assert (receipt.held, receipt.duplicates) == (0, (group[6],))
        assert held(world, batch, exact=True) == (0, False)


class TestCounting:
    def test_is_exact_within_its_reads_and_a_lower_bound_beyond(self, world: World) -> None:
        batch, group = holding(world, 64)
        world.fail(*group[0:40])

        few, more = held(world, batch)
        assert (0 < few < 40, more) == (True, True)
        assert held(world, batch, exact=True) == (40, False)

    @pytest.mark.parametrize("apart", [1, 3, 64, 997])
    def test_a_status_reads_no_more_rows_than_that_of_another_batch(self, apart: int) -> None:
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

    def test_costs_a_batch_that_holds_nothing_no_read(self, world: World) -> None:
        def reads(**request: object) -> int:
            batch, (group,) = world.batch(16, **request)
            world.ledger.mark([group[0]]).whole()
            world.accesses.reads.clear()
            world.ledger.status(batch.batch_id)
            return world.accesses.reads.total()

        assert reads() < reads(on_failure=HOLD)
        assert "parts.redriven" not in world.accesses.reads

    def test_a_listing_of_failures_tells_held_from_failed(self, world: World) -> None:
        batch, group = holding(world, 8)
        world.fail(*group[0:4])
        world.ledger.release(batch.batch_id)
        world.ledger.mark([group[4]]).whole()
        world.fail(group[4], group[5])

        listed = world.ledger.failures(batch.batch_id).failures

        assert [(one.ordinal, one.held) for one in listed] == [(n, False) for n in range(4)] + [(5, True)]

    def test_a_brief_status_reads_the_row_alone(self, world: World) -> None:
        batch, group = holding(world, 64)
        world.fail(group[0])
        world.accesses.reads.clear()

        progress = world.ledger.status(batch.batch_id, brief=True)

        assert world.accesses.reads.total() == 1
        assert (progress.done_min, progress.done_max, progress.batch.may_hold_more) == (0, 64, True)


class TestEnds:
    @pytest.mark.parametrize("action", OnDeadline)
    def test_a_deadline_ends_it_and_the_event_says_what_is_held(
        self, world: World, action: OnDeadline
    ) -> None:
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


def test_only_a_plain_batch_that_knows_its_items_can_hold(world: World) -> None:
    with pytest.raises(InvalidRequest, match=r'on_failure="hold" needs to know which items failed'):
        world.ledger.open(OpenBatch(mode=Mode.ESTIMATED, on_failure=HOLD))
    with pytest.raises(InvalidRequest, match="is for plain batches, not for a buffer"):
        world.ledger.open(OpenBatch(kind=Kind.BUFFER, on_failure=HOLD))
