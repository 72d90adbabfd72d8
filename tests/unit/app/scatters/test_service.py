"""Scatter-gather: a message to many, their replies, and what happens without them."""

import pytest

from fanin import names
from fanin.domain.batch import Kind, State
from fanin.domain.scatter import Recipient, ReplyReceipt, Scatter
from fanin.errors import ChannelRefused, Throttled
from tests.unit.app.scatters.conftest import REPLY_TO


class TestSending:
    def test_a_job_that_comes_again_for_a_busy_queue_sends_no_copies_to_the_others(self, fleet):
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

    def test_every_recipient_gets_the_message_with_all_it_needs_to_reply(self, fleet):
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

    def test_a_queue_that_takes_nothing_fails_its_recipient(self, fleet):
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

    def test_nobody_to_ask_is_ready_at_once(self, fleet):
        scattered = fleet.scatters.start(Scatter("x", topic="empty"))

        assert scattered.ready
        event = fleet.told(scattered)
        assert event.detail_type == "Gather Ready"
        assert (event.detail["received"], event.detail["missing_count"]) == (0, 0)

    def test_a_queue_that_fanin_may_not_send_to_is_refused_and_nothing_is_written(self, fleet):
        with pytest.raises(ChannelRefused):
            fleet.scatters.start(Scatter("x", [Recipient("", "https://sqs/untagged")]))
        assert fleet.accesses.writes.total() == 0

    def test_a_repeated_job_sends_the_same_ids_and_only_to_the_missing(self, fleet):
        fleet.start(3)
        job = fleet.memory.jobs.waiting[0]
        fleet.work()
        first = [fleet.item(i) for i in range(3)]
        fleet.reply(1)

        fleet.scatters.send(job["batch_id"], job["chunk"], job["wave"])

        assert [len(fleet.got(i)) for i in range(3)] == [2, 1, 2]
        assert [fleet.item(i) for i in range(3)] == first


class TestCorrelation:
    def test_the_end_lets_go_of_the_id_of_a_scatter_that_was_removed(self, fleet):
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

    def test_a_caller_who_was_too_slow_does_not_open(self, fleet):
        fleet.at("directory.put", "after", lambda: fleet.clock.advance(30_000))

        with pytest.raises(Throttled):
            fleet.start(1, correlation_id="mine")
        assert fleet.memory.batches.changes == []


class TestReplies:
    def test_the_last_reply_makes_it_ready(self, fleet):
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

    def test_a_process_that_remembers_it_alive_takes_no_reply_after_the_end(self, fleet):
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


class TestDeadline:
    @pytest.mark.parametrize("call", ["timers.set", "jobs.send", "batches.postpone"])
    @pytest.mark.parametrize("moment", ["before", "after"])
    def test_a_death_on_the_way_costs_no_retry_and_no_recipient(self, fleet, call, moment):
        scattered = fleet.start(2, timeout=10)
        fleet.work()
        fleet.clock.advance(10_000)
        with fleet.dying(call, moment):
            fleet.fresh().meet_deadline(scattered.batch.batch_id)

        fleet.fresh().meet_deadline(scattered.batch.batch_id)
        fleet.work()

        assert fleet.row(scattered.batch).retries == 1
        assert all(len(fleet.got(i)) >= 2 for i in range(2))

    def test_the_reaper_meets_a_deadline_whose_alarm_was_lost(self, fleet):
        scattered = fleet.start(1, timeout=10)
        fleet.memory.timers.alarms.clear()
        fleet.clock.advance(71_000)

        fleet.fresh().reap()

        assert fleet.row(scattered.batch).retries == 1

    def test_a_job_of_an_earlier_wave_sends_nothing(self, fleet):
        fleet.start(1, timeout=10)
        late = fleet.memory.jobs.waiting.pop()
        fleet.ring(10)
        fleet.work()

        fleet.scatters.send(late["batch_id"], late["chunk"], late["wave"])

        assert len(fleet.got(0)) == 1


class TestQuorum:
    def test_a_count_that_was_lost_is_made_up_also_if_its_repeat_was_not_enough(self, fleet):
        # Given a reply whose bringer died before it was counted, and came again
        scattered = fleet.start(4, quorum=2)
        fleet.work()
        with fleet.dying("batches.count", "before"):
            fleet.reply(0)
        fleet.reply(0)
        # When another one makes it enough, Then the scatter is ready
        fleet.reply(1)
        assert fleet.scatters.status(scattered.batch.batch_id).ready

    def test_a_count_that_was_lost_is_made_up_by_the_deadline(self, fleet):
        scattered = fleet.start(3, quorum=1, timeout=10)
        fleet.work()
        with fleet.dying("batches.count", "before"):
            fleet.reply(0)
        fleet.ring(10)

        assert fleet.row(scattered.batch).state is State.COMPLETE


def test_others_an_id_that_is_taken_is_drawn_again(fleet):
    # Given a scatter whose id another has drawn at the same time
    taken = fleet.start(1, correlation_id="a")
    bits = fleet.ports.random.bits
    drawn = iter([taken.batch.batch_id % 4096])
    fleet.ports.random.bits = lambda n: next(drawn, None) or bits(n)
    # Then the next gets another, and the first keeps its plan
    assert fleet.start(1, correlation_id="b").batch.batch_id != taken.batch.batch_id
    assert fleet.scatters.status(taken.batch.batch_id).correlation_id == "a"
