"""Reading the tree: bounds, exact counts, what is missing, and whether all levels agree."""

from collections.abc import Collection
from dataclasses import replace
from itertools import pairwise

import pytest

from fanin.app.ledger.reading import Inspected, Reading, ordinal_of
from fanin.app.ledger.reaper import EARLY_MS
from fanin.app.ledger.walk import CHUNK, Walk
from fanin.app.ports.words import Clear, WordKey
from fanin.domain import ids, limits
from fanin.domain.batch import Batch, Mode, OnDeadline, State
from fanin.domain.marks import ItemRange
from fanin.domain.tree import Bits
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
    def test_estimates_what_the_batch_has_cost_and_writes_nothing_for_it(self, world):
        # Given a batch that is half done
        batch, (group,) = world.batch(500)
        world.ledger.mark(list(group[:250])).whole()
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
    def test_takes_the_prices_of_its_region_if_they_are_known(self, world, region, taken):
        batch, _ = world.batch(10)
        world.ports = replace(world.ports, defaults=replace(world.ports.defaults, region=region))

        cost = world.fresh().status(batch.batch_id).cost

        assert cost is not None
        assert cost.region == taken

    def test_has_bounds_around_the_truth(self, world):
        batch, (group,) = world.batch(100)
        for done in range(0, 100, 7):
            world.ledger.mark([group[done], ItemRange(group.prefix, 0, done + 1)]).whole()

            bounds = world.ledger.status(batch.batch_id)
            exact = world.ledger.status(batch.batch_id, exact=True)

            assert bounds.done_min <= done + 1 <= bounds.done_max
            assert exact.done_min == exact.done_max == done + 1

    def test_falls_back_to_bounds_when_an_exact_count_costs_too_much(self, world):
        batch, (group,) = world.batch(1_000)
        world.ledger.mark([group[i] for i in range(0, 1_000, 2)]).whole()

        progress = small(world, 200).status(batch.batch_id, exact=True)

        assert not progress.exact
        assert progress.done_min <= 500 <= progress.done_max

    def test_of_an_estimated_batch_is_its_count(self, world):
        batch, (group,) = world.batch(3, mode=Mode.ESTIMATED)
        world.ledger.mark([group[0], group[0], group[0], group[0]]).whole()

        progress = world.ledger.status(batch.batch_id)

        assert (progress.done_min, progress.done_max) == (3, 3)

    def test_of_an_empty_batch_is_exact(self, world):
        batch, _ = world.batch()

        progress = world.ledger.status(batch.batch_id)

        assert (progress.done_min, progress.done_max) == (0, 0)
        assert progress.batch == replace(batch, failed_more=False)

    @pytest.mark.parametrize(("n", "most"), [(12, 3), (16, 3), (17, 17), (65, 65)])
    def test_bounds_leave_room_for_what_lies_below_the_words_they_are_made_of(self, world, n, most):
        """Only words of level 0 say exactly which items are done."""
        batch, (group,) = world.batch(n)
        world.ledger.mark([group[1], group[6], group[11]]).whole()

        progress = world.ledger.status(batch.batch_id)

        assert (progress.done_min, progress.done_max) == (3 if n <= 16 else 0, most)

    def test_bounds_are_made_of_the_root_and_all_words_below_it(self):
        world = World(width=64)
        batch, (group,) = world.batch(64**3)
        world.ledger.mark([ItemRange(group.prefix, 64**3 - 128, 64**3 - 64)]).whole()
        with world.costing(reads=65, of="words.read"):
            assert world.ledger.status(batch.batch_id).done_min == 64


class TestMissing:
    @pytest.mark.parametrize("limit", [1, 3, 1000])
    @pytest.mark.parametrize("budget", [150, 10_000])
    def test_pages_by_limit_and_by_budget(self, world, limit, budget):
        # Given holes over a wide tree, some of them apart within one word
        batch, (group,) = world.batch(2_000)
        holes = {3, 4, 5, 8, 10, 63, 64, 500, 777, 1_300, 1_301, 1_999}
        world.ledger.mark([item for i, item in enumerate(group) if i not in holes]).whole()
        # When all pages are read, Then all holes are listed once, in order
        assert listed(small(world, budget), batch, limit=limit) == sorted(holes)

    def test_cuts_what_is_longer_than_a_group_can_be(self):
        world = World(width=64)
        batch, groups = world.batch(2**32 - 1, 2**32 - 1)
        world.ledger.mark(
            [ItemRange(groups[0].prefix, 64, None), ItemRange(groups[1].prefix, 0, 2**32 - 128)]
        ).whole()

        assert sum(f.stop - f.start for f in world.ledger.missing(batch.batch_id).ranges) == 64 + 127

    @pytest.mark.parametrize("cursor", ["", "x", "-1", "+1", " 1", "\uff11", "1" * 14])
    def test_refuses_a_cursor_it_never_gave(self, world, cursor):
        batch, _ = world.batch(3)

        for call in (world.ledger.missing, world.ledger.verify):
            with pytest.raises(InvalidRequest, match="cursor"):
                call(batch.batch_id, cursor=cursor)

    def test_takes_the_cursor_of_the_last_item_that_a_batch_can_have(self, world):
        batch, _ = world.batch(3)

        assert ordinal_of(str(ids.MAX_ITEMS)) == ids.MAX_ITEMS
        for past in (3, ids.MAX_ITEMS):
            assert world.ledger.missing(batch.batch_id, cursor=str(past)).ranges == ()

    @pytest.mark.parametrize("limit", [0, limits.MAX_PAGE + 1])
    def test_refuses_a_limit_out_of_range(self, world, limit):
        batch, _ = world.batch(3)

        with pytest.raises(InvalidRequest, match=r"^limit must be a whole number from 1 to 1000, not"):
            world.ledger.missing(batch.batch_id, limit=limit)
        with pytest.raises(InvalidRequest, match=r"^limit must be a whole number from 1 to 1000, not"):
            world.ledger.failures(batch.batch_id, limit=limit)


class TestVerify:
    @pytest.mark.parametrize("closed", [False, True])
    def test_finds_and_repairs_a_finished_word_whose_parent_does_not_know(self, world, closed):
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

    def test_finds_and_repairs_a_batch_that_is_done_but_not_complete(self, world):
        batch, _ = world.batch(3, closed=True)
        plant(world, batch, 0, 0, 0b0111)

        with world.costing(writes=0):
            looked = world.ledger.verify(batch.batch_id, repair=False)
        verdict = world.ledger.verify(batch.batch_id)

        assert looked.disagreements == verdict.disagreements
        assert verdict.disagreements == ("every item is done, but the batch is not complete",)
        assert (looked.repaired, verdict.repaired, verdict.batch.state) == (False, True, State.COMPLETE)

    def test_reports_what_it_cannot_repair(self, world):
        batch, _ = world.batch(3, closed=True)
        world.ports.batches.end(batch.batch_id, State.COMPLETE, now=1, sources=(State.CLOSED,))

        verdict = world.ledger.verify(batch.batch_id)

        assert verdict.disagreements == ("the batch is complete, but 3 items are pending",)
        assert not verdict.repaired

    def test_goes_on_with_a_cursor(self, world):
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
    def test_lets_a_batch_be_that_ended_before_it_was_closed(self, world, end):
        """Its edge was never settled, and that is as it should be."""
        batch, (group,) = world.batch(
            6, deadline=world.clock.at + 5_000, on_deadline=OnDeadline.COMPLETE, lifetime=60
        )
        world.ledger.mark(list(group[4:])).whole()
        world.clock.advance(5_000)
        getattr(world.ledger, end)(batch.batch_id)

        verdict = world.ledger.verify(batch.batch_id)

        assert (verdict.pending, verdict.disagreements) == (4, ())


# Before a batch is ended, an item must be missing; what was lost on the way to it is repaired.


def look(world: World, batch: Batch, budget: int = 10_000) -> Inspected:
    return world.fresh().inspect(world.row(batch), budget=budget)


def clear(world: World, batch: Batch, *marks: tuple[int, int, int]) -> None:
    """Clear bits, as a process does that dies before it writes anything above."""
    world.ports.words.clear(
        [Clear(WordKey(batch.batch_id, *mark[:2]), mark[2], batch.expires_at) for mark in marks]
    )


def leaves(world: World, n: int, *, but: int | None = None) -> list[Bits]:
    """The bits of n items on level 0, those of one word left out."""
    masks = world.ports.tree.masks(range(n))
    return [Bits(0, number, mask) for number, mask in masks.items() if number != but]


class TestComplete:
    @pytest.mark.parametrize("level", [0, 1, 2])
    @pytest.mark.parametrize("where", ["first", "middle", "last"])
    def test_is_a_batch_that_lost_one_bit_of_a_parent(self, world, level, where):
        # Given 200 items, all done, and one word whose parent was not told, nor any word above that
        n, tree = 200, world.ports.tree
        batch, _ = world.batch(n, closed=True)
        number = {"first": 0, "middle": tree.last(level, n) // 2, "last": tree.last(level, n)}[where]
        masks = {
            (at, word): tree.full & ~tree.residue(at, word, n)
            for at in range(tree.root_level(n) + 1)
            for word in range(tree.last(at, n) + 1)
        }
        for _ in range(level, tree.root_level(n)):
            level, number, bit = tree.parent(level, number)
            masks[level, number] &= ~bit
        clear(world, batch, *[(*word, mask) for word, mask in masks.items() if mask])
        assert world.ledger.verify(batch.batch_id, repair=False).pending == 0

        assert look(world, batch).batch.state is State.COMPLETE

    @pytest.mark.parametrize("mode", Mode)
    def test_is_an_empty_batch(self, world, mode):
        batch, _ = world.batch(mode=mode)
        world.ports.batches.close(batch.batch_id, now=world.clock.at)

        assert look(world, batch).batch.state is State.COMPLETE


class TestMissingInspection:
    @pytest.mark.parametrize("n", [1, 4, 5, 65, 4**5])
    @pytest.mark.parametrize("done", ["none", "all but the last"])
    def test_costs_one_read_a_level_where_nothing_was_lost(self, world, n, done):
        batch, (group,) = world.batch(n, closed=True)
        world.ledger.mark([] if done == "none" else list(group[: n - 1])).whole()

        with (
            world.costing(writes=0),
            world.costing(reads=world.ports.tree.root_level(n) + 1, of="words.read"),
        ):
            found = look(world, batch)

        assert found == Inspected(world.row(batch), certain=True)
        assert found.batch.state is State.CLOSED

    @pytest.mark.parametrize("missing", [0, 7, 15])
    def test_is_certain_and_all_that_is_on_the_way_to_it_is_repaired(self, world, missing):
        batch, _ = world.batch(64, closed=True)
        clear(world, batch, *leaves(world, 64, but=missing))

        found = look(world, batch)

        assert (found.batch.state, found.certain) == (State.CLOSED, True)
        assert {(r.start, r.stop) for r in world.ledger.missing(batch.batch_id).ranges} == {
            (missing * 4, missing * 4 + 4)
        }
        visited = [number for level, number, *_ in Walk(world.ports, batch, budget=100) if level == 0]
        assert visited[0] == missing

    def test_is_not_asked_of_an_open_batch(self, world):
        batch, (group,) = world.batch(4)
        world.ledger.mark(list(group)).whole()

        with world.costing(reads=0, of="words.read"):
            assert look(world, batch) == Inspected(world.row(batch), certain=True)
        assert world.row(batch).state is State.OPEN

    @pytest.mark.parametrize("done", [0, 8])
    def test_is_said_of_the_row_as_it_is_now_whatever_the_process_remembers(self, world, done):
        # Given a process that knows the batch as open
        batch, _ = world.batch(20)
        world.fresh().close(batch.batch_id)
        clear(world, batch, *[Bits(0, number, 0b1111) for number in range(done // 4)])

        found = world.ledger.inspect(world.row(batch))

        assert found == Inspected(world.row(batch), certain=True)
        assert found.batch.state is State.CLOSED

    def test_of_an_estimated_batch_is_what_was_not_counted(self, world):
        batch, _ = world.batch(4, closed=True, mode=Mode.ESTIMATED)

        assert look(world, batch) == Inspected(world.row(batch), certain=True)
        world.ports.batches.count(batch.batch_id, 4, activity=None)
        assert look(world, batch).batch.state is State.COMPLETE


class TestBudget:
    def test_goes_to_many_words_at_a_time_where_one_was_lost(self, world, monkeypatch):
        batch, _ = world.batch(4**5, closed=True)
        clear(world, batch, *leaves(world, 4**5))
        read, sizes = world.ports.words.read_tallied, list[int]()

        def reading(keys: Collection[WordKey]) -> object:
            sizes.append(len(keys))
            return read(keys)

        monkeypatch.setattr(world.ports.words, "read_tallied", reading)
        found = world.fresh().inspect(world.row(batch))

        assert found.batch.state is State.COMPLETE
        assert sizes[:5] == [1] * 5
        assert sum(sizes) == 1 + 4 + 16 + 64 + 256
        assert len(sizes) < 100

    def test_ends_an_inspection_that_is_not_certain_and_the_next_goes_on(self, world):
        # Given many words that nobody carried up
        n = 4**6
        batch, _ = world.batch(n, closed=True)
        clear(world, batch, *leaves(world, n))
        reads = [world.accesses.reads["words.read"]]
        looks: list[Inspected] = []

        while not looks or not looks[-1].certain:
            looks.append(look(world, batch, budget=300))
            reads.append(world.accesses.reads["words.read"])
        # Then each inspection reads what it may, ends nothing, and they come to an end
        assert 2 < len(looks) < 10
        assert {found.batch.state for found in looks[:-1]} == {State.CLOSED}
        assert looks[-1].batch.state is State.COMPLETE
        assert max(b - a for a, b in pairwise(reads)) < 300 + 2 * CHUNK


MINUTE = 60_000


def with_deadline(world: World, *counts: int, **request: object) -> Batch:
    batch, _ = world.batch(*counts, deadline=world.clock.at + MINUTE, **request)
    return batch


@pytest.mark.parametrize("closed", [False, True])
@pytest.mark.parametrize(
    ("on_deadline", "state", "partial"),
    [(OnDeadline.TIME_OUT, State.TIMED_OUT, False), (OnDeadline.COMPLETE, State.COMPLETE, True)],
)
def test_a_batch_ends_as_it_asked_to(world, on_deadline, state, partial, closed):
    batch = with_deadline(world, 5, on_deadline=on_deadline, closed=closed)
    world.clock.advance(MINUTE)

    ended = world.fresh().meet_deadline(batch.batch_id)

    assert ended == world.row(batch)
    assert (ended.state, ended.partial, ended.ended_at) == (state, partial, world.clock.at)


@pytest.mark.parametrize("mode", Mode)
def test_a_batch_that_is_done_after_all_is_complete_and_not_partial(world, mode):
    # Given a closer that died before it could complete the batch
    batch, (group,) = world.batch(3, deadline=world.clock.at + MINUTE, mode=mode)
    world.ledger.mark(list(group)).whole()
    with world.dying("batches.close", "after"):
        world.ledger.close(batch.batch_id)
    world.clock.advance(MINUTE)

    ended = world.fresh().meet_deadline(batch.batch_id)

    assert ended is not None
    assert (ended.state, ended.partial) == (State.COMPLETE, False)


@pytest.mark.parametrize(("early", "state"), [(EARLY_MS, State.TIMED_OUT), (EARLY_MS + 1, State.OPEN)])
def test_an_alarm_may_be_early_by_what_clocks_differ(world, early, state):
    batch = with_deadline(world, 5)
    world.clock.advance(MINUTE - early)

    ended = world.ledger.meet_deadline(batch.batch_id)

    assert ended is not None
    assert ended.state is state


def test_an_alarm_for_an_ended_batch_one_without_deadline_or_none_changes_nothing(world):
    ended, (endless, _) = with_deadline(world, 5), world.batch(5)
    world.ledger.cancel(ended.batch_id)
    world.clock.advance(MINUTE)

    with world.costing(writes=0):
        assert world.ledger.meet_deadline(ended.batch_id) == world.row(ended)
        assert world.ledger.meet_deadline(endless.batch_id) == endless
        assert world.ledger.meet_deadline(5) is None
