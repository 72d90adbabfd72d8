"""Settling: whoever dies, the next who comes by carries finished words up to the verdict."""

from collections import defaultdict
from collections.abc import Callable, Sequence

import pytest

from fanin.app.ledger.known_batches import all_of
from fanin.app.ports.words import Clear, WordKey
from fanin.domain.batch import CloseWhen, State
from fanin.domain.marks import Failure, ItemRange
from fanin.domain.tree import Bits
from fanin.errors import BatchGone, ServiceUnavailable, Throttled
from tests.unit.app.conftest import World


def die_while_acking(world: World, items: list[str], *, writes: int) -> None:
    """An acknowledgement that dies after so many of its writes."""
    with world.dying("words.clear", "after", after=writes - 1):
        world.fresh().mark(items).whole()
    assert world.happened


class TestOrder:
    def test_a_range_that_meets_done_items_reads_the_words_above_before_it_writes_them(self, world):
        """Else the write of each level would be refused, and sent again."""
        _, (group,) = world.batch(256, closed=True)
        world.ledger.mark([ItemRange(group.prefix, 1, 255)]).whole()
        refused = world.accesses.refused["words.clear"]

        with world.costing(writes=2, of="words.clear"):
            world.fresh().mark([ItemRange(group.prefix, 1, 256)]).whole()

        assert world.accesses.refused["words.clear"] - refused == 1

    def test_a_request_that_meets_done_items_in_one_word_only_reads_the_words_above_too(self, world):
        # Given items 2 to 7 done, so that the range 1 to 16 meets a done bit in the words 0 of level 0 and
        # of level 1, and none in the other word of level 0
        _, (group,) = world.batch(64)
        world.ledger.mark([ItemRange(group.prefix, 2, 8)]).whole()
        refused = world.accesses.refused["words.clear"]

        world.ledger.mark([ItemRange(group.prefix, 1, 17)]).whole()
        # Then only the write of word 0 of level 0 was refused
        assert world.accesses.refused["words.clear"] - refused == 1

    def test_parents_are_written_once_for_a_range_and_for_the_children_that_it_finishes(self, world):
        _, (group,) = world.batch(64, closed=True)
        world.ledger.mark([group[0]]).whole()

        with world.costing(writes=3, of="words.clear"):
            world.ledger.mark([ItemRange(group.prefix, 1, 64)]).whole()

    @pytest.mark.parametrize("n", [5, 61, 64])
    def test_closing_once_more_writes_no_word(self, world, n):
        batch, (group,) = world.batch(n, closed=True)
        world.ledger.mark(list(group[1:])).whole()

        with world.costing(writes=0, of="words.clear"):
            world.fresh().close(batch.batch_id)


class TestRace:
    @pytest.mark.parametrize("n", [1, 4, 5, 17, 65])
    def test_a_close_just_after_the_last_write_is_seen(self, world, n):
        """The closer has read the edge before the write, so only the acker can complete the batch."""
        batch, (group,) = world.batch(n)
        world.ledger.mark(list(group[:-1])).whole()
        world.at("words.clear", "before", lambda: world.fresh().close(batch.batch_id))

        (receipt,) = world.ledger.mark([group[-1]]).whole()

        assert receipt.complete
        assert world.row(batch).state is State.COMPLETE

    @pytest.mark.parametrize("n", [1, 4, 5, 17, 65])
    def test_a_close_just_after_an_acker_died_completes_the_batch(self, world, n):
        """The acker dies before it looks, so only the closer can complete the batch."""
        batch, (group,) = world.batch(n)
        world.ledger.mark(list(group[:-1])).whole()
        die_while_acking(world, [group[-1]], writes=1)

        assert world.fresh().close(batch.batch_id).state is State.COMPLETE


class TestHeal:
    def test_costs_no_write_when_nothing_was_lost(self, world):
        _, (group,) = world.batch(64, closed=True)
        world.ledger.mark(list(group)).whole()

        with world.costing(writes=0, of="words.clear"):
            world.fresh().heal(world.memory.words.finished)

    @pytest.mark.parametrize("writes", [1, 2, 3])
    def test_goes_on_from_a_word_whose_parents_know_of_it_to_the_one_that_does_not(self, world, writes):
        """The record of a leaf may be the only one that comes: edges are not in the stream."""
        batch, (group,) = world.batch(64, closed=True)
        world.ledger.mark(list(group[:63])).whole()
        die_while_acking(world, [group[63]], writes=writes)

        world.fresh().heal([WordKey(batch.batch_id, 0, 15)])

        assert world.row(batch).state is State.COMPLETE

    @pytest.mark.parametrize("n", [4, 16, 64])
    def test_completes_a_batch_that_was_closed_since_its_row_was_read(self, world, n):
        # Given a settler that knows the batch as open, while its last acker and its closer died
        batch, (group,) = world.batch(n)
        root = world.ports.tree.root_level(n)
        settler = world.fresh()
        settler.mark(list(group[: n - 1])).whole()
        die_while_acking(world, [group[n - 1]], writes=root + 1)
        world.ports.batches.close(batch.batch_id, now=world.clock.at)

        settler.heal([WordKey(batch.batch_id, level, 0) for level in range(root + 1)])
        # Then it writes nothing above the root
        assert world.row(batch).state is State.COMPLETE
        assert world.ports.words.read([WordKey(batch.batch_id, root + 1, 0)]) == {}

    def test_drops_words_of_batches_that_are_gone(self, world):
        gone, (group,) = world.batch(4, lifetime=60)
        live, (other,) = world.batch(4, closed=True)
        world.ledger.mark(list(group)).whole()
        die_while_acking(world, list(other), writes=1)
        world.clock.at = gone.expires_at * 1000

        world.fresh().heal([WordKey(5, 0, 0), *world.memory.words.finished])

        assert world.row(live).state is State.COMPLETE


@pytest.mark.parametrize("idle_ttl", [None, 60])
@pytest.mark.parametrize("closed", [True, False])
def test_a_word_lives_as_long_as_its_batch_however_it_is_written(world, monkeypatch, closed, idle_ttl):
    """A word that vanished under a living batch would read as pending again."""
    batch, (group,) = world.batch(61, closed=closed, idle_ttl=idle_ttl, lifetime=90 * 86_400)
    clear, seen = world.ports.words.clear, defaultdict[int, set[int]](set)

    def look(clears: Sequence[Clear]) -> object:
        for one in clears:
            seen[one.key.level].add(one.expires_at)
        return clear(clears)

    monkeypatch.setattr(world.ports.words, "clear", look)

    world.fresh().mark(list(group[:5])).whole()
    world.fresh().mark([Failure(item) for item in group[5:9]]).whole()
    world.fresh().mark([ItemRange(group.prefix, 9, 40)]).whole()
    world.fresh().clear({batch.batch_id: [Bits(0, 10, 0b1111)]})
    world.fresh().mark(list(group[44:])).whole()
    world.fresh().close(batch.batch_id)

    assert world.row(batch).state is State.COMPLETE
    assert seen == {level: {batch.expires_at} for level in range(3)}


@pytest.mark.parametrize("call", ["ack", "close"])
def test_a_row_that_vanishes_under_the_last_item_is_an_error(world, call):
    """It takes a time to live that runs out between two calls; the caller is told, and nothing is claimed."""
    batch, (group,) = world.batch(3)
    calls: dict[str, Callable[[], object]] = {
        "ack": lambda: world.ledger.mark(list(group)).whole(),
        "close": lambda: world.ledger.close(batch.batch_id),
    }
    last = calls.pop(call)
    for earlier in calls.values():
        earlier()
    world.at("batches.end", "before", world.memory.batches._rows.clear)

    with pytest.raises(BatchGone, match="while its last item was acknowledged"):
        last()


def test_a_batch_pushed_out_of_memory_is_read_again(world):
    one, (a,) = world.batch(5, closed=True)
    two, (b,) = world.batch(5, closed=True)
    ledger = world.fresh()
    ledger._known._capacity = 1

    receipts = ledger.mark([*a, *b]).whole()

    assert {world.row(one).state, world.row(two).state} == {State.COMPLETE}
    assert sum(receipt.first for receipt in receipts) == 10


def test_bits_of_one_word_are_cleared_as_done_and_as_failed_in_one_write(world):
    batch, _ = world.batch(4)
    world.ledger.refresh([batch.batch_id])
    key = WordKey(batch.batch_id, 0, 0)

    with world.costing(writes=1):
        outcomes = all_of(world.ledger.try_to_settle({key: 0b0111}, failed={key: 0b0101}))

    assert (outcomes[key].first, outcomes[key].tally.failed) == (0b0111, 2)
    assert world.ports.words.read_failed([key]) == {key: 0b0101}


class TestOverload:
    def test_whoever_needs_all_words_is_told(self, world):
        batch, _ = world.batch(12)
        world.ledger.refresh([batch.batch_id])
        world.raise_at("words.clear", "before", Throttled("slow down"))

        with pytest.raises(Throttled):
            all_of(world.ledger.try_to_settle({WordKey(batch.batch_id, 0, 1): 0b1}))

    def test_a_parent_that_is_throttled_leaves_the_children_that_finished_it(self, world):
        # Given a call that finishes word 0 and clears a bit of word 1
        batch, (group,) = world.batch(12)
        world.ledger.mark([group[0]]).whole()
        for _ in range(2):
            world.at("words.clear", "after", lambda: None)
        world.raise_at("words.clear", "before", Throttled("slow down"))
        done, begun = (WordKey(batch.batch_id, 0, number) for number in (0, 1))
        # When the parent of both cannot be written
        outcomes = world.ledger.try_to_settle({done: 0b1110, begun: 0b1})
        # Then the finished word has to come again, so that its parent is written
        assert isinstance(outcomes[done], Throttled)
        assert not isinstance(outcomes[begun], Throttled)
        assert world.happened

    @pytest.mark.parametrize("error", [Throttled, ServiceUnavailable])
    def test_an_ack_that_is_told_to_come_again_completes_the_batch(self, world, error):
        _, (group,) = world.batch(4, closed=True)

        world.raise_at("batches.end", "before", error("not now"))
        with pytest.raises(error):
            world.ledger.mark(list(group)).whole()

        (receipt,) = world.ledger.mark(list(group)).whole()
        assert (receipt.complete, receipt.duplicates) == (True, tuple(group))


@pytest.mark.parametrize("moment", ["before", "after"])
@pytest.mark.parametrize("after", range(4))
def test_a_drained_batch_completes_with_the_repeat_of_a_mark_that_was_left(moment, after):
    # Given a batch that drains, whose last item lies in the first of two words
    world = World(2)
    batch, (group,) = world.batch(3)
    world.ledger.close(batch.batch_id, when=CloseWhen.DRAINED)
    world.ledger.mark([group[0], group[2]]).whole()
    # When its mark is left at any write of a word
    world.raise_at("words.clear", moment, Throttled("busy"), after=after)
    world.ledger.mark([group[1]])
    world.go_on()
    world.fresh().mark([group[1]]).whole()
    assert world.row(batch).state is State.COMPLETE
