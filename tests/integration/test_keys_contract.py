"""What every store promises of keys: one key is one item, however many add it at once."""

from concurrent.futures import ThreadPoolExecutor

import pytest

from fanin.app.ports.batches import Activity
from fanin.app.ports.parts import KeyRow
from fanin.domain.ids import MAX_KEY, MAX_KEYS
from fanin.domain.limits import chunks

from .given import NOW, put, row_of

ACTIVITY = Activity(NOW, NOW)


def test_the_keys_of_an_addition_are_written_with_the_count_or_not_at_all(stores):
    batch = put(stores, items=5)
    rows = [KeyRow("a", 5, 3, "digest"), KeyRow("b", 6)]

    assert stores.batches.allocate_keys(batch, rows, activity=ACTIVITY, by_item=True)
    assert not stores.batches.allocate_keys(batch, [KeyRow("c", 5)], activity=ACTIVITY)  # the row has changed
    grown = row_of(stores)
    taken = [KeyRow("c", 7), KeyRow("a", 8)]
    assert not stores.batches.allocate_keys(grown, taken, activity=ACTIVITY)

    assert (grown.items, grown.grown, grown.keyed) == (7, 2, 2)
    assert stores.parts.keys(8, ["a", "b", "c"]) == {row.key: row for row in rows}
    assert stores.parts.keys(9, ["a"]) == {}
    assert row_of(stores) == grown


def test_items_tell_their_keys(stores):
    batch = put(stores)
    for first, keys in (0, ["a", "b"]), (2, ["c"]):
        rows = [KeyRow(key, first + n) for n, key in enumerate(keys)]
        assert stores.batches.allocate_keys(batch, rows, activity=ACTIVITY)
        batch = row_of(stores)
    assert stores.batches.allocate(8, 1, activity=None, room=None)

    assert stores.parts.keys_of(8, [0, 1, 2, 3]) == {0: "a", 1: "b", 2: "c"}
    assert stores.parts.keys_of(9, [0]) == {}


@pytest.mark.parametrize("key", ["k" * MAX_KEY, "ж" * (MAX_KEY // 2), "/", " ", "\0", "key/a", "𝄞"])
def test_any_text_is_a_key_in_as_many_rows_as_one_transaction_takes(stores, key):
    batch = put(stores)
    rows = [KeyRow(key, 0), *(KeyRow(f"{n}", n) for n in range(1, MAX_KEYS))]

    assert stores.batches.allocate_keys(batch, rows, activity=ACTIVITY)

    assert stores.parts.keys(8, [key]) == {key: rows[0]}
    assert stores.parts.keys_of(8, [0, MAX_KEYS - 1]) == {0: key, MAX_KEYS - 1: str(MAX_KEYS - 1)}


def test_eight_at_once_give_each_key_one_item(stores):
    """Each adds what it does not find, again and again, as the ledger does."""
    put(stores)
    keys = [f"key {n}" for n in range(30)]

    def add(start: int) -> None:
        for some in chunks(keys[start:] + keys[:start], max_items=7):
            while left := [key for key in some if key not in stores.parts.keys(8, some)]:
                batch = row_of(stores)
                rows = [KeyRow(key, batch.items + n) for n, key in enumerate(left)]
                stores.batches.allocate_keys(batch, rows, activity=ACTIVITY)

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(add, range(0, 24, 3)))

    found = stores.parts.keys(8, keys)
    assert sorted(row.ordinal for row in found.values()) == list(range(30))
    assert (row_of(stores).items, row_of(stores).keyed) == (30, 30)
    assert stores.parts.keys_of(8, range(30)) == {row.ordinal: row.key for row in found.values()}
