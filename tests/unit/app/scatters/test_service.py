"""Scatter-gather: a message to many, their replies, and what happens without them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from fanin import names
from fanin.app.ledger.service import LedgerService
from fanin.app.ports.channels import Outgoing
from fanin.app.ports.events import Event
from fanin.app.scatters.service import ScatterService
from fanin.app.services import patterns
from fanin.domain.acks import Failure
from fanin.domain.batch import Kind, State
from fanin.domain.claim_checks import ClaimCheckRequest
from fanin.domain.directory import Registration
from fanin.domain.scatter import Recipient, Reply, ReplyReceipt, Scatter, Scattered
from fanin.errors import (
    BatchNotFound,
    ChannelRefused,
    CorrelationIdAlive,
    InvalidItemId,
    InvalidRequest,
    RequestTooLarge,
    Throttled,
)
from tests.spans import spans
from tests.unit.app.conftest import Crash, World

REPLY_TO = "https://sqs/replies"


class Fleet(World):
    """A world with queues to scatter to, and a worker.

    Attributes:
        scatters: the use cases, of the process that lives on.
    """

    def __init__(self) -> None:
        super().__init__()
        self.ports = replace(self.ports, defaults=replace(self.ports.defaults, reply_to=REPLY_TO))
        self.ledger = self.fresh()
        self.scatters = ScatterService(self.ledger)

    def fresh(self) -> LedgerService:
        return LedgerService(self.ports, patterns(self.ports))

    def recipients(self, n: int) -> list[Recipient]:
        for i in range(n):
            self.memory.channels.queues.setdefault(f"https://sqs/car-{i}", [])
        return [Recipient(f"car {i}", f"https://sqs/car-{i}") for i in range(n)]

    def start(self, n: int, **options: Any) -> Scattered:
        return self.scatters.start(Scatter("report!", self.recipients(n), **options))

    def work(self) -> None:
        """Do all jobs that wait, as the worker does."""
        jobs = self.memory.jobs.waiting
        while jobs:
            job = jobs[0]
            ScatterService(self.fresh()).work(job["batch_id"], job["chunk"], job["wave"])
            jobs.pop(0)

    def got(self, i: int) -> list[Outgoing]:
        return self.memory.channels.queues[f"https://sqs/car-{i}"]

    def item(self, i: int) -> str:
        return self.got(i)[-1].attributes[names.ITEM_ATTRIBUTE]

    def reply(self, i: int, payload: object = "ok") -> ReplyReceipt:
        return self.scatters.reply([Reply(self.item(i), payload)])[0]

    def ring(self, seconds: int) -> None:
        """Let time pass, and the alarms ring that are due then."""
        self.clock.advance(seconds * 1000)
        for batch_id in self.memory.timers.ring(self.clock.at):
            self.fresh().meet_deadline(batch_id)

    def told(self, scattered: Scattered) -> Event:
        """What the notifier tells of its end."""
        self.fresh().announce(self.row(scattered.batch))
        return self.memory.events.published[-1]

    def said(self, scattered: Scattered, limit: int = 100) -> dict[str, object]:
        """The replies, by recipient, over all pages."""
        cursor: str | None = None
        found: dict[str, object] = {}
        while True:
            page = self.scatters.replies(scattered.batch.batch_id, cursor=cursor, limit=limit)
            found |= {reply.name: reply.payload for reply in page.replies}
            cursor = page.cursor
            if cursor is None:
                return found


@pytest.fixture
def fleet() -> Fleet:
    return Fleet()


class TestSending:
    def test_a_queue_that_refuses_for_a_reason_nobody_foresaw_fails_its_recipient_alone(
        self, fleet: Fleet
    ) -> None:
        fleet.recipients(3)
        fleet.memory.channels.refusing["https://sqs/car-1"] = "the queue refuses messages (KMS.Surprise)"
        scattered = fleet.start(3)

        fleet.work()

        assert [len(fleet.got(i)) for i in range(3)] == [1, 0, 1]
        (failed,) = fleet.scatters.failed_recipients(scattered.batch.batch_id).recipients
        assert (failed.name, failed.reason) == ("car 1", "car 1: the queue refuses messages (KMS.Surprise)")

    def test_a_job_that_comes_again_for_a_busy_queue_sends_no_copies_to_the_others(
        self, fleet: Fleet
    ) -> None:
        # Given a queue that is busy, and one that is gone
        channels = fleet.memory.channels
        scattered = fleet.start(4)
        channels.busy.add("https://sqs/car-1")
        del channels.queues["https://sqs/car-3"]

        # When the job is repeated until the queue takes messages again
        for _ in range(3):
            with pytest.raises(Throttled, match="1 messages"):
                fleet.work()
            assert fleet.scatters.status(scattered.batch.batch_id).failed == 1
        assert [len(fleet.got(i)) for i in range(3)] == [1, 0, 1]
        channels.busy.clear()
        fleet.work()

        # Then each of the others has one message, and the next wave goes to all who are missing
        assert [len(fleet.got(i)) for i in range(3)] == [1, 1, 1]
        assert fleet.scatters.status(scattered.batch.batch_id).failed == 1
        fleet.ring(120)
        fleet.work()
        assert [len(fleet.got(i)) for i in range(3)] == [2, 2, 2]

    def test_every_recipient_gets_the_message_with_all_it_needs_to_reply(self, fleet: Fleet) -> None:
        scattered = fleet.start(3, type="weekly", attributes={"week": "47"}, correlation_id="mine")

        fleet.work()

        assert [len(fleet.got(i)) for i in range(3)] == [1, 1, 1]
        message = fleet.got(2)[0]
        assert message.body == "report!"
        assert message.attributes == {
            "week": "47",
            names.ITEM_ATTRIBUTE: fleet.item(2),
            names.ATTRIBUTE_CORRELATION: "mine",
            names.ATTRIBUTE_REPLY_TO: REPLY_TO,
            names.ATTRIBUTE_TYPE: "weekly",
        }
        assert (scattered.batch.kind, scattered.batch.items) == (Kind.SCATTER, 3)
        assert scattered.batch.state is State.CLOSED

    def test_a_repeated_job_sends_the_same_ids_and_only_to_the_missing(self, fleet: Fleet) -> None:
        fleet.start(3)
        job = fleet.memory.jobs.waiting[0]
        fleet.work()
        first = [fleet.item(i) for i in range(3)]
        fleet.reply(1)

        fleet.scatters.send(job["batch_id"], job["chunk"], job["wave"])

        assert [len(fleet.got(i)) for i in range(3)] == [2, 1, 2]
        assert [fleet.item(i) for i in range(3)] == first

    def test_many_recipients_are_sent_to_in_chunks(self, fleet: Fleet) -> None:
        to = [Recipient(f"{i}", "https://sqs/car-0") for i in range(250)]
        fleet.recipients(1)

        fleet.scatters.start(Scatter("x", to))
        assert len(fleet.memory.jobs.waiting) == 3
        fleet.work()

        assert len({message.attributes[names.ITEM_ATTRIBUTE] for message in fleet.got(0)}) == 250

    def test_a_queue_that_takes_nothing_fails_its_recipient(self, fleet: Fleet) -> None:
        scattered = fleet.start(2)
        del fleet.memory.channels.queues["https://sqs/car-1"]

        fleet.work()
        fleet.reply(0)

        status = fleet.scatters.status(scattered.batch.batch_id)
        assert (status.received, status.failed, status.missing, status.ready) == (1, 1, 0, True)
        detail = fleet.told(scattered).detail
        assert detail["failed_recipients"] == ["car 1"]
        (failure,) = detail["failures"]
        assert failure["reason"] == "car 1: there is no such queue"

    def test_a_topic_is_read_once_with_its_filter(self, fleet: Fleet) -> None:
        # Given registrations of which one has other attributes and one a lease that is over
        now = fleet.clock.at
        for i, (kind, until) in enumerate([("van", 9), ("van", 9), ("bus", 9), ("van", -1)]):
            fleet.recipients(4)
            there = Registration(
                "fleet", f"car-{i}", f"https://sqs/car-{i}", {"kind": kind}, 60, now, now + until * 1000
            )
            fleet.ports.directory.put(
                "topic/fleet", there.name, there.value, expires_at=there.expires_at, if_version=0
            )
        # When it is scattered to the vans
        scattered = fleet.scatters.start(Scatter("x", topic="fleet", where={"kind": "van"}))
        fleet.work()
        # Then the other two got it
        assert scattered.batch.items == 2
        assert [len(fleet.got(i)) for i in range(4)] == [1, 1, 0, 0]

    def test_nobody_to_ask_is_ready_at_once(self, fleet: Fleet) -> None:
        scattered = fleet.scatters.start(Scatter("x", topic="empty"))

        assert scattered.ready
        event = fleet.told(scattered)
        assert event.detail_type == "Gather Ready"
        assert (event.detail["received"], event.detail["missing_count"]) == (0, 0)

    def test_an_untagged_queue_is_refused_and_nothing_is_written(self, fleet: Fleet) -> None:
        before = fleet.accesses.writes.total()

        with pytest.raises(ChannelRefused):
            fleet.scatters.start(Scatter("x", [Recipient("", "https://sqs/other")]))
        assert fleet.accesses.writes.total() == before

    @pytest.mark.parametrize(
        ("options", "error"),
        [
            ({"body": ""}, InvalidRequest),
            ({"body": "é" * 40_000}, RequestTooLarge),
            ({"topic": "t", "recipients": [Recipient("", "q")]}, InvalidRequest),
            ({"where": {"a": "b"}}, InvalidRequest),
            ({"timeout": 4}, InvalidRequest),
            ({"max_retries": 11}, InvalidRequest),
            ({"quorum": 0}, InvalidRequest),
            ({"quorum": 1.0}, InvalidRequest),
            ({"attributes": {"fanin-item": "x"}}, InvalidRequest),
            ({"attributes": {str(i): "x" for i in range(7)}}, RequestTooLarge),
            ({"correlation_id": ""}, InvalidRequest),
        ],
    )
    def test_a_bad_request_writes_nothing(
        self, fleet: Fleet, options: Mapping[str, Any], error: type[Exception]
    ) -> None:
        before = fleet.accesses.writes.total()

        with pytest.raises(error):
            fleet.scatters.start(Scatter(**{"body": "x", **options}))
        assert fleet.accesses.writes.total() == before


class TestCorrelation:
    def test_ids_that_are_made_differ(self, fleet: Fleet) -> None:
        assert fleet.start(1).correlation_id != fleet.start(1).correlation_id

    def test_an_id_of_a_living_scatter_is_refused(self, fleet: Fleet) -> None:
        first = fleet.start(1, correlation_id="mine")

        with pytest.raises(CorrelationIdAlive, match=str(first.batch.batch_id)):
            fleet.start(1, correlation_id="mine")

    def test_an_id_is_free_as_soon_as_its_scatter_has_ended(self, fleet: Fleet) -> None:
        first = fleet.start(1, correlation_id="mine")
        fleet.ledger.cancel(first.batch.batch_id)

        second = fleet.start(1, correlation_id="mine")
        fleet.told(first)  # late: it lets go of nothing that is no longer its own

        with pytest.raises(CorrelationIdAlive, match=str(second.batch.batch_id)):
            fleet.start(1, correlation_id="mine")

    def test_the_end_lets_go_of_the_id(self, fleet: Fleet) -> None:
        scattered = fleet.start(1, correlation_id="mine")
        fleet.ledger.cancel(scattered.batch.batch_id)
        fleet.told(scattered)

        assert fleet.ports.directory.read("correlation", ["mine"]) == {}

    def test_the_end_lets_go_of_the_id_of_a_scatter_that_was_removed(self, fleet: Fleet) -> None:
        scattered = fleet.start(2, correlation_id="mine")
        fleet.work()
        fleet.reply(0)
        fleet.ledger.cancel(scattered.batch.batch_id)
        ended = fleet.row(scattered.batch)
        fleet.ledger.remove(scattered.batch.batch_id)

        fleet.fresh().announce(ended)

        (event,) = fleet.memory.events.published
        assert (event.detail["received"], event.detail["missing_recipients"]) == (1, ["car 1"])
        assert fleet.ports.directory.read("correlation", ["mine"]) == {}

    def test_a_caller_who_died_keeps_it_for_a_minute(self, fleet: Fleet) -> None:
        fleet.crash_at("batches.create", "before")
        with pytest.raises(Crash):
            fleet.start(1, correlation_id="mine")

        with pytest.raises(CorrelationIdAlive):
            fleet.start(1, correlation_id="mine")
        fleet.clock.advance(60_000)
        fleet.start(1, correlation_id="mine")

    def test_a_caller_who_was_too_slow_does_not_open(self, fleet: Fleet) -> None:
        fleet.at("directory.put", "after", lambda: fleet.clock.advance(30_000))

        with pytest.raises(Throttled):
            fleet.start(1, correlation_id="mine")
        assert fleet.memory.batches.changes == []


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


class TestDeadline:
    def test_the_missing_are_sent_to_again_and_then_given_up(self, fleet: Fleet) -> None:
        scattered = fleet.start(3, timeout=10, max_retries=2)
        fleet.work()
        fleet.reply(1)

        for wave in (1, 2):
            fleet.ring(10)
            fleet.work()
            assert [len(fleet.got(i)) for i in range(3)] == [1 + wave, 1, 1 + wave]
            assert fleet.row(scattered.batch).retries == wave
        fleet.reply(0)
        fleet.ring(10)

        row = fleet.row(scattered.batch)
        assert (row.state, row.partial) == (State.COMPLETE, True)
        detail = fleet.told(scattered).detail
        assert spans(detail["missing"]) == [[2, 3]]
        assert (detail["received"], detail["missing_count"], detail["retries"]) == (2, 1, 2)
        assert detail["missing_recipients"] == ["car 2"]

    def test_an_alarm_that_rings_twice_counts_once(self, fleet: Fleet) -> None:
        scattered = fleet.start(1, timeout=10)
        fleet.clock.advance(10_000)
        for _ in range(2):
            fleet.fresh().meet_deadline(scattered.batch.batch_id)

        assert fleet.row(scattered.batch).retries == 1

    @pytest.mark.parametrize("call", ["timers.set", "jobs.send", "batches.postpone"])
    @pytest.mark.parametrize("moment", ["before", "after"])
    def test_a_death_on_the_way_costs_no_retry_and_no_recipient(
        self, fleet: Fleet, call: str, moment: str
    ) -> None:
        scattered = fleet.start(2, timeout=10)
        fleet.work()
        fleet.clock.advance(10_000)
        fleet.crash_at(call, moment)
        with pytest.raises(Crash):
            fleet.fresh().meet_deadline(scattered.batch.batch_id)

        fleet.fresh().meet_deadline(scattered.batch.batch_id)
        fleet.work()

        assert fleet.row(scattered.batch).retries == 1
        assert all(len(fleet.got(i)) >= 2 for i in range(2))

    def test_a_caller_who_died_before_the_jobs_is_healed_by_the_first_alarm(self, fleet: Fleet) -> None:
        fleet.crash_at("jobs.send", "before")
        with pytest.raises(Crash):
            fleet.start(2, timeout=10)

        fleet.ring(10)
        fleet.work()

        assert [len(fleet.got(i)) for i in range(2)] == [1, 1]

    def test_the_reaper_meets_a_deadline_whose_alarm_was_lost(self, fleet: Fleet) -> None:
        scattered = fleet.start(1, timeout=10)
        fleet.memory.timers.alarms.clear()
        fleet.clock.advance(71_000)

        fleet.fresh().reap()

        assert fleet.row(scattered.batch).retries == 1

    def test_a_job_of_an_earlier_wave_sends_nothing(self, fleet: Fleet) -> None:
        fleet.start(1, timeout=10)
        late = fleet.memory.jobs.waiting.pop()
        fleet.ring(10)
        fleet.work()

        fleet.scatters.send(late["batch_id"], late["chunk"], late["wave"])

        assert len(fleet.got(0)) == 1


class TestQuorum:
    @pytest.mark.parametrize(("quorum", "needed"), [(2, 2), (0.4, 2), (0.41, 3), (9, 5)])
    def test_it_is_ready_with_enough_replies(self, fleet: Fleet, quorum: float, needed: int) -> None:
        scattered = fleet.start(5, quorum=quorum)
        fleet.work()
        assert scattered.quorum == needed

        for i in range(needed):
            assert fleet.row(scattered.batch).state is State.CLOSED
            fleet.reply(i)

        row = fleet.row(scattered.batch)
        assert (row.state, row.partial) == (State.COMPLETE, needed < 5)
        assert fleet.told(scattered).detail["received"] == needed

    def test_a_share_is_not_rounded_up_by_a_float(self, fleet: Fleet) -> None:
        assert fleet.start(30, quorum=0.1).quorum == 3

    def test_failures_are_no_replies(self, fleet: Fleet) -> None:
        scattered = fleet.start(4, quorum=2)
        fleet.work()
        fleet.ledger.fail([Failure(fleet.item(0)), Failure(fleet.item(1))])
        fleet.reply(2)

        assert fleet.row(scattered.batch).state is State.CLOSED

    def test_a_count_that_was_lost_is_made_up_by_the_repeat(self, fleet: Fleet) -> None:
        scattered = fleet.start(3, quorum=1)
        fleet.work()
        fleet.crash_at("batches.count", "before")
        with pytest.raises(Crash):
            fleet.reply(0)

        assert fleet.reply(0).duplicate
        assert fleet.row(scattered.batch).state is State.COMPLETE

    def test_a_count_that_was_lost_is_made_up_also_if_its_repeat_was_not_enough(self, fleet: Fleet) -> None:
        # Given a reply whose bringer died before it was counted, and came again
        scattered = fleet.start(4, quorum=2)
        fleet.work()
        fleet.crash_at("batches.count", "before")
        with pytest.raises(Crash):
            fleet.reply(0)
        fleet.reply(0)

        # When another one makes it enough, Then the scatter is ready
        fleet.reply(1)
        assert fleet.scatters.status(scattered.batch.batch_id).ready

    def test_a_count_that_was_lost_is_made_up_by_the_deadline(self, fleet: Fleet) -> None:
        scattered = fleet.start(3, quorum=1, timeout=10)
        fleet.work()
        fleet.crash_at("batches.count", "before")
        with pytest.raises(Crash):
            fleet.reply(0)
        fleet.ring(10)

        assert fleet.row(scattered.batch).state is State.COMPLETE


class TestOthers:
    def test_two_at_once_do_not_mix(self, fleet: Fleet) -> None:
        one, two = fleet.start(2), fleet.start(2)
        fleet.work()
        for i in range(2):
            first, second = (m.attributes[names.ITEM_ATTRIBUTE] for m in fleet.got(i))
            fleet.scatters.reply([Reply(first, "one"), Reply(second, "two")])

        assert set(fleet.said(one).values()) == {"one"}
        assert set(fleet.said(two).values()) == {"two"}

    def test_a_plain_batch_is_no_scatter(self, fleet: Fleet) -> None:
        batch, _ = fleet.batch(1)

        for call in (fleet.scatters.status, fleet.scatters.replies):
            with pytest.raises(BatchNotFound):
                call(batch.batch_id)

    def test_an_id_that_is_taken_is_drawn_again(self, fleet: Fleet) -> None:
        # Given a scatter whose id another has drawn at the same time
        taken = fleet.start(1, correlation_id="a")
        bits = fleet.ports.random.bits
        drawn = iter([taken.batch.batch_id % 4096])
        fleet.ports.random.bits = lambda n: next(drawn, None) or bits(n)  # type: ignore[method-assign]
        # Then the next gets another, and the first keeps its plan
        assert fleet.start(1, correlation_id="b").batch.batch_id != taken.batch.batch_id
        assert fleet.scatters.status(taken.batch.batch_id).correlation_id == "a"
