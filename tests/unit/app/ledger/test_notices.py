"""What the world is told when a batch has ended."""

from __future__ import annotations

from dataclasses import replace

import pytest

from fanin.app.ledger import notices
from fanin.app.ledger.kinds import Kinds
from fanin.app.ledger.service import LedgerService
from fanin.app.ports.channels import Outgoing
from fanin.app.ports.events import Event
from fanin.domain import limits
from fanin.domain.acks import Failure, Result
from fanin.domain.batch import Batch, Kind, Mode, OnDeadline, OpenBatch, State
from fanin.domain.reports import FailedItem, Failures
from fanin.errors import Throttled
from tests.spans import spans
from tests.unit.app.conftest import Crash, World


def announced(world: World, batch: Batch) -> Event:
    """The event of a batch that has ended."""
    world.fresh().announce(world.row(batch))
    return world.memory.events.published[-1]


class TestRemoved:
    def test_an_end_is_announced_in_full_after_its_batch_was_removed(self, world: World) -> None:
        # Given a batch with a done, a failed and a missing item, removed before its end was announced
        batch, (group,) = world.batch(3)
        world.ledger.ack([group[0]])
        world.ledger.fail([Failure(group[1], "no stock")])
        world.ledger.cancel(batch.batch_id)
        ended = world.row(batch)
        world.ledger.remove(batch.batch_id)
        # When
        world.fresh().announce(ended)
        # Then
        (event,) = world.memory.events.published
        assert (event.detail_type, event.detail["failed"]) == ("Batch Cancelled", 1)
        assert [failure["reason"] for failure in event.detail["failures"]] == ["no stock"]
        assert spans(event.detail["missing"]) == [[2, 3]]

    def test_an_end_is_announced_after_its_row_was_deleted(self, world: World) -> None:
        elsewhere = World()
        batch, _ = elsewhere.batch(3)
        elsewhere.ledger.cancel(batch.batch_id)
        world.fresh().announce(elsewhere.row(batch))
        assert [event.detail_type for event in world.memory.events.published] == ["Batch Cancelled"]

    def test_a_removed_parent_is_left_alone(self, world: World) -> None:
        parent, (group,) = world.batch(1)
        child, _ = world.batch(2, parent_item=group[0])
        for each in (parent, child):
            world.ledger.cancel(each.batch_id)
        ended = world.row(child)
        for each in (parent, child):
            world.ledger.remove(each.batch_id)
        world.fresh().announce(ended)
        assert [event.id for event in world.memory.events.published] == [f"{child.batch_id}.cancelled"]


class TestEvent:
    def test_tells_of_a_completion(self, world: World) -> None:
        batch, (group,) = world.batch(3, user_key="mine", metadata={"a": "b"}, closed=True)
        world.ledger.ack(list(group))

        event = announced(world, batch)

        assert (event.id, event.detail_type) == (f"{batch.batch_id}.complete", "Batch Completed")
        assert event.time == world.row(batch).ended_at
        shown = {
            "batch_id": batch.batch_id,
            "state": "complete",
            "user_key": "mine",
            "metadata": {"a": "b"},
            "items": 3,
            "partial": False,
            "failed": 0,
            "failed_more": False,
            "failures": [],
        }
        assert shown.items() <= event.detail.items()
        assert "missing" not in event.detail
        assert "salt" not in event.detail

    @pytest.mark.parametrize(
        ("state", "detail_type"),
        [
            (State.TIMED_OUT, "Batch Timed Out"),
            (State.CANCELLED, "Batch Cancelled"),
            (State.ORPHANED, "Batch Orphaned"),
        ],
    )
    def test_tells_what_is_missing_at_any_other_end(
        self, world: World, state: State, detail_type: str
    ) -> None:
        batch, (group,) = world.batch(9)
        world.ledger.ack([group[2], group[3]])
        world.ports.batches.end(batch.batch_id, state, now=world.clock.at, sources=(State.OPEN,))

        event = announced(world, batch)

        assert (event.id, event.detail_type) == (f"{batch.batch_id}.{state}", detail_type)
        assert spans(event.detail["missing"]) == [[0, 2], [4, 9]]
        assert event.detail["missing_more"] is False

    def test_tells_what_is_missing_from_a_partial_batch(self, world: World) -> None:
        batch, _ = world.batch(3, deadline=world.clock.at + 1, on_deadline=OnDeadline.COMPLETE)
        world.clock.advance(1)
        world.ledger.meet_deadline(batch.batch_id)

        event = announced(world, batch)

        assert (event.detail_type, event.detail["partial"]) == ("Batch Completed", True)
        assert spans(event.detail["missing"]) == [[0, 3]]

    def test_lists_the_first_of_much(self, world: World, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(notices, "LISTED", 2)
        batch, (group,) = world.batch(20)
        world.ledger.fail([Failure(group[i], "no") for i in range(0, 10, 2)])
        world.ledger.cancel(batch.batch_id)

        detail = announced(world, batch).detail

        assert (detail["failed"], detail["failed_more"]) == (5, False)
        assert detail["failures"] == [{"ordinal": i, "item": group[i], "reason": "no"} for i in (0, 2)]
        assert (spans(detail["missing"]), detail["missing_more"]) == ([[1, 2], [3, 4]], True)

    def test_lists_a_hundred_failures_and_ranges_and_quotes_256_characters_of_a_reason(
        self, world: World
    ) -> None:
        batch, (group,) = world.batch(202)
        world.ledger.fail([Failure(item, "r" * 257) for item in group[::2]])
        world.ledger.cancel(batch.batch_id)

        detail = announced(world, batch).detail

        assert (len(detail["failures"]), len(detail["missing"])) == (100, 100)
        assert {failure["reason"] for failure in detail["failures"]} == {"r" * 256}

    def test_counts_a_hundred_pages_of_failures_at_most(self, world: World) -> None:
        """A huge batch may have millions; its event must not wait until all are read."""
        batch, _ = world.batch(1)
        world.ledger.cancel(batch.batch_id)

        class Endless(LedgerService):
            def failures(self, batch_id: int, *, cursor: str | None = None, limit: int = 100) -> Failures:
                return Failures((FailedItem(0, "an item", "no"),), "more")

        notices.announce(world.ports, world.ledger, Endless(world.ports), world.row(batch), Kinds())

        (event,) = world.memory.events.published
        assert (event.detail["failed"], event.detail["failed_more"]) == (100, True)

    def test_says_when_it_stopped_counting_failures(
        self, world: World, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(notices, "COUNTED", 1)
        batch, (group,) = world.batch(1_501, closed=True)
        for start in (0, 1_000):
            world.ledger.fail([Failure(item) for item in group[start : min(start + 1_000, 1_500)]])
        world.ledger.cancel(batch.batch_id)

        detail = announced(world, batch).detail

        assert (detail["failed"], detail["failed_more"]) == (1_000, True)

    def test_of_a_complete_batch_knows_how_many_failed_from_its_row(
        self, world: World, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(notices, "COUNTED", 1)
        monkeypatch.setattr(notices, "LISTED", 3)
        batch, (group,) = world.batch(1_500, closed=True)
        for start in (0, 1_000):
            world.ledger.fail([Failure(item) for item in group[start : start + 1_000]])

        detail = announced(world, batch).detail

        assert (detail["failed"], detail["failed_more"], detail["acked"]) == (1_500, False, 1_500)
        assert [failure["ordinal"] for failure in detail["failures"]] == [0, 1, 2]

    def test_is_cut_where_the_bus_would_refuse_it_and_says_so(
        self, world: World, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        # Given an end with failures and missing ranges, and a bus that takes little
        batch, (group,) = world.batch(400)
        world.ledger.fail([Failure(item, "💥" * notices.QUOTED) for item in group[:200:2]])
        world.ledger.cancel(batch.batch_id)
        whole = announced(world, batch)
        assert "truncated" not in whole.detail
        monkeypatch.setattr(limits, "MAX_ENTRY", 50_000)

        # When it is announced
        event = announced(world, batch)

        # Then as much as fits is there, and the event says that this is not all
        detail = event.detail
        assert 25_000 < event.size <= 50_000
        assert (detail["truncated"], detail["missing_more"], detail["failed"]) == (True, True, 100)
        assert detail["failures"] == whole.detail["failures"][:25]
        assert detail["missing"] == whole.detail["missing"][:25]

    def test_is_cut_to_nothing_but_the_batch_if_need_be(
        self, world: World, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        batch, (group,) = world.batch(4)
        world.ledger.fail([Failure(group[1], "no")])
        world.ledger.cancel(batch.batch_id)
        monkeypatch.setattr(limits, "MAX_ENTRY", 10)

        detail = announced(world, batch).detail

        assert (detail["failures"], detail["missing"], detail["missing_more"]) == ([], [], True)
        assert (detail["batch_id"], detail["failed"]) == (batch.batch_id, 1)

    @pytest.mark.parametrize("character", ["\0", "💥", '"'])
    def test_is_never_larger_than_the_bus_takes(self, world: World, character: str) -> None:
        """Whatever a caller may put into a batch and its failures, at its longest."""
        batch, (group,) = world.batch(
            400,
            user_key=character * limits.MAX_USER_KEY,
            metadata={
                str(i) + character * (limits.MAX_METADATA_KEY - 2): character * limits.MAX_METADATA_VALUE
                for i in range(limits.MAX_METADATA)
            },
        )
        world.ledger.fail([Failure(item, character * limits.MAX_REASON) for item in group[:200:2]])
        world.ledger.cancel(batch.batch_id)

        assert announced(world, batch).size < 256 * 1024

    def test_of_an_estimated_batch_names_no_items(self, world: World) -> None:
        batch, _ = world.batch(3, mode=Mode.ESTIMATED)
        world.ledger.cancel(batch.batch_id)

        assert "missing" not in announced(world, batch).detail

    def test_repeated_has_the_same_id(self, world: World) -> None:
        batch, _ = world.batch(closed=True)

        announced(world, batch)
        announced(world, batch)

        first, second = world.memory.events.published
        assert first == second

    def test_that_the_bus_did_not_take_is_an_error(self, world: World) -> None:
        batch, _ = world.batch(closed=True)

        def refuse() -> None:
            raise Throttled("busy")

        world.at("events.publish", "before", refuse)

        with pytest.raises(Throttled):
            announced(world, batch)


def test_the_alarm_of_an_ended_batch_is_deleted(world: World) -> None:
    batch, _ = world.batch(deadline=world.clock.at + 1_000)
    world.ledger.close(batch.batch_id)

    announced(world, batch)

    assert world.memory.timers.alarms == {}


class TestParent:
    """A nested batch marks an item of another when it ends."""

    def test_is_acknowledged_by_a_completion(self, world: World) -> None:
        parent, (group,) = world.batch(1, closed=True)
        child, _ = world.batch(parent_item=group[0], closed=True)

        announced(world, child)

        assert world.row(parent).state is State.COMPLETE
        assert world.ledger.failures(parent.batch_id).failures == ()

    def test_is_acknowledged_by_a_partial_completion(self, world: World) -> None:
        parent, (group,) = world.batch(1, closed=True)
        child, _ = world.batch(
            3, parent_item=group[0], deadline=world.clock.at + 1, on_deadline=OnDeadline.COMPLETE
        )
        world.clock.advance(1)
        world.ledger.meet_deadline(child.batch_id)

        announced(world, child)

        assert world.row(parent).state is State.COMPLETE

    def test_is_failed_by_any_other_end(self, world: World) -> None:
        parent, (group,) = world.batch(1, closed=True)
        child, _ = world.batch(3, parent_item=group[0])
        world.ledger.cancel(child.batch_id)

        announced(world, child)

        (failed,) = world.ledger.failures(parent.batch_id).failures
        assert world.row(parent).state is State.COMPLETE
        assert (failed.item, failed.reason) == (group[0], f"batch {child.batch_id} ended as cancelled")

    @pytest.mark.parametrize(
        ("state", "partial"),
        [(State.ORPHANED, False), (State.TIMED_OUT, False), (State.COMPLETE, True)],
    )
    def test_is_left_alone_by_a_child_that_nobody_used(
        self, world: World, state: State, *, partial: bool
    ) -> None:
        # Given a child whose opener never heard of it, since the answer was lost
        parent, (group,) = world.batch(1, closed=True)
        ghost, _ = world.batch(parent_item=group[0])
        world.ports.batches.end(
            ghost.batch_id, state, now=world.clock.at, sources=(State.OPEN,), partial=partial
        )

        announced(world, ghost)

        assert world.row(parent).state is State.CLOSED
        assert world.ledger.failures(parent.batch_id).failures == ()

    def test_is_failed_by_a_child_that_was_cancelled_before_it_had_items(self, world: World) -> None:
        parent, (group,) = world.batch(1, closed=True)
        child, _ = world.batch(parent_item=group[0])
        world.ledger.cancel(child.batch_id)

        announced(world, child)

        assert len(world.ledger.failures(parent.batch_id).failures) == 1

    def test_is_left_to_the_child_that_took_the_place_of_one_that_ended(self, world: World) -> None:
        # Given a child that failed, and a second try that is at work before the first is announced
        parent, (group,) = world.batch(1, closed=True)
        first, _ = world.batch(1, parent_item=group[0])
        world.ledger.cancel(first.batch_id)
        second, (items,) = world.batch(1, parent_item=group[0], closed=True)

        announced(world, first)
        assert world.row(parent).state is State.CLOSED

        world.ledger.ack(list(items))
        announced(world, second)
        assert world.row(parent).state is State.COMPLETE
        assert world.ledger.failures(parent.batch_id).failures == ()

    @pytest.mark.parametrize("ghosts", [1, 2])
    def test_is_failed_if_the_child_in_place_of_one_that_ended_is_never_used(
        self, world: World, ghosts: int
    ) -> None:
        # Given a child that failed, and further tries before its end is announced, of which nobody knows
        parent, (group,) = world.batch(1, closed=True)
        first, _ = world.batch(1, parent_item=group[0])
        world.ledger.cancel(first.batch_id)
        for _ in range(ghosts):
            ghost, _ = world.batch(parent_item=group[0])
            world.ports.batches.end(ghost.batch_id, State.ORPHANED, now=world.clock.at, sources=(State.OPEN,))

        # When all of them are announced, then the last one fails the item
        announced(world, first)
        assert world.row(parent).state is State.CLOSED
        announced(world, ghost)
        assert world.row(parent).state is State.COMPLETE
        (failed,) = world.ledger.failures(parent.batch_id).failures
        assert failed.reason == f"batch {first.batch_id} did not complete, nor was it tried again"

    def test_is_left_alone_if_no_child_was_ever_used(self, world: World) -> None:
        parent, (group,) = world.batch(1, closed=True)
        for _ in range(2):
            ghost, _ = world.batch(parent_item=group[0])
            world.ports.batches.end(ghost.batch_id, State.ORPHANED, now=world.clock.at, sources=(State.OPEN,))
            announced(world, ghost)

        assert world.row(parent).state is State.CLOSED

    def test_is_left_to_the_next_child_after_one_that_was_never_used(self, world: World) -> None:
        # Given a child that failed, one of which nobody knew, and one that is at work
        parent, (group,) = world.batch(1, closed=True)
        first, _ = world.batch(1, parent_item=group[0])
        world.ledger.cancel(first.batch_id)
        ghost, _ = world.batch(parent_item=group[0])
        world.ports.batches.end(ghost.batch_id, State.ORPHANED, now=world.clock.at, sources=(State.OPEN,))
        third, (items,) = world.batch(1, parent_item=group[0], closed=True)

        # When the ghost is announced late, then it does not speak for the one at work
        announced(world, ghost)
        assert world.row(parent).state is State.CLOSED
        world.ledger.ack(list(items))
        announced(world, third)
        assert world.ledger.failures(parent.batch_id).failures == ()

    def test_is_marked_by_a_child_that_the_version_before_opened(self, world: World) -> None:
        parent, (group,) = world.batch(1, closed=True)
        child = world.ledger.opening.draft(OpenBatch(parent_item=group[0]))
        world.ports.batches.create(child)  # without a note
        world.ledger.close(child.batch_id)

        announced(world, child)

        assert world.row(parent).state is State.COMPLETE

    def test_is_marked_once_however_often_it_is_told(self, world: World) -> None:
        parent, (group,) = world.batch(2)
        child, _ = world.batch(parent_item=group[0], closed=True)
        world.crash_at("events.publish", "after")
        with pytest.raises(Crash):
            announced(world, child)

        announced(world, child)

        assert world.ledger.status(parent.batch_id, exact=True).done_min == 1

    def test_that_is_gone_does_not_keep_the_event_back(self, world: World) -> None:
        parent, (group,) = world.batch(1, lifetime=60)
        child, _ = world.batch(parent_item=group[0], closed=True)
        world.clock.at = parent.expires_at * 1000

        assert announced(world, child).id == f"{child.batch_id}.complete"

    def test_that_was_deleted_does_not_keep_the_event_back(self, world: World) -> None:
        parent, (group,) = world.batch(1)
        child, _ = world.batch(parent_item=group[0], closed=True)
        del world.memory.batches._rows[parent.batch_id]

        assert announced(world, child).id == f"{child.batch_id}.complete"

    def test_that_has_ended_is_left_alone(self, world: World) -> None:
        parent, (group,) = world.batch(1)
        child, _ = world.batch(parent_item=group[0], closed=True)
        world.ledger.cancel(parent.batch_id)

        announced(world, child)

        assert world.row(parent).state is State.CANCELLED

    def test_may_be_nested_itself(self, world: World) -> None:
        top, (a,) = world.batch(1, closed=True)
        middle, (b,) = world.batch(1, parent_item=a[0], closed=True)
        bottom, _ = world.batch(parent_item=b[0], closed=True)

        announced(world, bottom)
        announced(world, middle)

        assert world.row(top).state is State.COMPLETE


class TestSteps:
    """Each step of an announcement is tried, whatever became of those before it."""

    def given(self, world: World) -> tuple[Batch, Batch]:
        """An ended frame with an alarm and a parent."""
        parent, (group,) = world.batch(1, closed=True)
        asked = OpenBatch(kind=Kind.FRAME, size=2, parent_item=group[0], deadline=world.clock.at + 1_000)
        frame = world.ledger.open(asked)
        world.ledger.cancel(frame.batch_id)
        return world.row(frame), parent

    def failing(self, world: World, *calls: str) -> None:
        def fail() -> None:
            raise ValueError

        for call in calls:
            world.at(call, "before", fail)

    @pytest.mark.parametrize("broken", ["words.clear", "timers.clear", "events.publish", "channels.send"])
    def test_one_that_fails_holds_up_no_other_and_is_an_error(self, world: World, broken: str) -> None:
        frame, parent = self.given(world)
        told: list[Batch] = []

        def tell(batch: Batch) -> None:
            world.ports.channels.send([Outgoing("https://sqs/x", "", {})])
            told.append(batch)

        ledger = LedgerService(world.ports, Kinds(announced={Kind.FRAME: tell}))
        self.failing(world, broken)

        with pytest.raises(ValueError):  # noqa: PT011
            ledger.announce(frame)

        happened = {
            "words.clear": world.row(parent).state is State.COMPLETE,
            "timers.clear": not world.memory.timers.alarms,
            "events.publish": [event.id for event in world.memory.events.published]
            == [f"{frame.batch_id}.cancelled"],
            "channels.send": told == [frame],
        }
        assert [step for step, done in happened.items() if not done] == [broken]

    def test_several_that_fail_are_raised_together(self, world: World) -> None:
        frame, _ = self.given(world)
        self.failing(world, "timers.clear", "events.publish")

        with pytest.raises(ExceptionGroup, match=f"2 of 3 steps .* batch {frame.batch_id} failed") as raised:
            world.ledger.announce(frame)

        assert len(raised.value.exceptions) == 2

    def test_what_follows_from_an_end_comes_after_its_event(self, world: World) -> None:
        frame, _ = self.given(world)
        published: list[int] = []

        def tell(_: Batch) -> None:
            published.append(len(world.memory.events.published))

        LedgerService(world.ports, Kinds(announced={Kind.FRAME: tell})).announce(frame)

        assert published == [1]


class TestTotals:
    def test_a_sum_that_is_larger_than_a_value_may_be_is_handed_over_all_the_same(self, world: World) -> None:
        # Given a child whose sum is beyond what an item may bring
        parent, (group,) = world.batch(1, closed=True, totals=("rows",))
        child, (items,) = world.batch(3, closed=True, totals=("rows", "cents"), parent_item=group[0])
        world.ledger.ack(results=[Result(item, {"rows": 2**53, "cents": 1}) for item in items])

        # When its end is announced, twice
        announced(world, child)
        event = announced(world, child)

        # Then the parent has it once
        assert event.detail["totals"] == {"rows": 3 * 2**53, "cents": 3}
        row = world.row(parent)
        assert (row.state, row.totals, row.totals_exact) == (State.COMPLETE, {"rows": 3 * 2**53}, True)

    def test_a_child_that_did_not_complete_brings_nothing(self, world: World) -> None:
        parent, (group,) = world.batch(1, closed=True, totals=("rows",))
        child, (items,) = world.batch(3, totals=("rows",), parent_item=group[0])
        world.ledger.ack(results=[Result(items[0], {"rows": 5})])
        world.ledger.cancel(child.batch_id)

        assert announced(world, child).detail["totals"] == {"rows": 5}
        assert (world.row(parent).failed, world.row(parent).totals) == (1, {"rows": 0})

    def test_a_child_that_does_not_know_its_sums_leaves_those_of_its_parent_inexact(
        self, world: World
    ) -> None:
        # Given an estimated child, and one whose sum cannot be added
        for child_sum, options in ((20, {"mode": Mode.ESTIMATED}), (2**53, {})):
            parent, (group,) = world.batch(1, closed=True, totals=("rows",))
            child, (items,) = world.batch(2, closed=True, totals=("rows",), parent_item=group[0], **options)
            world.ledger.ack(results=[Result(item, {"rows": child_sum}) for item in items])
            ended = world.row(child)
            if not options:
                ended = replace(ended, totals={"rows": 2**81})
            # When its end is announced
            world.fresh().announce(ended)
            # Then the parent is complete, and does not claim to know its sum
            row = world.row(parent)
            assert (row.state, row.totals_exact) == (State.COMPLETE, False)
            assert row.totals == {"rows": 40 if options else 0}
