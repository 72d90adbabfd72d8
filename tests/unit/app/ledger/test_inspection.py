"""Before a batch is ended, an item must be missing; what was lost on the way to it is repaired.

What happens when a batch's time is up.
"""

from __future__ import annotations

from collections.abc import Collection
from itertools import pairwise

import pytest

from fanin.app.ledger.reading import INSPECTED, Inspected
from fanin.app.ledger.reaper import EARLY_MS
from fanin.app.ledger.walk import CHUNK, Walk
from fanin.app.ports.words import Clear, WordKey
from fanin.domain.batch import Batch, Mode, OnDeadline, State
from fanin.domain.tree import Bits
from tests.unit.app.conftest import World


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


def test_an_inspection_reads_ten_thousand_words_as_the_architecture_says() -> None:
    assert INSPECTED == 10_000


class TestComplete:
    @pytest.mark.parametrize("level", [0, 1, 2])
    @pytest.mark.parametrize("where", ["first", "middle", "last"])
    def test_is_a_batch_that_lost_one_bit_of_a_parent(self, world: World, level: int, where: str) -> None:
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
    def test_is_an_empty_batch(self, world: World, mode: Mode) -> None:
        batch, _ = world.batch(mode=mode)
        world.ports.batches.close(batch.batch_id, now=world.clock.at)

        assert look(world, batch).batch.state is State.COMPLETE


class TestMissing:
    @pytest.mark.parametrize("n", [1, 4, 5, 65, 4**5])
    @pytest.mark.parametrize("done", ["none", "all but the last"])
    def test_costs_one_read_a_level_where_nothing_was_lost(self, world: World, n: int, done: str) -> None:
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
    def test_is_certain_and_all_that_is_on_the_way_to_it_is_repaired(
        self, world: World, missing: int
    ) -> None:
        batch, _ = world.batch(64, closed=True)
        clear(world, batch, *leaves(world, 64, but=missing))

        found = look(world, batch)

        assert (found.batch.state, found.certain) == (State.CLOSED, True)
        assert {(r.start, r.stop) for r in world.ledger.missing(batch.batch_id).ranges} == {
            (missing * 4, missing * 4 + 4)
        }
        visited = [number for level, number, *_ in Walk(world.ports, batch, budget=100) if level == 0]
        assert visited[0] == missing

    def test_is_not_asked_of_an_open_batch(self, world: World) -> None:
        batch, (group,) = world.batch(4)
        world.ledger.mark(list(group)).whole()

        with world.costing(reads=0, of="words.read"):
            assert look(world, batch) == Inspected(world.row(batch), certain=True)
        assert world.row(batch).state is State.OPEN

    @pytest.mark.parametrize("done", [0, 8])
    def test_is_said_of_the_row_as_it_is_now_whatever_the_process_remembers(
        self, world: World, done: int
    ) -> None:
        # Given a process that knows the batch as open
        batch, _ = world.batch(20)
        world.fresh().close(batch.batch_id)
        clear(world, batch, *[Bits(0, number, 0b1111) for number in range(done // 4)])

        found = world.ledger.inspect(world.row(batch))

        assert found == Inspected(world.row(batch), certain=True)
        assert found.batch.state is State.CLOSED

    def test_of_an_estimated_batch_is_what_was_not_counted(self, world: World) -> None:
        batch, _ = world.batch(4, closed=True, mode=Mode.ESTIMATED)

        assert look(world, batch) == Inspected(world.row(batch), certain=True)
        world.ports.batches.count(batch.batch_id, 4, activity=None)
        assert look(world, batch).batch.state is State.COMPLETE


class TestBudget:
    def test_goes_to_many_words_at_a_time_where_one_was_lost(
        self, world: World, monkeypatch: pytest.MonkeyPatch
    ) -> None:
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

    def test_ends_an_inspection_that_is_not_certain_and_the_next_goes_on(self, world: World) -> None:
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
def test_a_batch_ends_as_it_asked_to(
    world: World, on_deadline: OnDeadline, state: State, partial: bool, closed: bool
) -> None:
    batch = with_deadline(world, 5, on_deadline=on_deadline, closed=closed)
    world.clock.advance(MINUTE)

    ended = world.fresh().meet_deadline(batch.batch_id)

    assert ended == world.row(batch)
    assert (ended.state, ended.partial, ended.ended_at) == (state, partial, world.clock.at)


@pytest.mark.parametrize("mode", Mode)
def test_a_batch_that_is_done_after_all_is_complete_and_not_partial(world: World, mode: Mode) -> None:
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
def test_an_alarm_may_be_early_by_what_clocks_differ(world: World, early: int, state: State) -> None:
    batch = with_deadline(world, 5)
    world.clock.advance(MINUTE - early)

    ended = world.ledger.meet_deadline(batch.batch_id)

    assert ended is not None
    assert ended.state is state


def test_an_alarm_for_an_ended_batch_one_without_deadline_or_none_changes_nothing(world: World) -> None:
    ended, (endless, _) = with_deadline(world, 5), world.batch(5)
    world.ledger.cancel(ended.batch_id)
    world.clock.advance(MINUTE)

    with world.costing(writes=0):
        assert world.ledger.meet_deadline(ended.batch_id) == world.row(ended)
        assert world.ledger.meet_deadline(endless.batch_id) == endless
        assert world.ledger.meet_deadline(5) is None
