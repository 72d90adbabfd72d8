"""Replies: the first of each recipient counts, whoever dies on the way."""

from __future__ import annotations

import pytest

from fanin.domain.acks import Failure
from fanin.domain.batch import State
from fanin.domain.scatter import ClaimCheckRequest, Reply, ReplyReceipt
from fanin.errors import (
    BatchNotFound,
    InvalidItemId,
    InvalidRequest,
    RequestTooLarge,
)
from tests.unit.app.conftest import Crash
from tests.unit.app.scatters.conftest import Fleet


class TestReplies:
    def test_the_last_reply_makes_it_ready(self, fleet: Fleet) -> None:
        scattered = fleet.start(2, user_key="week 47")
        fleet.work()

        assert fleet.reply(0, {"km": 12}) == ReplyReceipt(
            fleet.item(0), scattered.batch.batch_id, State.CLOSED, first=True
        )
        assert fleet.reply(1, [1, None]).state is State.COMPLETE

        event = fleet.told(scattered)
        assert (event.id, event.detail_type) == (f"{scattered.batch.batch_id}.complete", "Gather Ready")
        shown = {
            "correlation_id": scattered.correlation_id,
            "user_key": "week 47",
            "recipients": 2,
            "received": 2,
            "failed": 0,
            "missing": [],
            "missing_count": 0,
            "missing_recipients": [],
            "retries": 0,
            "partial": False,
        }
        assert shown.items() <= event.detail.items()
        assert fleet.said(scattered) == {"car 0": {"km": 12}, "car 1": [1, None]}

    def test_the_first_reply_wins(self, fleet: Fleet) -> None:
        scattered = fleet.start(2)
        fleet.work()
        fleet.reply(0, "one")

        same, other = fleet.reply(0, "one"), fleet.reply(0, "two")

        assert (same.first, same.duplicate, same.different) == (False, True, False)
        assert (other.first, other.duplicate, other.different) == (False, True, True)
        assert fleet.said(scattered) == {"car 0": "one"}

    def test_a_repeat_within_a_request_is_a_duplicate(self, fleet: Fleet) -> None:
        fleet.start(2)
        fleet.work()
        item = fleet.item(1)

        one, two, three = fleet.scatters.reply([Reply(item, 1), Reply(item, 1), Reply(item, 2)])

        assert [r.first for r in (one, two, three)] == [True, False, False]
        assert [r.different for r in (one, two, three)] == [False, False, True]

    def test_who_died_between_payload_and_bit_replies_again(self, fleet: Fleet) -> None:
        # Given a payload that was stored, and no bit
        scattered = fleet.start(2)
        fleet.work()
        fleet.crash_at("words.clear", "before")
        with pytest.raises(Crash):
            fleet.reply(0, "one")
        # Then it does not count
        assert fleet.said(scattered) == {}
        # When it comes again, it does
        assert fleet.reply(0, "one").first
        assert fleet.said(scattered) == {"car 0": "one"}

    def test_pages_follow_the_order_of_the_recipients(self, fleet: Fleet) -> None:
        scattered = fleet.start(9)
        fleet.work()
        for i in (7, 2, 8, 0, 5):
            fleet.reply(i, i)
        fleet.ledger.fail([Failure(fleet.item(3), "broken")])

        assert list(fleet.said(scattered, limit=2).values()) == [0, 2, 5, 7, 8]

    def test_a_failed_item_has_no_reply(self, fleet: Fleet) -> None:
        scattered = fleet.start(2)
        fleet.work()
        fleet.ledger.fail([Failure(fleet.item(0), "broken")])

        assert fleet.reply(0).duplicate
        assert fleet.said(scattered) == {}

    def test_a_reply_after_the_end_is_late_and_changes_nothing(self, fleet: Fleet) -> None:
        scattered = fleet.start(2, max_retries=0)
        fleet.work()
        fleet.reply(0)
        fleet.ring(120)

        receipt = fleet.reply(1)

        assert (receipt.late, receipt.first, receipt.state) == (True, False, State.COMPLETE)
        assert fleet.said(scattered) == {"car 0": "ok"}

    def test_a_process_that_remembers_it_alive_takes_no_reply_after_the_end(self, fleet: Fleet) -> None:
        # Given a process that saw the scatter some seconds before its end
        scattered = fleet.start(2, timeout=20, max_retries=0)
        fleet.work()
        fleet.reply(0)
        fleet.ring(20)

        # When it gets a reply after it
        receipt = fleet.reply(1)

        # Then the reply is late, and counted no more than it is listed
        assert receipt.late
        assert not receipt.first
        assert fleet.scatters.status(scattered.batch.batch_id).received == 1
        assert fleet.said(scattered) == {"car 0": "ok"}

    def test_a_forged_item_refuses_all(self, fleet: Fleet) -> None:
        scattered = fleet.start(2)
        fleet.work()
        prefix, _, _ = fleet.item(0).rpartition(":")

        for forged in (f"{prefix}:2", prefix.replace("-8", "-9", 1) + ":0"):
            with pytest.raises(InvalidItemId):
                fleet.scatters.reply([Reply(fleet.item(1)), Reply(forged)])
        assert fleet.said(scattered) == {}

    def test_items_of_plain_batches_cannot_be_replied_to(self, fleet: Fleet) -> None:
        _, (group,) = fleet.batch(1)

        with pytest.raises(BatchNotFound):
            fleet.scatters.reply([Reply(group[0], "x")])

    def test_a_large_payload_is_refused(self, fleet: Fleet) -> None:
        fleet.start(1)
        fleet.work()

        with pytest.raises(RequestTooLarge, match="claim"):
            fleet.reply(0, "x" * 204_800)


class TestClaims:
    def test_a_payload_that_was_uploaded_is_a_reply(self, fleet: Fleet) -> None:
        scattered = fleet.start(1)
        fleet.work()
        claim = fleet.scatters.claim(ClaimCheckRequest(fleet.item(0), 10**6, "video/mp4"))
        fleet.memory.claims.uploaded.add(claim.key)

        (receipt,) = fleet.scatters.reply([Reply(fleet.item(0), claim=claim.key)])

        assert receipt.first
        (reply,) = fleet.scatters.replies(scattered.batch.batch_id).replies
        assert (reply.claim, reply.payload) == (claim.key, None)
        assert reply.url == f"memory://claims/{claim.key}"

    def test_nothing_counts_before_it_is_uploaded(self, fleet: Fleet) -> None:
        fleet.start(1)
        fleet.work()
        claim = fleet.scatters.claim(ClaimCheckRequest(fleet.item(0), 1))

        with pytest.raises(InvalidRequest, match="upload it first"):
            fleet.scatters.reply([Reply(fleet.item(0), claim=claim.key)])

    def test_a_claim_is_for_its_own_item_and_of_its_own_key(self, fleet: Fleet) -> None:
        fleet.start(2)
        fleet.work()
        mine, again = (fleet.scatters.claim(ClaimCheckRequest(fleet.item(0), 1)) for _ in range(2))
        fleet.memory.claims.uploaded.add(mine.key)

        assert mine.key != again.key
        with pytest.raises(InvalidRequest, match="not given for this item"):
            fleet.scatters.reply([Reply(fleet.item(1), claim=mine.key)])
