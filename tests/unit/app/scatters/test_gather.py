"""Gathering: retries at the deadline, quorums, and the event of the end."""

from __future__ import annotations

import pytest

from fanin.app.scatters import gather
from fanin.app.scatters.gather import Gather
from fanin.domain.acks import Failure
from fanin.domain.batch import State
from tests.unit.app.conftest import Crash
from tests.unit.app.scatters.conftest import Fleet


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
        assert detail["missing"] == [[2, 3]]
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


class TestEvent:
    def test_a_scatter_to_very_many_names_the_first_of_the_missing(
        self, fleet: Fleet, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(gather, "NAMED", 2)
        scattered = fleet.start(5, max_retries=0, timeout=10)
        fleet.work()
        fleet.reply(1)
        fleet.ring(10)

        detail = fleet.told(scattered).detail

        assert detail["missing_recipients"] == ["car 0", "car 2"]
        assert (detail["missing_count"], detail["recipients"]) == (4, 5)

    def test_the_end_of_a_scatter_whose_records_are_gone_is_told_as_any(self, fleet: Fleet) -> None:
        scattered = fleet.start(2)
        batch = fleet.ledger.cancel(scattered.batch.batch_id)
        fleet.memory.records.delete(str(batch.batch_id), "scatter")

        event = fleet.told(scattered)

        assert event.detail_type == "Batch Cancelled"
        assert "received" not in event.detail

    def test_a_scatter_whose_records_are_gone_is_not_postponed(self, fleet: Fleet) -> None:
        scattered = fleet.start(2, timeout=10)
        fleet.memory.records.delete(str(scattered.batch.batch_id), "scatter")
        fleet.ring(10)

        row = fleet.row(scattered.batch)
        assert (row.state, row.partial, row.retries) == (State.COMPLETE, True, 0)


class TestTally:
    def test_a_failure_between_the_counts_is_no_reply(self, fleet: Fleet) -> None:
        # Given a scatter of which one has replied, and one fails between the two counts
        scattered = fleet.start(3)
        fleet.work()
        fleet.reply(0)
        fleet.at("parts.failures", "before", lambda: fleet.ledger.fail([Failure(fleet.item(1), "no")]))

        counted = Gather(fleet.ports).tally(fleet.fresh(), fleet.row(scattered.batch))

        # Then at no time are there more replies than there were
        assert fleet.happened
        assert counted == (0, 1)
        assert Gather(fleet.ports).tally(fleet.fresh(), fleet.row(scattered.batch)) == (1, 1)
