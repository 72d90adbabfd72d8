"""Adding items: one write whatever their number, and once for each key."""

from enum import Enum

import pytest

from fanin.app.ledger.walk import Walk
from fanin.app.ports.parts import SentRow
from fanin.domain import ids, limits
from fanin.domain.batch import CloseWhen, Mode
from fanin.domain.ids import MAX_COUNT, MAX_ITEMS, MAX_KEY, MAX_KEYS, ItemKey, KeyedItem, checked_key
from fanin.domain.marks import Failure, ItemRange
from fanin.domain.tree import Tree
from fanin.errors import (
    BatchClosed,
    BatchGone,
    BatchNotFound,
    InvalidItemId,
    InvalidRequest,
    ItemDone,
    KeyNotFound,
    LimitReached,
    MaxItemsReached,
    Throttled,
)
from tests.unit.app.conftest import World


@pytest.mark.parametrize("count", [1, 64, 10**6, MAX_COUNT])
def test_any_number_of_items_is_one_write_and_no_read(world, count):
    batch, _ = world.batch()

    with world.costing(writes=1, reads=0):
        group = world.ledger.add(batch.batch_id, count)
    with world.costing(writes=1):
        world.fresh().add(batch.batch_id, count)

    assert len(group) == count


def test_key_gives_up_when_other_producers_always_come_first(world):
    batch, _ = world.batch()
    for _ in range(20):
        world.at("batches.allocate_once", "before", lambda: world.fresh().add(batch.batch_id, 1))

    with pytest.raises(Throttled, match="many producers"):
        world.ledger.add(batch.batch_id, 5, key="k")

    assert world.happened


class TestRefusal:
    @pytest.mark.parametrize("count", [0, 2**32, True, "5"])
    def test_of_a_count_that_is_none(self, world, count):
        batch, _ = world.batch()

        with world.refusing(InvalidRequest, "count must be a whole number from 1 to 4294967295"):
            world.ledger.add(batch.batch_id, count)

    @pytest.mark.parametrize("key", ["", "k" * (limits.MAX_IDEMPOTENCY_KEY + 1), 5])
    def test_of_a_key_that_is_none(self, world, key):
        batch, _ = world.batch()

        with world.refusing(InvalidRequest, r"^Idempotency-Key must be text of 1 to 256 characters"):
            world.ledger.add(batch.batch_id, 1, key=key)

    @pytest.mark.parametrize("batch_id", [-1, 2**53, "5", None])
    def test_of_what_is_no_batch_id(self, world, batch_id):
        with pytest.raises(InvalidRequest, match=r"^batch_id must be a whole number from 0 to"):
            world.ledger.add(batch_id, 1)

    @pytest.mark.parametrize("key", [None, "k"])
    def test_of_a_batch_past_its_lifetime(self, world, key):
        batch, _ = world.batch()
        world.clock.at = batch.expires_at * 1000

        with pytest.raises(BatchGone):
            world.ledger.add(batch.batch_id, 1, key=key)

    @pytest.mark.parametrize("key", [None, "k"])
    def test_of_more_items_than_a_batch_can_hold(self, world, key):
        # Given a batch with room for less than the largest group
        batch, _ = world.batch()
        for _ in range(MAX_ITEMS // MAX_COUNT):
            world.ledger.add(batch.batch_id, MAX_COUNT)
        left = MAX_ITEMS - world.row(batch).items

        with pytest.raises(InvalidRequest, match="2\\^40"):
            world.ledger.add(batch.batch_id, left + 1, key=key)

        assert world.ledger.add(batch.batch_id, left, key=key).upto == left

    @pytest.mark.parametrize("batch_id", [0, 5])
    @pytest.mark.parametrize("key", [None, "k"])
    def test_of_an_unknown_batch(self, world, key, batch_id):
        with pytest.raises(BatchNotFound):
            world.ledger.add(batch_id, 1, key=key)

        assert world.written() == 0


class TestByItem:
    def test_adds_once_under_its_own_key_and_costs_two_reads(self, world):
        batch, (group,) = world.batch(2)
        world.ledger.close(batch.batch_id, when=CloseWhen.DRAINED)

        with world.costing(reads=2, writes=2):
            added = world.ledger.add(batch.batch_id, 3, item=group[0])
        again = world.fresh().add(batch.batch_id, 3, item=group[0])
        other = world.ledger.add(batch.batch_id, 3, item=group[1])

        assert (again, again.again, again.sent) == (added, True, False)
        assert other != added
        assert world.row(batch).items == 8

    def test_is_told_that_a_note_says_all_was_sent(self, world):
        batch, (group,) = world.batch(1)
        world.ledger.add(batch.batch_id, 3, item=group[0])
        world.ports.parts.put_sent(batch.batch_id, SentRow("queue", 1, 3, 0, 0), expires_at=1)
        part = world.ledger.add(batch.batch_id, 3, item=group[0])
        world.ports.parts.put_sent(batch.batch_id, SentRow("queue", 1, 4, 0, 0), expires_at=1)

        assert not part.sent
        assert world.ledger.add(batch.batch_id, 3, item=group[0]).sent

    def test_is_refused_once_the_item_is_done_or_the_batch_has_ended(self, world):
        batch, (group,) = world.batch(2)
        world.ledger.close(batch.batch_id, when=CloseWhen.DRAINED)
        world.ledger.mark([group[0]]).whole()

        with world.refusing(ItemDone, "is done, so it adds nothing more"):
            world.ledger.add(batch.batch_id, 1, item=group[0])
        with pytest.raises(BatchClosed, match="takes only items that its own pending items add"):
            world.ledger.add(batch.batch_id, 1)
        world.ledger.cancel(batch.batch_id)
        with pytest.raises(BatchClosed, match="is cancelled"):
            world.ledger.add(batch.batch_id, 1, item=group[1])

        assert world.row(batch).items == 2

    def test_is_refused_for_another_batch_and_a_forged_item(self, world):
        batch, (group,) = world.batch(1)
        other, _ = world.batch(1)

        with world.refusing(InvalidItemId, "is not of batch"):
            world.ledger.add(other.batch_id, 1, item=group[0])
        with world.refusing(InvalidItemId, "not issued"):
            world.ledger.add(batch.batch_id, 1, item=ids.issue(batch.batch_id, 0, 1, b"x").prefix + ":0")


@pytest.mark.parametrize("key", [None, "k"])
def test_a_batch_takes_no_more_than_its_most_items(world, key):
    batch, _ = world.batch(3, max_items=5)

    with pytest.raises(MaxItemsReached, match="has 3 items and takes 5 in all, so 3 more do not fit"):
        world.ledger.add(batch.batch_id, 3, key=key)
    world.ledger.add(batch.batch_id, 2, key=key)

    assert world.row(batch).items == 5


class TestBounded:
    @pytest.mark.parametrize("key", [None, "k"])
    def test_counts_what_is_pending_before_it_refuses(self, world, key):
        # Given a full batch, of which consumers have done some, singly and as a range
        batch, (group,) = world.batch(20, limit=20)
        world.ledger.mark([group[3], group[9]]).whole()
        world.ledger.mark([ItemRange(group.prefix, 10, 18)]).whole()
        # When as many are added as were done, Then they fit, and not one more
        with pytest.raises(LimitReached, match="10 items pending"):
            world.ledger.add(batch.batch_id, 11, key=key)
        world.ledger.add(batch.batch_id, 10, key=key)
        with pytest.raises(LimitReached, match="20 items pending"):
            world.ledger.add(batch.batch_id, 1)

    def test_refuses_for_good_what_can_never_fit(self, world):
        batch, _ = world.batch(limit=10)

        with pytest.raises(InvalidRequest, match=f"never fit into batch {batch.batch_id}, whose limit"):
            world.ledger.add(batch.batch_id, 11)
        world.ledger.add(batch.batch_id, 1)
        with pytest.raises(LimitReached):
            world.ledger.add(batch.batch_id, 10)

    def test_the_count_may_read_a_word_on_every_level_for_each_item_of_the_largest_limit(
        self, world, monkeypatch
    ):
        """Else a batch of scattered items would be taken for a full one."""
        batch, _ = world.batch(10, limit=10)
        finish, budgets = Walk.finish, list[int]()

        def finished(self: Walk) -> Walk:
            budgets.append(self.budget)
            return finish(self)

        monkeypatch.setattr(Walk, "finish", finished)
        with pytest.raises(LimitReached):
            world.ledger.add(batch.batch_id, 1)

        (budget,) = budgets
        assert budget >= limits.MAX_LIMIT * (Tree().root_level(MAX_ITEMS) + 1)

    def test_a_count_is_not_stored_when_another_producer_came_between(self, world):
        # Given a full batch with two items done
        batch, (group,) = world.batch(10, limit=10)
        world.ledger.mark(list(group[:2])).whole()
        # When two producers want that room, and one comes while the other counts
        world.at("batches.allocate_counted", "before", lambda: world.fresh().add(batch.batch_id, 2))
        with pytest.raises(LimitReached, match="10 items pending"):
            world.ledger.add(batch.batch_id, 2)
        # Then only one of them got it
        assert world.row(batch).items == 12


def test_processes_that_see_a_batch_once_keep_it_alive(world):
    # Given producers that come and go, such as short-lived functions
    batch, _ = world.batch(idle_ttl=1_000)
    for _ in range(10):
        world.clock.advance(500_000)
        world.fresh().add(batch.batch_id, 1)
    # Then the batch is as young as its last addition
    assert world.row(batch).touched_at > world.clock.at - 100_000
    assert world.fresh().reap().orphaned == 0


# Keys: one key is one item of its batch, whoever adds it, and whoever sends its message.


def add(world: World, batch_id: int, *keys: str | ItemKey, item: str | None = None) -> list[KeyedItem]:
    named = [key if isinstance(key, ItemKey) else ItemKey(key) for key in keys]
    return list(world.fresh().add_keys(batch_id, named, item=item).items)


def flags(found: list[KeyedItem]) -> list[str]:
    """What is said of each key, such as "added send"."""
    names = ("added", "done", "differs", "send")
    return [" ".join(name for name in names if getattr(one, name)) for one in found]


def test_a_key_is_one_item_also_in_one_call_and_a_done_one_says_so(world):
    batch, _ = world.batch()

    first = add(world, batch.batch_id, "a", "b", "a")
    world.ledger.mark([first[1].item]).whole()
    again = add(world, batch.batch_id, "b", "a", "c")

    assert flags(first) == ["added send", "added send", ""]
    assert flags(again) == ["done", "send", "added send"]
    assert first[0].item == first[2].item == again[1].item
    assert world.row(batch).items == 3
    found = world.ledger.find_key(batch.batch_id, key_of_item="b")
    assert (found.item, found.done) == (first[1].item, True)
    with world.refusing(KeyNotFound, "no item with the key 'd'"):
        world.ledger.find_key(batch.batch_id, key_of_item="d")


def test_the_first_payload_of_a_key_stays_and_the_next_is_told(world):
    batch, _ = world.batch()

    first = add(world, batch.batch_id, ItemKey("a", "1"), ItemKey("a", "2"))
    again = add(world, batch.batch_id, ItemKey("a", "2")), add(world, batch.batch_id, ItemKey("a", "1"))

    assert flags(first) == ["added send", "differs"]
    assert [flags(one) for one in again] == [["differs"], ["send"]]


def test_an_item_sends_what_it_has_added_until_a_note_says_so_and_nothing_of_others(world):
    batch, (group,) = world.batch(2)
    world.ledger.close(batch.batch_id, when=CloseWhen.DRAINED)

    assert flags(add(world, batch.batch_id, "a", "b", item=group[0])) == ["added send", "added send"]
    assert flags(add(world, batch.batch_id, "b", "c", item=group[1])) == ["", "added send"]
    assert flags(add(world, batch.batch_id, "a", "b", item=group[0])) == ["send", "send"]
    world.ports.parts.put_sent(batch.batch_id, SentRow("queue", 2, 4, 0, 0), expires_at=1)
    assert flags(add(world, batch.batch_id, "a", "b", item=group[0])) == ["", ""]
    world.ledger.mark([group[0]]).whole()
    with world.refusing(ItemDone):
        world.ledger.add_keys(batch.batch_id, [ItemKey("a")], item=group[0])


def test_costs_a_row_a_key_and_two_for_all(world):
    batch, _ = world.batch()
    keys = [ItemKey(str(n)) for n in range(MAX_KEYS)]

    with world.costing(writes=MAX_KEYS + 2):
        world.ledger.add_keys(batch.batch_id, keys)
    with world.costing(writes=0):
        world.ledger.add_keys(batch.batch_id, keys)


def test_keys_that_another_adds_at_the_same_moment_are_found(world):
    batch, _ = world.batch()
    world.at("batches.allocate_keys", "before", lambda: add(world, batch.batch_id, "a", "x"))

    found = add(world, batch.batch_id, "a", "b")

    assert flags(found) == ["send", "added send"]
    assert world.row(batch).items == 3


def test_new_keys_are_refused_where_items_are_and_known_ones_never(world):
    closed, _ = world.batch()
    capped, _ = world.batch(max_items=2)
    bounded, _ = world.batch(limit=2)
    for batch in closed, capped, bounded:
        add(world, batch.batch_id, "a", "b")
    world.ledger.close(closed.batch_id)

    for batch, error in (closed, BatchClosed), (capped, MaxItemsReached), (bounded, LimitReached):
        with pytest.raises(error):
            add(world, batch.batch_id, "a", "c")
        assert flags(add(world, batch.batch_id, "a", "b")) == ["send", "send"]
        assert world.row(batch).items == 2


@pytest.mark.parametrize("key", [None, 5, "", "k" * (MAX_KEY + 1), "ж" * (MAX_KEY // 2) + "k", "\ud800"])
def test_what_is_no_key_is_refused(world, key):
    batch, _ = world.batch()

    with world.refusing(InvalidRequest, "the key of an item"):
        world.ledger.add_keys(batch.batch_id, [ItemKey("a"), ItemKey(key)])


def test_an_estimated_batch_has_no_keys(world):
    batch, _ = world.batch(mode=Mode.ESTIMATED)

    with world.refusing(InvalidRequest, "is estimated and knows no items"):
        world.ledger.add_keys(batch.batch_id, [ItemKey("a")])


def test_what_is_missing_and_what_failed_has_its_key(world):
    batch, (_,) = world.batch(1)
    found = add(world, batch.batch_id, "a", "b", "c")
    world.ledger.mark([Failure(found[1].item, "no")]).whole()

    ranges = world.ledger.missing(batch.batch_id).ranges
    (failure,) = world.ledger.failures(batch.batch_id).failures

    assert [one.keys for one in ranges] == [("a",), ("c",)]
    assert failure.key == "b"


def test_the_member_of_an_enumeration_is_the_key_that_is_its_value(world):
    class Page(str, Enum):  # noqa: UP042 - as users write it, str() of which is not its value
        START = "/"

    batch, _ = world.batch()
    (member,) = add(world, batch.batch_id, checked_key(Page.START))
    assert add(world, batch.batch_id, "/")[0].item == member.item
