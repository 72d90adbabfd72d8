"""Scatter-gather: what is sent to whom, and how far it is."""

from __future__ import annotations

import pytest

from fanin import names
from fanin.domain.batch import Kind, State
from fanin.domain.directory import Registration
from fanin.domain.scatter import Recipient, Reply, Scatter
from fanin.errors import (
    BatchNotFound,
    ChannelRefused,
)
from tests.unit.app.scatters.conftest import REPLY_TO, Fleet


class TestSending:
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


class TestScatters:
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
