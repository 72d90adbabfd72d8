"""The bit picture: each node of a tree as a model of its items has it, from few rows."""

from collections.abc import Iterator

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from fanin.app.ledger.picture import MOST_ROWS
from fanin.app.ports.parts import Redriven
from fanin.app.ports.words import ItemClaim, WordKey
from fanin.domain.batch import Batch, Mode, OnFailure, State
from fanin.domain.ids import MAX_ITEMS, Group
from fanin.domain.marks import ItemRange
from fanin.domain.picture import Cell, ItemState, Picture
from fanin.domain.tree import Tree
from fanin.errors import BatchNotFound, InvalidRequest
from tests.unit.app.conftest import Crash, World

PENDING, DONE, FAILED, HELD, LEASED = (
    ItemState.PENDING, ItemState.DONE, ItemState.FAILED, ItemState.HELD, ItemState.LEASED,
)  # fmt: skip


def lease(world: World, batch: Batch, ordinal: int, *, seconds: int) -> int:
    """Take a lease on an item behind the ledger's back; returns when it ends, seconds."""
    now, (number, position) = world.clock.now() // 1000, divmod(ordinal, world.ports.tree.width)
    key = WordKey(batch.batch_id, 0, number)
    world.ports.words.claim([ItemClaim(key, position, now, now + seconds, batch.expires_at)])
    return now + seconds


def nodes(tree: Tree, n: int) -> Iterator[tuple[int, int]]:
    """Level and number of every word of a tree."""
    for level in range(tree.root_level(n) + 1):
        for number in range(tree.last(level, n) + 1):
            yield level, number


def states(picture: Picture) -> list[ItemState]:
    return [item.state for item in picture.items]


class Reads:
    """Counts the rows that pictures of a world read, and in how many requests."""

    def __init__(self, world: World, monkeypatch: pytest.MonkeyPatch) -> None:
        self._world = world
        self.listed = 0
        self.requests: list[str] = []
        listing, words = world.memory.parts.notes_between, world.memory.words
        reads = {"read_rows": words.read_rows, "read_tallied": words.read_tallied}

        def notes_between(*args: int, **limit: int) -> object:
            found = listing(*args, **limit)
            self.listed += max(1, len(found)) - 1  # a listing counts as one access in memory
            return found

        monkeypatch.setattr(world.memory.parts, "notes_between", notes_between)
        for name, read in reads.items():

            def asked(keys: object, name: str = name, read: object = read) -> object:
                self.requests.append(name)
                return read(keys)

            monkeypatch.setattr(words, name, asked)

    def of(self, batch: Batch, **node: int) -> tuple[Picture, int]:
        """A picture by a process that knows nothing, and how many rows it read."""
        self.listed, before = 0, self._world.accesses.reads.total()
        self.requests.clear()
        picture = self._world.fresh().picture(batch.batch_id, **node)
        return picture, self._world.accesses.reads.total() - before + self.listed


def test_cells_show_the_level_below_the_root_by_default(world):
    # Given 70 items, in words of four bits, of which the first 20 and item 64 are done
    batch, (group,) = world.batch(70)
    world.ledger.mark([group[64], ItemRange(group.prefix, 0, 20)]).whole()

    picture = world.ledger.picture(batch.batch_id)
    # Then the root on level 3 has two cells: one of 64 items, and the rest
    assert picture == world.ledger.picture(batch.batch_id, level=3, number=0)
    assert (picture.root_level, picture.size, picture.start, picture.stop) == (3, 70, 0, 70)
    assert [(one.number, one.start, one.stop, one.parts) for one in picture.cells] == [
        (0, 0, 64, 4),
        (1, 64, 70, 1),
    ]
    assert [(one.done_min, one.done_max) for one in picture.cells] == [(16, 64), (0, 6)]
    assert [one.word for one in picture.cells] == [0b1110, 0b1]
    assert picture.items == ()


class TestItems:
    def test_are_leased_until_the_lease_is_over_or_they_are_done(self, world):
        batch, (group,) = world.batch(4)
        until = lease(world, batch, 1, seconds=30)
        lease(world, batch, 2, seconds=30)
        world.ledger.mark([group[2]]).whole()

        picture = world.ledger.picture(batch.batch_id)

        assert (picture.level, picture.root_level, picture.cells) == (0, 0, ())
        assert states(picture) == [PENDING, LEASED, DONE, PENDING]
        assert [item.leased_until for item in picture.items] == [None, until * 1000, None, None]
        world.clock.advance(until * 1000 - world.clock.now() - 1)
        assert states(world.ledger.picture(batch.batch_id))[1] is LEASED
        world.clock.advance(1)
        assert world.ledger.picture(batch.batch_id).items[1].leased_until is None
        assert states(world.ledger.picture(batch.batch_id))[1] is PENDING

    def test_are_held_until_they_are_redriven_released_or_done(self, world):
        batch, (group,) = world.batch(16, on_failure=OnFailure.HOLD)
        world.fail(*group[4:8], group[9])
        lease(world, batch, 7, seconds=30)
        world.ledger.mark([group[4]]).whole()
        notes = world.ports.parts.notes(batch.batch_id, [5])
        world.ports.parts.mark_redriven(
            batch.batch_id, {5: Redriven("r", notes[5].failed_at)}, {}, expires_at=batch.expires_at
        )

        picture = world.ledger.picture(batch.batch_id, level=0, number=1)

        assert states(picture) == [DONE, PENDING, HELD, HELD]
        assert not picture.held_more
        assert picture.items[3].leased_until is not None
        world.ledger.release(batch.batch_id)
        assert states(world.ledger.picture(batch.batch_id, level=0, number=1)) == [
            DONE, PENDING, FAILED, FAILED,
        ]  # fmt: skip


class TestNodes:
    @pytest.mark.parametrize(
        ("node", "said"),
        [
            ({"level": 4}, "level must be a whole number from 0 to 3, not 4"),
            ({"level": -1}, "level must be a whole number from 0 to 3, not -1"),
            (
                {"level": 2, "number": 5},
                "number of a word of level 2 must be a whole number from 0 to 1, not 5",
            ),
            ({"level": 0, "number": -1}, "number of a word of level 0 must be a whole number from 0 to 17"),
            ({"number": 1}, "number of a word of level 3 must be a whole number from 0 to 0, not 1"),
        ],
    )
    def test_outside_of_the_tree_are_refused(self, world, node, said):
        batch, _ = world.batch(70)

        with pytest.raises(InvalidRequest, match=said):
            world.ledger.picture(batch.batch_id, **node)

    def test_of_an_estimated_batch_do_not_exist(self, world):
        batch, _ = world.batch(70, mode=Mode.ESTIMATED)

        with pytest.raises(InvalidRequest, match="is estimated: it counts items, but does not know which"):
            world.ledger.picture(batch.batch_id)
        with pytest.raises(BatchNotFound):
            world.ledger.picture(batch.batch_id + 1)


class TestRaces:
    def test_what_is_done_between_two_reads_is_shown_or_was_pending_at_the_beginning(self, world):
        # Given a range that is marked high in the tree after the words above were read
        batch, (group,) = world.batch(256)
        world.ledger.mark([group[16]]).whole()
        span = ItemRange(group.prefix, 0, 64)
        world.at("words.read_rows", "after", lambda: None)
        world.at("words.read_rows", "after", lambda: world.fresh().mark([span]).whole())
        # When a picture is read meanwhile, and another one afterwards
        during = world.ledger.picture(batch.batch_id, level=2, number=0)
        after = world.ledger.picture(batch.batch_id, level=2, number=0)
        # Then the first shows what was done when it began, and the second all
        assert world.happened
        assert [(one.done_min, one.done_max) for one in during.cells] == [(0, 16)] * 4
        assert [(one.done_min, one.done_max) for one in after.cells] == [(16, 16)] * 4

    def test_a_batch_that_outgrows_its_root_meanwhile_is_shown_as_it_was(self, world):
        batch, (group,) = world.batch(4)

        def grow() -> None:
            other = world.fresh().add(batch.batch_id, 60)
            world.fresh().mark([ItemRange(group.prefix), ItemRange(other.prefix, 0, 12)]).whole()

        world.at("batches.read", "after", grow)

        picture = world.ledger.picture(batch.batch_id)

        assert world.happened
        assert (picture.size, picture.root_level, len(picture.items)) == (4, 0, 4)
        assert set(states(world.ledger.picture(batch.batch_id, level=0))) == {DONE}


class TestRows:
    @pytest.mark.parametrize("n", [1, 64, 65, 64**2 + 1, MAX_ITEMS])
    @pytest.mark.parametrize("holds", [False, True])
    def test_are_at_most_66_on_each_level(self, monkeypatch, n, holds):
        # Given a batch of any size, of which something is done everywhere, and everything else failed
        world = World(width=64)
        batch, groups = world.batch(
            *[min(n - at, 2**32 - 1) for at in range(0, n, 2**32 - 1)],
            on_failure=OnFailure.HOLD if holds else OnFailure.DONE,
        )
        last = groups[-1].upto
        world.ledger.mark([ItemRange(groups[-1].prefix, last // 3, max(1, last // 2))]).whole()
        world.fail(*groups[0][:64], *groups[-1][max(0, last - 64) : last - 1])
        reads = Reads(world, monkeypatch)

        for level in range(batch_root := world.ports.tree.root_level(n) + 1):
            for number in {0, world.ports.tree.last(level, n) // 2, world.ports.tree.last(level, n)}:
                picture, rows = reads.of(batch, level=level, number=number)
                # Then a picture takes few rows, in two requests, and leaves few parts unread
                assert rows <= MOST_ROWS
                assert reads.requests == (["read_rows", "read_tallied"] if level else ["read_rows"])
                unread = [one for one in picture.cells if one.word is None]
                assert len(unread) == max(0, len(picture.cells) - (65 - (batch_root - level)))
                step = world.ports.tree.span(level - 1)
                parts = len(range(picture.start, picture.stop, step))
                assert len(picture.cells) + len(picture.items) == parts

    def test_are_spent_on_what_is_pending_first(self, monkeypatch):
        # Given a node three levels below the root, of which all parts but the last five are done
        world = World(width=64)
        batch, (group,) = world.batch(64**4 + 1)
        world.ledger.mark([ItemRange(group.prefix, 0, 64**2 - 64 * 5)]).whole()
        world.ledger.mark([group[64**2 - 1]]).whole()

        picture, rows = Reads(world, monkeypatch).of(batch, level=1, number=0)
        # Then the three that are not read are done, and shown as such from their bit alone
        assert rows == 66
        unread = [one for one in picture.cells if one.word is None]
        assert [one.number for one in unread] == [56, 57, 58]
        assert {(one.done_min, one.done_max, one.failed_more) for one in unread} == {(64, 64, True)}
        assert picture.cells[63].word == 2**63 - 1

    def test_that_were_not_read_leave_wide_bounds(self, monkeypatch):
        world = World(width=64)
        batch, (group,) = world.batch(64**4 + 1)
        world.ledger.mark([group[64**2 - 1]]).whole()

        picture, _ = Reads(world, monkeypatch).of(batch, level=1, number=0)

        assert picture.cells[63] == Cell(63, 64 * 63, 64**2, 64, 0, 64)

    def test_of_held_items_end_with_the_budget(self, monkeypatch):
        # Given a word with 64 held items in a tree of three levels
        world = World(width=64)
        batch, (group,) = world.batch(64**3, on_failure=OnFailure.HOLD)
        world.fail(*group[64:128])

        picture, rows = Reads(world, monkeypatch).of(batch, level=0, number=1)
        # Then as many are shown as held as rows are left for, and the picture says that there may be more
        assert rows <= MOST_ROWS
        assert states(picture) == [HELD] * 20 + [PENDING] * 44
        assert picture.held_more


class Model:
    """Every item of a batch by brute force, from the path of its bits."""

    def __init__(self, world: World, batch: Batch) -> None:
        self.world, self.batch, self.tree = world, batch, world.ports.tree
        self.n = world.row(batch).items

    def done(self, ordinal: int) -> bool:
        number, position = divmod(ordinal, self.tree.width)
        marks = [(0, number, 1 << position)]
        marks += [(mark.level, mark.number, mark.mask) for mark in self.tree.ancestors(number, self.n)]
        return any(not self.world.word(self.batch, level, at) & mask for level, at, mask in marks)

    def failed(self, ordinal: int) -> bool:
        return ordinal in self.world.ledger.failed_among(self.batch.batch_id, [ordinal])

    def check(self) -> None:
        """Compare every node with what is known of its items."""
        done = [self.done(ordinal) for ordinal in range(self.n)]
        failed = [self.failed(ordinal) for ordinal in range(self.n)]
        row = self.world.row(self.batch)
        well = row.all_done and not row.failed and not row.failed_more
        for level, number in nodes(self.tree, self.n):
            picture = self.world.ledger.picture(self.batch.batch_id, level=level, number=number)
            assert (picture.start, picture.stop) == (
                number * self.tree.span(level),
                min(self.n, (number + 1) * self.tree.span(level)),
            )
            for item in picture.items:
                assert item.state.done == done[item.ordinal]
                assert (item.state is FAILED) == (failed[item.ordinal] and done[item.ordinal])
            for one in picture.cells:
                assert (one.word is None) == well  # the row of the batch says it all, so no word is read
                self._check_cell(level - 1, one, done[one.start : one.stop], failed[one.start : one.stop])
            assert [at for one in picture.cells for at in range(one.start, one.stop)] + [
                item.ordinal for item in picture.items
            ] == list(range(picture.start, picture.stop))

    def _check_cell(self, level: int, one: Cell, done: list[bool], failed: list[bool]) -> None:
        assert one.done_min <= sum(done) <= one.done_max
        assert level > 0 or one.done_min == one.done_max
        assert one.failed <= sum(failed)
        assert one.failed_more or one.failed == sum(failed)
        if one.word is None:
            assert one.done_min == one.done_max
            assert not one.failed_more
            return
        assert one.word >> one.parts == 0
        step = self.tree.span(level - 1)
        for at in range(one.parts):
            below = done[at * step : (at + 1) * step]
            assert one.word >> at & 1 or all(below)
            assert level > 0 or bool(one.word >> at & 1) != below[0]


@st.composite
def deeds(draw: st.DrawFn) -> list[tuple[str, int, int]]:
    """What happens to the items of a batch, whose numbers are taken modulo its size."""
    kind = st.sampled_from(["ack", "ack", "fail", "range", "range", "lease", "add", "close", "release"])
    return draw(st.lists(st.tuples(kind, st.integers(0, 99), st.integers(1, 40)), max_size=25))


def do(world: World, batch: Batch, groups: list[Group], deed: tuple[str, int, int]) -> None:
    kind, at, length = deed
    n = world.row(batch).items
    ids = [item for group in groups for item in group]
    group = groups[at % len(groups)]
    start = at % group.upto
    match kind:
        case "ack":
            world.ledger.mark([ids[at % n]]).whole()
        case "fail":
            world.fail(ids[at % n])
        case "range":
            world.ledger.mark([ItemRange(group.prefix, start, min(group.upto, start + length))]).whole()
        case "lease":
            lease(world, batch, at % n, seconds=length)
        case "add" if world.row(batch).state is State.OPEN:
            groups.append(world.ledger.add(batch.batch_id, length))
        case "close":
            world.ledger.close(batch.batch_id)
        case "release" if batch.holds:
            world.ledger.release(batch.batch_id)


EACH_DONE = [("add", 0, 1), ("ack", 0, 1), ("ack", 1, 1), ("ack", 2, 1), ("close", 0, 1)]
"""Two items and a third, each acknowledged: the row then says that all are done and that none failed."""


@settings(max_examples=60)
@example(2, 2, False, None, EACH_DONE)
@example(2, 2, False, None, [("fail", 1, 1), *EACH_DONE])
@given(st.integers(2, 4), st.integers(1, 100), st.booleans(), st.none() | st.integers(0, 40), deeds())
def test_every_node_agrees_with_its_items_also_after_a_crash(width, n, holds, dies_after, done):
    # Given a batch to which anything happens, and a process that may die after one of its writes
    world = World(width)
    batch, groups = world.batch(n, on_failure=OnFailure.HOLD if holds else OnFailure.DONE)
    if dies_after is not None:
        world.crash_at("words.clear", "after", after=dies_after)
    for deed in done:
        try:
            do(world, batch, groups, deed)
        except Crash:
            world.ledger = world.fresh()
    # Then each node agrees with the model
    Model(world, batch).check()
    # And the root agrees with the status, which reads the same words
    status = world.ledger.status(batch.batch_id)
    root = world.ledger.picture(batch.batch_id)
    assert (root.done_min, root.done_max) == (status.done_min, status.done_max)
    # And what is held is what is listed as held
    held = {one.ordinal for one in world.ledger.failures(batch.batch_id).failures if one.held}
    numbers = range(world.ports.tree.last(0, root.size) + 1)
    leaves = [world.ledger.picture(batch.batch_id, level=0, number=number) for number in numbers]
    assert {item.ordinal for leaf in leaves for item in leaf.items if item.state is HELD} == held
