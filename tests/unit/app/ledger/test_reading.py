"""Reading the tree: bounds, exact counts, what is missing, and whether all levels agree."""

from __future__ import annotations

from dataclasses import replace

import pytest

from fanin.app.ledger.reading import Reading, ordinal_of
from fanin.app.ports.words import Clear, WordKey
from fanin.domain import ids, limits
from fanin.domain.batch import Batch, Mode, OnDeadline, State
from fanin.domain.marks import ItemRange
from fanin.errors import InvalidRequest
from tests.unit.app.conftest import World


def plant(world: World, batch: Batch, level: int, number: int, mask: int) -> None:
    """Clear bits behind the ledger's back."""
    world.ports.words.clear([Clear(WordKey(batch.batch_id, level, number), mask, batch.expires_at)])


def small(world: World, budget: int) -> Reading:
    """A reader that may read few words in a call."""
    return Reading(world.ports, rows=budget)


def listed(reader: Reading, batch: Batch, *, limit: int) -> list[int]:
    """The missing items of all pages."""
    found: list[int] = []
    cursor: str | None = "0"
    while cursor is not None:
        page = reader.missing(batch.batch_id, cursor=cursor, limit=limit)
        assert len(page.ranges) <= limit
        found += [i for one in page.ranges for i in range(one.start, one.stop)]
        cursor = page.cursor
    return found


class TestStatus:
    def test_estimates_what_the_batch_has_cost_and_writes_nothing_for_it(self, world: World) -> None:
        # Given a batch that is half done
        batch, (group,) = world.batch(500)
        world.ledger.mark(list(group[:250])).whole()
        # When its status is read
        with world.costing(writes=0):
            cost = world.ledger.status(batch.batch_id).cost
        # Then it has an estimate, between the cheapest and the dearest way, at the prices of us-east-1
        assert cost is not None
        assert 0 < cost.at_least < cost.dollars < cost.at_most
        assert (cost.region, cost.estimate) == ("us-east-1", True)
        # And a brief status does without
        assert world.ledger.status(batch.batch_id, brief=True).cost is None

    @pytest.mark.parametrize(
        ("region", "taken"), [("eu-central-1", "eu-central-1"), ("mars-1", "us-east-1"), ("", "us-east-1")]
    )
    def test_takes_the_prices_of_its_region_if_they_are_known(
        self, world: World, region: str, taken: str
    ) -> None:
        batch, _ = world.batch(10)
        world.ports = replace(world.ports, defaults=replace(world.ports.defaults, region=region))

        cost = world.fresh().status(batch.batch_id).cost

        assert cost is not None
        assert cost.region == taken

    def test_has_bounds_around_the_truth(self, world: World) -> None:
        batch, (group,) = world.batch(100)
        for done in range(0, 100, 7):
            world.ledger.mark([group[done], ItemRange(group.prefix, 0, done + 1)]).whole()

            bounds = world.ledger.status(batch.batch_id)
            exact = world.ledger.status(batch.batch_id, exact=True)

            assert bounds.done_min <= done + 1 <= bounds.done_max
            assert exact.done_min == exact.done_max == done + 1

    def test_falls_back_to_bounds_when_an_exact_count_costs_too_much(self, world: World) -> None:
        batch, (group,) = world.batch(1_000)
        world.ledger.mark([group[i] for i in range(0, 1_000, 2)]).whole()

        progress = small(world, 200).status(batch.batch_id, exact=True)

        assert not progress.exact
        assert progress.done_min <= 500 <= progress.done_max

    def test_of_an_estimated_batch_is_its_count(self, world: World) -> None:
        batch, (group,) = world.batch(3, mode=Mode.ESTIMATED)
        world.ledger.mark([group[0], group[0], group[0], group[0]]).whole()

        progress = world.ledger.status(batch.batch_id)

        assert (progress.done_min, progress.done_max) == (3, 3)

    def test_of_an_empty_batch_is_exact(self, world: World) -> None:
        batch, _ = world.batch()

        progress = world.ledger.status(batch.batch_id)

        assert (progress.done_min, progress.done_max) == (0, 0)
        assert progress.batch == replace(batch, failed_more=False)

    @pytest.mark.parametrize(("n", "most"), [(12, 3), (16, 3), (17, 17), (65, 65)])
    def test_bounds_leave_room_for_what_lies_below_the_words_they_are_made_of(
        self, world: World, n: int, most: int
    ) -> None:
        """Only words of level 0 say exactly which items are done."""
        batch, (group,) = world.batch(n)
        world.ledger.mark([group[1], group[6], group[11]]).whole()

        progress = world.ledger.status(batch.batch_id)

        assert (progress.done_min, progress.done_max) == (3 if n <= 16 else 0, most)


class TestMissing:
    @pytest.mark.parametrize("limit", [1, 3, 1000])
    @pytest.mark.parametrize("budget", [150, 10_000])
    def test_pages_by_limit_and_by_budget(self, world: World, limit: int, budget: int) -> None:
        # Given holes over a wide tree, some of them apart within one word
        batch, (group,) = world.batch(2_000)
        holes = {3, 4, 5, 8, 10, 63, 64, 500, 777, 1_300, 1_301, 1_999}
        world.ledger.mark([item for i, item in enumerate(group) if i not in holes]).whole()

        # When all pages are read, Then all holes are listed once, in order
        assert listed(small(world, budget), batch, limit=limit) == sorted(holes)

    def test_cuts_what_is_longer_than_a_group_can_be(self) -> None:
        world = World(width=64)
        batch, groups = world.batch(2**32 - 1, 2**32 - 1)
        world.ledger.mark(
            [ItemRange(groups[0].prefix, 64, None), ItemRange(groups[1].prefix, 0, 2**32 - 128)]
        ).whole()

        assert sum(f.stop - f.start for f in world.ledger.missing(batch.batch_id).ranges) == 64 + 127

    @pytest.mark.parametrize("cursor", ["", "x", "-1", "+1", " 1", "\uff11", "1" * 14])
    def test_refuses_a_cursor_it_never_gave(self, world: World, cursor: str) -> None:
        batch, _ = world.batch(3)

        for call in (world.ledger.missing, world.ledger.verify):
            with pytest.raises(InvalidRequest, match="cursor"):
                call(batch.batch_id, cursor=cursor)

    def test_takes_the_cursor_of_the_last_item_that_a_batch_can_have(self, world: World) -> None:
        batch, _ = world.batch(3)

        assert ordinal_of(str(ids.MAX_ITEMS)) == ids.MAX_ITEMS
        for past in (3, ids.MAX_ITEMS):
            assert world.ledger.missing(batch.batch_id, cursor=str(past)).ranges == ()

    @pytest.mark.parametrize("limit", [0, limits.MAX_PAGE + 1])
    def test_refuses_a_limit_out_of_range(self, world: World, limit: int) -> None:
        batch, _ = world.batch(3)

        with pytest.raises(InvalidRequest, match=r"^limit must be a whole number from 1 to 1000, not"):
            world.ledger.missing(batch.batch_id, limit=limit)
        with pytest.raises(InvalidRequest, match=r"^limit must be a whole number from 1 to 1000, not"):
            world.ledger.failures(batch.batch_id, limit=limit)


class TestVerify:
    @pytest.mark.parametrize("closed", [False, True])
    def test_finds_and_repairs_a_finished_word_whose_parent_does_not_know(
        self, world: World, closed: bool
    ) -> None:
        batch, _ = world.batch(100, closed=closed)
        plant(world, batch, 0, 7, 0b1111)
        plant(world, batch, 1, 0, 0b1111)

        verdict = world.ledger.verify(batch.batch_id)

        assert verdict.disagreements == (
            "word 1/0 is done, but its parent's bit is pending",
            "word 0/7 is done, but its parent's bit is pending",
        )
        assert verdict.repaired
        assert world.word(batch, 1, 1) == 0b0111
        assert world.word(batch, 2, 0) == 0b1110
        after = world.ledger.verify(batch.batch_id)
        assert (after.pending, after.disagreements, after.repaired) == (80, (), False)

    def test_finds_and_repairs_a_batch_that_is_done_but_not_complete(self, world: World) -> None:
        batch, _ = world.batch(3, closed=True)
        plant(world, batch, 0, 0, 0b0111)

        with world.costing(writes=0):
            looked = world.ledger.verify(batch.batch_id, repair=False)
        verdict = world.ledger.verify(batch.batch_id)

        assert looked.disagreements == verdict.disagreements
        assert verdict.disagreements == ("every item is done, but the batch is not complete",)
        assert (looked.repaired, verdict.repaired, verdict.batch.state) == (False, True, State.COMPLETE)

    def test_reports_what_it_cannot_repair(self, world: World) -> None:
        batch, _ = world.batch(3, closed=True)
        world.ports.batches.end(batch.batch_id, State.COMPLETE, now=1, sources=(State.CLOSED,))

        verdict = world.ledger.verify(batch.batch_id)

        assert verdict.disagreements == ("the batch is complete, but 3 items are pending",)
        assert not verdict.repaired

    def test_goes_on_with_a_cursor(self, world: World) -> None:
        # Given disagreements far apart, and a small budget
        batch, _ = world.batch(4_000)
        for number in (1, 500, 999):
            plant(world, batch, 0, number, 0b1111)
        reader = small(world, 300)

        found: list[str] = []
        pending, pages, cursor = 0, 0, None
        while pages == 0 or cursor:
            verdict = reader.verify(batch.batch_id, cursor=cursor, repair=True)
            found += verdict.disagreements
            pending, pages, cursor = pending + verdict.pending, pages + 1, verdict.cursor

        assert pages > 1
        assert [text.split()[1] for text in found] == ["0/1", "0/500", "0/999"]
        assert pending == 4_000 - 12

    @pytest.mark.parametrize("end", ["cancel", "meet_deadline"])
    def test_lets_a_batch_be_that_ended_before_it_was_closed(self, world: World, end: str) -> None:
        """Its edge was never settled, and that is as it should be."""
        batch, (group,) = world.batch(
            6, deadline=world.clock.at + 5_000, on_deadline=OnDeadline.COMPLETE, lifetime=60
        )
        world.ledger.mark(list(group[4:])).whole()
        world.clock.advance(5_000)
        getattr(world.ledger, end)(batch.batch_id)

        verdict = world.ledger.verify(batch.batch_id)

        assert (verdict.pending, verdict.disagreements) == (4, ())
