"""Failing items: listed with their reasons, if they failed indeed."""

from __future__ import annotations

from typing import Any

import pytest

from fanin.domain import ids, limits
from fanin.domain.acks import Failure, ItemRange
from fanin.domain.reports import FailedItem
from fanin.errors import (
    InvalidRequest,
)
from tests.unit.app.conftest import Crash, World


class TestFailures:
    def test_are_listed_with_their_reasons(self, world: World) -> None:
        batch, (group,) = world.batch(9)

        (receipt,) = world.ledger.fail([Failure(group[7], "late"), Failure(group[2], "broken")])

        assert receipt.first == 2
        assert world.ledger.failures(batch.batch_id).failures == (
            FailedItem(2, group[2], "broken"),
            FailedItem(7, group[7], "late"),
        )

    def test_mark_items_done(self, world: World) -> None:
        _, (group,) = world.batch(2, closed=True)
        world.ledger.ack([group[0]])

        assert world.ledger.fail([Failure(group[1])])[0].complete

    def test_are_not_listed_for_items_that_were_done_before(self, world: World) -> None:
        batch, (group,) = world.batch(9)
        world.ledger.ack([group[2]])

        (receipt,) = world.ledger.fail([Failure(group[2], "no")])

        assert receipt.duplicates == (group[2],)
        assert world.ledger.failures(batch.batch_id).failures == ()

    def test_are_not_listed_for_items_of_a_range_marked_high_up(self, world: World) -> None:
        # Given 64 items of words of four bits, and a range that left no trace on its leaves
        batch, (group,) = world.batch(64)
        world.ledger.ack(ranges=[ItemRange(group.prefix, 16, 32)])

        # When some of them fail, and one beside them
        failures = [Failure(group[index], "no") for index in (16, 21, 31, 32)]
        (receipt,) = world.ledger.fail(failures)

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
        world.crash_at("words.clear", "after")
        with pytest.raises(Crash):
            world.ledger.fail([Failure(group[15], "no")])

        assert world.fresh().fail([Failure(group[15], "no")])[0].complete
        assert [failure.ordinal for failure in world.ledger.failures(batch.batch_id).failures] == [15]

    def test_are_not_listed_when_a_crash_left_only_the_note(self, world: World) -> None:
        # Given a failure that died after its note, and an acknowledgement of the same item
        batch, (group,) = world.batch(9)
        world.crash_at("words.clear", "before")
        with pytest.raises(Crash):
            world.ledger.fail([Failure(group[2], "no")])

        assert world.fresh().ack([group[2]])[0].first == 1
        assert world.ledger.failures(batch.batch_id).failures == ()

    def test_page_with_a_cursor(self, world: World) -> None:
        batch, (group,) = world.batch(9)
        world.ledger.fail([Failure(item, "no") for item in group])

        listed, cursor, pages = [], None, 0
        while pages == 0 or cursor:
            page = world.ledger.failures(batch.batch_id, cursor=cursor, limit=4)
            listed += [found.ordinal for found in page.failures]
            cursor, pages = page.cursor, pages + 1

        assert listed == list(range(9))
        assert pages == 3

    def test_of_an_ended_batch_write_nothing(self, world: World) -> None:
        batch, (group,) = world.batch(3)
        world.ledger.cancel(batch.batch_id)
        writes = world.accesses.writes.total()

        assert world.ledger.fail([Failure(group[0], "no")])[0].late == 1
        assert world.accesses.writes.total() == writes

    @pytest.mark.parametrize("reason", ["r" * (limits.MAX_REASON + 1), None, 5])
    def test_need_a_reason_of_text(self, world: World, reason: Any) -> None:
        _, (group,) = world.batch(3)
        writes = world.accesses.writes.total()

        with pytest.raises(InvalidRequest, match="reason"):
            world.ledger.fail([Failure(group[0], "fine"), Failure(group[1], reason)])

        assert world.accesses.writes.total() == writes

    def test_take_the_longest_reason(self, world: World) -> None:
        _, (group,) = world.batch(3)

        assert world.ledger.fail([Failure(group[0], "r" * limits.MAX_REASON)])[0].first == 1

    @pytest.mark.parametrize("limit", [0, limits.MAX_PAGE + 1])
    def test_page_within_limits(self, world: World, limit: int) -> None:
        batch, _ = world.batch(3)

        with pytest.raises(InvalidRequest, match="limit"):
            world.ledger.failures(batch.batch_id, limit=limit)

    def test_refuse_a_cursor_of_another_batch(self, world: World) -> None:
        (one, (group,)), (two, _) = world.batch(9), world.batch(9)
        world.ledger.fail([Failure(item) for item in group])
        cursor = world.ledger.failures(one.batch_id, limit=1).cursor

        with pytest.raises(InvalidRequest, match="cursor"):
            world.ledger.failures(two.batch_id, cursor=cursor)
