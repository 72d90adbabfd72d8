"""The event that tells of the end of a batch."""

from __future__ import annotations

import pytest

from fanin.app.ledger import announcing
from fanin.app.ledger.kinds import Kinds
from fanin.app.ledger.service import LedgerService
from fanin.app.ports.events import Event
from fanin.domain import limits
from fanin.domain.batch import Batch, State
from fanin.domain.marks import Failure
from fanin.domain.reports import FailedItem, Failures
from tests.spans import spans
from tests.unit.app.conftest import World


def announced(world: World, batch: Batch) -> Event:
    """The event of a batch that has ended."""
    world.fresh().announce(world.row(batch))
    return world.memory.events.published[-1]


class TestEvent:
    def test_tells_of_a_completion(self, world: World) -> None:
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
    def test_tells_what_is_missing_at_any_other_end(
        self, world: World, state: State, detail_type: str
    ) -> None:
        batch, (group,) = world.batch(9)
        world.ledger.mark([group[2], group[3]]).whole()
        world.ports.batches.end(batch.batch_id, state, now=world.clock.at, sources=(State.OPEN,))

        event = announced(world, batch)

        assert (event.id, event.detail_type) == (f"{batch.batch_id}.{state}", detail_type)
        assert spans(event.detail["missing"]) == [[0, 2], [4, 9]]
        assert event.detail["missing_more"] is False

    def test_lists_a_hundred_failures_and_ranges_and_quotes_256_characters_of_a_reason(
        self, world: World
    ) -> None:
        batch, (group,) = world.batch(202)
        world.fail(*group[::2], reason="r" * 257)
        world.ledger.cancel(batch.batch_id)

        detail = announced(world, batch).detail

        assert (detail["failed"], detail["failed_more"]) == (101, False)
        assert detail["failures"] == [
            {"ordinal": i, "item": group[i], "reason": "r" * 256} for i in range(0, 200, 2)
        ]
        assert spans(detail["missing"]) == [[i, i + 1] for i in range(1, 200, 2)]
        assert detail["missing_more"] is True

    def test_counts_a_hundred_pages_of_failures_at_most(self, world: World) -> None:
        """A huge batch may have millions; its event must not wait until all are read."""
        batch, _ = world.batch(1)
        world.ledger.cancel(batch.batch_id)

        class Endless(LedgerService):
            def failures(self, batch_id: int, *, cursor: str | None = None, limit: int = 100) -> Failures:
                return Failures((FailedItem(0, "an item", "no", failed_at=1),), "more")

        announcing.announce(world.ports, world.ledger, Endless(world.ports), world.row(batch), Kinds())

        event = world.memory.events.published[-1]
        assert (event.detail["failed"], event.detail["failed_more"]) == (100, True)

    def test_is_cut_where_the_bus_would_refuse_it_and_says_so(
        self, world: World, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        # Given an end with failures and missing ranges, and a bus that takes little
        batch, (group,) = world.batch(400)
        world.ledger.mark([Failure(item, "💥" * announcing.QUOTED) for item in group[:200:2]]).whole()
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
        world.ledger.mark([Failure(group[1], "no")]).whole()
        world.ledger.cancel(batch.batch_id)
        monkeypatch.setattr(limits, "MAX_ENTRY", 10)

        detail = announced(world, batch).detail

        assert (detail["failures"], detail["missing"], detail["missing_more"]) == ([], [], True)
        assert (detail["batch_id"], detail["failed"]) == (batch.batch_id, 1)

    def test_of_a_complete_batch_knows_how_many_failed_from_its_row(
        self, world: World, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(announcing, "COUNTED", 1)
        monkeypatch.setattr(announcing, "LISTED", 3)
        batch, (group,) = world.batch(1_500, closed=True)
        for start in (0, 1_000):
            world.ledger.mark([Failure(item) for item in group[start : start + 1_000]]).whole()

        detail = announced(world, batch).detail

        assert (detail["items"], detail["failed"], detail["failed_more"]) == (1_500, 1_500, False)
        assert [failure["ordinal"] for failure in detail["failures"]] == [0, 1, 2]
