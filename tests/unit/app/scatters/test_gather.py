"""Gathering: when replies are enough, what a deadline does, and what the end tells."""

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fanin import names
from fanin.app.ports.events import Event
from fanin.app.scatters import gather
from fanin.app.scatters.records import ScatterPlan, read_plan
from fanin.app.scatters.service import ScatterService
from fanin.domain import limits
from fanin.domain.batch import Batch, OpenBatch, State
from fanin.domain.marks import Failure
from fanin.domain.scatter import Scatter
from tests.unit.app.scatters.conftest import Fleet


class Crowd(Fleet):
    """A fleet that marks recipients without the receiving side of replies, which would end a scatter."""

    def done(self, batch: Batch, *ordinals: int) -> None:
        self.ledger.mark([self.nth(batch, i) for i in ordinals]).whole()

    def failed(self, batch: Batch, *ordinals: int) -> None:
        self.ledger.mark([Failure(self.nth(batch, i), "broken") for i in ordinals]).whole()

    def plan(self, batch: Batch) -> ScatterPlan:
        return read_plan(self.ports.records, batch.batch_id)

    def postpone(self, batch: Batch) -> Batch | None:
        return gather.postpone(self.ports, self.ledger, batch)

    def postponed(self, batch: Batch) -> Batch:
        """The row of a scatter that is not given up."""
        row = self.postpone(batch)
        assert row is not None
        return row

    def tell(self, batch: Batch, detail: dict[str, Any] | None = None) -> Event:
        event = Event("7.end", "Batch Ended", {"failures": [], **(detail or {})}, 5)
        return gather.ended(self.ports, self.ledger, self.row(batch), event)


@pytest.fixture
def crowd() -> Crowd:
    return Crowd()


class TestPostponing:
    @pytest.mark.parametrize(("late", "until"), [(-3_000, 20_000), (0, 20_000), (2_500, 22_500)])
    def test_the_next_deadline_counts_from_the_last_or_from_now(self, crowd, late, until):
        batch = crowd.ask(1, timeout=10)
        started = crowd.clock.at
        crowd.clock.advance(10_000 + late)

        row = crowd.postponed(batch)

        assert row.deadline == started + until

    @pytest.mark.parametrize("retries", [0, 2])
    def test_it_is_given_up_after_as_many_retries_as_planned(self, crowd, retries):
        batch = crowd.ask(1, timeout=10, max_retries=retries)
        for _ in range(retries):
            crowd.clock.advance(10_000)
            assert crowd.postpone(crowd.row(batch)) is not None
        crowd.memory.jobs.waiting.clear()
        before = crowd.row(batch), dict(crowd.memory.timers.alarms)

        assert crowd.postpone(crowd.row(batch)) is None

        assert (crowd.row(batch), crowd.memory.timers.alarms) == before
        assert crowd.memory.jobs.waiting == []

    def test_a_batch_that_has_no_plan_or_no_deadline_ends_as_any_other(self, crowd):
        plain, _ = crowd.batch(1, closed=True, deadline=crowd.clock.at + 1_000)
        scatter = replace(crowd.ask(1), deadline=None)

        assert crowd.postpone(plain) is None
        assert crowd.postpone(scatter) is None
        assert crowd.memory.jobs.waiting == []

    def test_the_chunks_with_missing_recipients_are_sent_to_again(self, crowd):
        # Given three chunks, of which the second has replied or failed
        batch = crowd.ask(250, timeout=10)
        crowd.done(batch, *range(100, 150), 0)
        crowd.failed(batch, *range(150, 200))
        batch = crowd.row(batch)
        crowd.clock.advance(10_000)

        row = crowd.postponed(batch)

        assert crowd.memory.jobs.waiting == [
            {"batch_id": batch.batch_id, "chunk": chunk, "wave": 1} for chunk in (0, 2)
        ]
        assert (row.retries, row.deadline, row.state) == (1, crowd.clock.at + 10_000, State.CLOSED)
        assert row == crowd.row(batch)
        assert crowd.memory.timers.alarms[batch.batch_id] == row.deadline


class TestListingAgain:
    def start(self, crowd: Crowd) -> Batch:
        """A scatter whose recipients the worker has yet to list, and whose job was lost."""
        started = ScatterService(crowd.ledger, at_once=0).start(Scatter("x", topic="cars"))
        crowd.memory.jobs.waiting.clear()
        return crowd.row(started.batch)

    def test_another_process_is_asked_to_list(self, crowd):
        batch = self.start(crowd)
        crowd.clock.at = batch.deadline or 0

        row = crowd.postponed(batch)

        assert crowd.memory.jobs.waiting == [{"batch_id": batch.batch_id, "chunk": None, "wave": 0}]
        assert (row.state, row.retries, row.deadline) == (State.OPEN, 1, crowd.clock.at + 300_000)
        assert crowd.memory.timers.alarms[batch.batch_id] == row.deadline

    def test_it_times_out_when_ten_were_asked(self, crowd):
        batch = self.start(crowd)
        for _ in range(10):
            crowd.clock.at = crowd.row(batch).deadline or 0
            row = crowd.postponed(crowd.row(batch))
            assert row.state is State.OPEN
        assert len(crowd.memory.jobs.waiting) == 10

        crowd.clock.at = crowd.row(batch).deadline or 0
        row = crowd.postponed(crowd.row(batch))

        assert row.state is crowd.row(batch).state is State.TIMED_OUT
        assert len(crowd.memory.jobs.waiting) == 10


class TestTally:
    def test_failures_of_all_pages_count(self, crowd, monkeypatch):
        monkeypatch.setattr(limits, "MAX_PAGE", 2)
        batch = crowd.ask(9)
        crowd.failed(batch, 0, 1, 3, 5, 8)
        crowd.done(batch, 2)

        assert gather.tally(crowd.ports, crowd.ledger, batch) == (1, 5)

    def test_a_failure_while_it_counts_is_not_taken_for_a_reply(self, crowd):
        batch = crowd.ask(3)
        crowd.done(batch, 0)
        crowd.at("words.read", "after", lambda: crowd.failed(batch, 1, 2))

        assert gather.tally(crowd.ports, crowd.ledger, batch) == (1, 0)
        assert crowd.happened
        assert gather.tally(crowd.ports, crowd.ledger, batch) == (1, 2)

    @settings(max_examples=25)
    @given(n=st.integers(1, 9), data=st.data())
    def test_replies_and_failures_are_counted_apart(self, n, data):
        crowd = Crowd()
        batch = crowd.ask(n)
        marks = data.draw(st.lists(st.sampled_from(["reply", "failure", "nothing"]), min_size=n, max_size=n))
        for i, mark in enumerate(marks):
            {"reply": crowd.done, "failure": crowd.failed}.get(mark, lambda *_: None)(batch, i)

        expected = marks.count("reply"), marks.count("failure")
        assert gather.tally(crowd.ports, crowd.ledger, crowd.row(batch)) == expected


@settings(max_examples=40)
@given(
    n=st.integers(1, 6),
    quorum=st.none() | st.integers(1, 7) | st.sampled_from([0.1, 0.2, 0.5, 0.75, 0.9]),
    data=st.data(),
)
def test_enough_it_ends_when_enough_replied_and_others_are_still_missing(n, quorum, data):
    # Given recipients who replied, failed or are missing
    crowd = Crowd()
    batch = crowd.ask(n, quorum=quorum)
    replied = data.draw(st.sets(st.integers(0, n - 1)))
    failed = data.draw(st.sets(st.integers(0, n - 1))) - replied
    if replied:
        crowd.done(batch, *replied)
    if failed:
        crowd.failed(batch, *failed)
    before = crowd.row(batch)
    # When it is asked whether that is enough
    gather.end_if_enough(crowd.ports, crowd.ledger, before, crowd.plan(batch))
    # Then failures do not count, a number stands for all where there are fewer, and a share is of all
    needed = n + 1 if quorum is None else quorum * n if isinstance(quorum, float) else min(quorum, n)
    row = crowd.row(batch)
    if len(replied) >= needed - 1e-9 and len(replied | failed) < n:
        assert (row.state, row.partial) == (State.COMPLETE, True)
    else:
        assert row == before


class TestTelling:
    def test_the_end_tells_who_replied_failed_and_is_missing(self, crowd):
        batch = crowd.ask(6, quorum=3, correlation_id="mine")
        crowd.done(batch, 0, 2, 5)
        crowd.failed(batch, 4)
        gather.end_if_enough(crowd.ports, crowd.ledger, crowd.row(batch), crowd.plan(batch))

        event = crowd.tell(batch, {"failures": [{"ordinal": 4}], "user_key": "k"})

        assert event == Event(
            "7.end",
            names.GATHER_READY,
            {
                "missing": [],
                "missing_more": False,
                "failures": [{"ordinal": 4}],
                "user_key": "k",
                "correlation_id": "mine",
                "recipients": 6,
                "received": 3,
                "failed": 1,
                "failed_recipients": ["car 4"],
                "missing_count": 2,
                "missing_recipients": ["car 1", "car 3"],
                "retries": 0,
            },
            5,
        )

    def test_ranges_that_the_event_has_already_are_kept(self, crowd):
        detail = crowd.tell(crowd.ask(2), {"missing": [[0, 2]], "missing_more": True}).detail

        assert (detail["missing"], detail["missing_more"]) == ([[0, 2]], True)

    @pytest.mark.parametrize("missing", [99, 100, 101])
    def test_the_first_hundred_missing_are_named_and_all_are_counted(self, crowd, missing):
        batch = crowd.ask(missing + 3)
        crowd.done(batch, 0, 1, 2)

        detail = crowd.tell(batch).detail

        assert detail["missing_count"] == missing
        assert detail["missing_recipients"] == [f"car {i}" for i in range(3, 3 + min(missing, 100))]

    def test_the_missing_of_all_pages_are_named(self, crowd, monkeypatch):
        monkeypatch.setattr(limits, "MAX_PAGE", 2)
        batch = crowd.ask(12)
        crowd.done(batch, *range(1, 12, 2))

        assert crowd.tell(batch).detail["missing_recipients"] == [f"car {i}" for i in range(0, 12, 2)]

    def test_the_event_of_a_batch_without_a_plan_stays_as_it_is(self, crowd):
        batch = crowd.ledger.open(OpenBatch())

        assert crowd.tell(batch, {"n": 7}) == Event("7.end", "Batch Ended", {"failures": [], "n": 7}, 5)
