"""Keys: one key is one item of its batch, whoever adds it, and whoever sends its message."""

from __future__ import annotations

from enum import Enum

import pytest

from fanin.app.ports.parts import SentRow
from fanin.domain.batch import CloseWhen, Mode
from fanin.domain.ids import MAX_KEY, MAX_KEYS, ItemKey, KeyedItem, checked_key
from fanin.domain.marks import Failure
from fanin.errors import BatchClosed, InvalidRequest, ItemDone, KeyNotFound, LimitReached, MaxItemsReached
from tests.unit.app.conftest import World


def add(world: World, batch_id: int, *keys: str | ItemKey, item: str | None = None) -> list[KeyedItem]:
    named = [key if isinstance(key, ItemKey) else ItemKey(key) for key in keys]
    return list(world.fresh().add_keys(batch_id, named, item=item).items)


def flags(found: list[KeyedItem]) -> list[str]:
    """What is said of each key, such as "added send"."""
    names = ("added", "done", "differs", "send")
    return [" ".join(name for name in names if getattr(one, name)) for one in found]


def test_a_key_is_one_item_also_in_one_call_and_a_done_one_says_so(world: World) -> None:
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


def test_the_first_payload_of_a_key_stays_and_the_next_is_told(world: World) -> None:
    batch, _ = world.batch()

    first = add(world, batch.batch_id, ItemKey("a", "1"), ItemKey("a", "2"))
    again = add(world, batch.batch_id, ItemKey("a", "2")), add(world, batch.batch_id, ItemKey("a", "1"))

    assert flags(first) == ["added send", "differs"]
    assert [flags(one) for one in again] == [["differs"], ["send"]]


def test_an_item_sends_what_it_has_added_until_a_note_says_so_and_nothing_of_others(world: World) -> None:
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


def test_costs_a_row_a_key_and_two_for_all(world: World) -> None:
    batch, _ = world.batch()
    keys = [ItemKey(str(n)) for n in range(MAX_KEYS)]

    with world.costing(writes=MAX_KEYS + 2):
        world.ledger.add_keys(batch.batch_id, keys)
    with world.costing(writes=0):
        world.ledger.add_keys(batch.batch_id, keys)


def test_keys_that_another_adds_at_the_same_moment_are_found(world: World) -> None:
    batch, _ = world.batch()
    world.at("batches.allocate_keys", "before", lambda: add(world, batch.batch_id, "a", "x"))

    found = add(world, batch.batch_id, "a", "b")

    assert flags(found) == ["send", "added send"]
    assert world.row(batch).items == 3


def test_new_keys_are_refused_where_items_are_and_known_ones_never(world: World) -> None:
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
def test_what_is_no_key_is_refused(world: World, key: object) -> None:
    batch, _ = world.batch()

    with world.refusing(InvalidRequest, "the key of an item"):
        world.ledger.add_keys(batch.batch_id, [ItemKey("a"), ItemKey(key)])  # type: ignore[arg-type]


def test_an_estimated_batch_has_no_keys(world: World) -> None:
    batch, _ = world.batch(mode=Mode.ESTIMATED)

    with world.refusing(InvalidRequest, "is estimated and knows no items"):
        world.ledger.add_keys(batch.batch_id, [ItemKey("a")])


def test_what_is_missing_and_what_failed_has_its_key(world: World) -> None:
    batch, (_,) = world.batch(1)
    found = add(world, batch.batch_id, "a", "b", "c")
    world.ledger.mark([Failure(found[1].item, "no")]).whole()

    ranges = world.ledger.missing(batch.batch_id).ranges
    (failure,) = world.ledger.failures(batch.batch_id).failures

    assert [one.keys for one in ranges] == [("a",), ("c",)]
    assert failure.key == "b"


def test_the_member_of_an_enumeration_is_the_key_that_is_its_value(world: World) -> None:
    class Page(str, Enum):  # noqa: UP042 - as users write it, str() of which is not its value
        START = "/"

    batch, _ = world.batch()
    (member,) = add(world, batch.batch_id, checked_key(Page.START))
    assert add(world, batch.batch_id, "/")[0].item == member.item
