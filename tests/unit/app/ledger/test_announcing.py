"""What the world is told when a batch has ended."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from fanin.app.ledger import announcing
from fanin.app.ledger.kinds import Kinds
from fanin.app.ledger.service import LedgerService
from fanin.app.ports.events import Event
from fanin.app.ports.queues import Outgoing
from fanin.domain import limits
from fanin.domain.batch import Batch, ChildFailures, Kind, Mode, OnDeadline, OpenBatch, State
from fanin.domain.failures import Tolerance
from fanin.domain.marks import Done, Failure
from fanin.domain.reports import FailedItem, Failures
from fanin.wire.items import MISSING_RANGE
from tests.unit.app.conftest import World


def spans(event: Event) -> list[list[int]]:
    """Half-open ranges of the ordinals that are missing."""
    return [[found.start, found.stop] for found in map(MISSING_RANGE.decode, event.detail["missing"])]


def announced(world: World, batch: Batch) -> Event:
    """The event of a batch that has ended."""
    world.fresh().announce(world.row(batch))
    return world.memory.events.published[-1]


def never_used(world: World, item: str, state: State = State.ORPHANED, *, partial: bool = False) -> Batch:
    """A child of an item that has ended, and whose opener never heard of it."""
    ghost, _ = world.batch(parent_item=item)
    world.ports.batches.end(ghost.batch_id, state, now=world.clock.at, sources=(State.OPEN,), partial=partial)
    return ghost


def test_removed_an_end_is_announced_in_full_after_its_batch_was_removed(world):
    # Given a batch with a done, a failed and a missing item, removed before its end was announced
    batch, (group,) = world.batch(3)
    world.ledger.mark([group[0]]).whole()
    world.ledger.mark([Failure(group[1], "no stock")]).whole()
    world.ledger.cancel(batch.batch_id)
    ended = world.row(batch)
    world.ledger.remove(batch.batch_id)
    world.fresh().announce(ended)
    (event,) = world.memory.events.published
    assert (event.detail_type, event.detail["failed"]) == ("Batch Cancelled", 1)
    assert [failure["reason"] for failure in event.detail["failures"]] == ["no stock"]
    assert spans(event) == [[2, 3]]


class TestParent:
    """A nested batch marks an item of another when it ends."""

    @pytest.mark.parametrize("missing", [(), (3,)])
    def test_is_acknowledged_by_a_completion_be_it_partial(self, world, missing):
        parent, (group,) = world.batch(1, closed=True)
        child, _ = world.batch(
            *missing,
            parent_item=group[0],
            closed=True,
            deadline=world.clock.at + 1,
            on_deadline=OnDeadline.COMPLETE,
        )
        world.clock.advance(1)
        world.ledger.meet_deadline(child.batch_id)

        announced(world, child)

        assert world.row(parent).state is State.COMPLETE
        assert world.ledger.failures(parent.batch_id).failures == ()

    @pytest.mark.parametrize(
        ("of_parent", "of_child", "fails"),
        [
            ({}, {}, True),
            ({"child_failures": ChildFailures.IGNORE}, {}, False),
            ({}, {"tolerated_failures": Tolerance(count=2)}, False),
            ({}, {"tolerated_failures": Tolerance(percent=40)}, True),
            ({}, {"mode": Mode.ESTIMATED}, True),
        ],
    )
    def test_is_failed_by_a_complete_child_with_more_failures_than_are_tolerated(
        self, world, of_parent, of_child, fails
    ):
        # Given a child of four items, of which two fail
        parent, (group,) = world.batch(1, closed=True, **of_parent)
        child, (items,) = world.batch(4, closed=True, parent_item=group[0], **of_child)
        world.fail(items[0], items[1])
        world.ledger.mark([items[2], items[3]]).whole()

        announced(world, child)
        announced(world, child)

        assert (world.row(parent).state, world.row(parent).failed) == (State.COMPLETE, int(fails))
        reasons = [one.reason for one in world.ledger.failures(parent.batch_id).failures]
        assert reasons == [f"batch {child.batch_id} completed with 2 failed items"] * fails

    @pytest.mark.parametrize("ghosts", [0, 1])
    def test_is_left_to_the_child_that_took_the_place_of_one_that_ended(self, world, ghosts):
        # Given a child that failed, perhaps a second try of which nobody knew, and another that is at work
        parent, (group,) = world.batch(1, closed=True)
        first, _ = world.batch(1, parent_item=group[0])
        world.ledger.cancel(first.batch_id)
        late = [first, *(never_used(world, group[0]) for _ in range(ghosts))]
        last, (items,) = world.batch(1, parent_item=group[0], closed=True)
        # When those before are announced late, then they do not speak for the one at work
        for child in late:
            announced(world, child)
        assert world.row(parent).state is State.CLOSED
        world.ledger.mark(list(items)).whole()
        announced(world, last)
        assert world.row(parent).state is State.COMPLETE
        assert world.ledger.failures(parent.batch_id).failures == ()

    @pytest.mark.parametrize("ghosts", [1, 2])
    def test_is_failed_if_the_child_in_place_of_one_that_ended_is_never_used(self, world, ghosts):
        # Given a child that failed, and further tries before its end is announced, of which nobody knows
        parent, (group,) = world.batch(1, closed=True, totals=("rows",))
        first, _ = world.batch(1, parent_item=group[0])
        world.ledger.cancel(first.batch_id)
        for _ in range(ghosts):
            ghost = never_used(world, group[0])
        # When all of them are announced, then the last one fails the item
        announced(world, first)
        assert world.row(parent).state is State.CLOSED
        announced(world, ghost)
        row = world.row(parent)
        assert (row.state, row.totals, row.totals_exact) == (State.COMPLETE, {"rows": 0}, True)
        (failed,) = world.ledger.failures(parent.batch_id).failures
        assert failed.reason == f"batch {first.batch_id} did not complete, nor was it tried again"

    def test_is_marked_by_a_child_whose_note_has_expired(self, world):
        parent, (group,) = world.batch(1, closed=True)
        child, _ = world.batch(parent_item=group[0], closed=True)
        world.memory.batches._children.clear()

        announced(world, child)

        assert world.row(parent).state is State.COMPLETE

    @pytest.mark.parametrize("deleted", [False, True])
    def test_that_is_gone_does_not_keep_the_event_back(self, world, *, deleted):
        parent, (group,) = world.batch(1, lifetime=60)
        child, _ = world.batch(parent_item=group[0], closed=True)
        world.clock.at = parent.expires_at * 1000
        if deleted:
            del world.memory.batches._rows[parent.batch_id]

        assert announced(world, child).id == f"{child.batch_id}.complete"

    def test_is_left_alone_if_no_child_was_ever_used(self, world):
        parent, (group,) = world.batch(1, closed=True)
        for _ in range(2):
            announced(world, never_used(world, group[0]))

        assert world.row(parent).state is State.CLOSED


class Telling(Kinds):
    """A pattern that tells of ends."""

    def __init__(self, tell: Callable[[Batch], None]) -> None:
        self._tell = tell

    def announced(self, batch: Batch) -> None:
        self._tell(batch)


class TestSteps:
    """Each step of an announcement is tried, whatever became of those before it."""

    def given(self, world: World) -> tuple[Batch, Batch]:
        """An ended frame with an alarm and a parent."""
        parent, (group,) = world.batch(1, closed=True)
        asked = OpenBatch(kind=Kind.FRAME, size=2, parent_item=group[0], deadline=world.clock.at + 1_000)
        frame = world.ledger.open(asked)
        world.ledger.cancel(frame.batch_id)
        return world.row(frame), parent

    @pytest.mark.parametrize("broken", ["words.clear", "timers.clear", "events.publish", "channels.send"])
    def test_one_that_fails_holds_up_no_other_and_is_an_error(self, world, broken):
        frame, parent = self.given(world)
        told: list[Batch] = []

        def tell(batch: Batch) -> None:
            world.ports.channels.send([Outgoing("https://sqs/x", "", {})])
            told.append(batch)

        ledger = LedgerService(world.ports, Telling(tell))
        world.raise_at(broken, "before", ValueError())

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

    def test_several_that_fail_are_raised_together(self, world):
        frame, _ = self.given(world)
        for call in ("timers.clear", "events.publish"):
            world.raise_at(call, "before", ValueError())

        with pytest.raises(ExceptionGroup, match=f"2 of 5 steps .* batch {frame.batch_id} failed") as raised:
            world.ledger.announce(frame)

        assert len(raised.value.exceptions) == 2

    def test_what_follows_from_an_end_comes_after_its_event(self, world):
        frame, _ = self.given(world)
        published: list[int] = []

        def tell(_: Batch) -> None:
            published.append(len(world.memory.events.published))

        LedgerService(world.ports, Telling(tell)).announce(frame)

        assert published == [1]


class TestTotals:
    def test_a_sum_that_is_larger_than_a_value_may_be_is_handed_over_all_the_same(self, world):
        # Given a child whose sum is beyond what an item may bring
        parent, (group,) = world.batch(1, closed=True, totals=("rows",))
        child, (items,) = world.batch(3, closed=True, totals=("rows", "cents"), parent_item=group[0])
        world.ledger.mark([Done(item, {"rows": 2**53, "cents": 1}) for item in items]).whole()

        announced(world, child)
        event = announced(world, child)

        assert event.detail["totals"] == {"rows": 3 * 2**53, "cents": 3}
        row = world.row(parent)
        assert (row.state, row.totals, row.totals_exact) == (State.COMPLETE, {"rows": 3 * 2**53}, True)

    def test_a_child_with_failures_brings_its_sums(self, world):
        parent, (group,) = world.batch(1, closed=True, totals=("rows",))
        child, (items,) = world.batch(2, closed=True, totals=("rows",), parent_item=group[0])
        world.ledger.mark(
            [Done(items[0], {"rows": 2**53}), Failure(items[1], totals={"rows": 2**53})]
        ).whole()

        announced(world, child)

        assert (world.row(parent).failed, world.row(parent).totals) == (1, {"rows": 2**54})

    def test_a_child_that_does_not_know_its_sums_leaves_those_of_its_parent_inexact(self, world):
        # Given an estimated child, and one whose sum cannot be added
        for child_sum, options in ((20, {"mode": Mode.ESTIMATED}), (2**53, {})):
            parent, (group,) = world.batch(1, closed=True, totals=("rows",))
            child, (items,) = world.batch(2, closed=True, totals=("rows",), parent_item=group[0], **options)
            world.ledger.mark([Done(item, {"rows": child_sum}) for item in items]).whole()
            ended = world.row(child)
            if not options:
                ended = replace(ended, totals={"rows": 2**81})
            world.fresh().announce(ended)
            # Then the parent is complete, and does not claim to know its sum
            row = world.row(parent)
            assert (row.state, row.totals_exact) == (State.COMPLETE, False)
            assert row.totals == {"rows": 40 if options else 0}

    def test_a_child_that_did_not_complete_brings_nothing(self, world):
        parent, (group,) = world.batch(1, closed=True, totals=("rows",))
        child, (items,) = world.batch(3, totals=("rows",), parent_item=group[0])
        world.ledger.mark([Done(items[0], {"rows": 5})]).whole()
        world.ledger.cancel(child.batch_id)

        assert announced(world, child).detail["totals"] == {"rows": 5}
        assert (world.row(parent).failed, world.row(parent).totals) == (1, {"rows": 0})


# The event that tells of the end of a batch.


class TestEvent:
    def test_tells_of_a_completion(self, world):
        batch, (group,) = world.batch(3, user_key="mine", metadata={"a": "b"}, closed=True)
        world.ledger.mark(list(group)).whole()

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
    def test_tells_what_is_missing_at_any_other_end(self, world, state, detail_type):
        batch, (group,) = world.batch(9)
        world.ledger.mark([group[2], group[3]]).whole()
        world.ports.batches.end(batch.batch_id, state, now=world.clock.at, sources=(State.OPEN,))

        event = announced(world, batch)

        assert (event.id, event.detail_type) == (f"{batch.batch_id}.{state}", detail_type)
        assert spans(event) == [[0, 2], [4, 9]]
        assert event.detail["missing_more"] is False

    def test_lists_a_hundred_failures_and_ranges_and_quotes_256_characters_of_a_reason(self, world):
        batch, (group,) = world.batch(202)
        world.fail(*group[::2], reason="r" * 257)
        world.ledger.cancel(batch.batch_id)

        event = announced(world, batch)
        detail = event.detail

        assert (detail["failed"], detail["failed_more"]) == (101, False)
        assert detail["failures"] == [
            {"ordinal": i, "item": group[i], "reason": "r" * 256} for i in range(0, 200, 2)
        ]
        assert spans(event) == [[i, i + 1] for i in range(1, 200, 2)]
        assert detail["missing_more"] is True

    def test_counts_a_hundred_pages_of_failures_at_most(self, world):
        """A huge batch may have millions; its event must not wait until all are read."""
        batch, _ = world.batch(1)
        world.ledger.cancel(batch.batch_id)

        class Endless(LedgerService):
            def failures(self, batch_id: int, *, cursor: str | None = None, limit: int = 100) -> Failures:
                return Failures((FailedItem(0, "an item", "no", failed_at=1),), "more")

        announcing.announce(world.ports, world.ledger, Endless(world.ports), world.row(batch), Kinds())

        event = world.memory.events.published[-1]
        assert (event.detail["failed"], event.detail["failed_more"]) == (100, True)

    def test_is_cut_where_the_bus_would_refuse_it_and_says_so(self, world, monkeypatch):
        # Given an end with failures and missing ranges, and a bus that takes little
        batch, (group,) = world.batch(400)
        world.ledger.mark([Failure(item, "💥" * announcing.QUOTED) for item in group[:200:2]]).whole()
        world.ledger.cancel(batch.batch_id)
        whole = announced(world, batch)
        assert "truncated" not in whole.detail
        monkeypatch.setattr(limits, "MAX_ENTRY", 50_000)

        event = announced(world, batch)
        # Then as much as fits is there, and the event says that this is not all
        detail = event.detail
        assert 25_000 < event.size <= 50_000
        assert (detail["truncated"], detail["missing_more"], detail["failed"]) == (True, True, 100)
        assert detail["failures"] == whole.detail["failures"][:25]
        assert detail["missing"] == whole.detail["missing"][:25]

    def test_is_cut_to_nothing_but_the_batch_if_need_be(self, world, monkeypatch):
        batch, (group,) = world.batch(4)
        world.ledger.mark([Failure(group[1], "no")]).whole()
        world.ledger.cancel(batch.batch_id)
        monkeypatch.setattr(limits, "MAX_ENTRY", 10)

        detail = announced(world, batch).detail

        assert (detail["failures"], detail["missing"], detail["missing_more"]) == ([], [], True)
        assert (detail["batch_id"], detail["failed"]) == (batch.batch_id, 1)

    def test_of_a_complete_batch_knows_how_many_failed_from_its_row(self, world, monkeypatch):
        monkeypatch.setattr(announcing, "COUNTED", 1)
        monkeypatch.setattr(announcing, "LISTED", 3)
        batch, (group,) = world.batch(1_500, closed=True)
        for start in (0, 1_000):
            world.ledger.mark([Failure(item) for item in group[start : start + 1_000]]).whole()

        detail = announced(world, batch).detail

        assert (detail["items"], detail["failed"], detail["failed_more"]) == (1_500, 1_500, False)
        assert [failure["ordinal"] for failure in detail["failures"]] == [0, 1, 2]
