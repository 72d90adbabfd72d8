"""What every store of batch rows promises: adding items, with a key at most once."""

from collections import Counter
from concurrent.futures import ThreadPoolExecutor

import pytest

from fanin.app.ports.batches import Activity
from fanin.domain.access import IdempotencyKey, Principal
from fanin.domain.batch import State
from fanin.domain.ids import MAX_ITEMS
from fanin.errors import IdempotencyKeyReused

from .given import NOW, TERMINAL, new_batch, put, row_of

KEY, OTHER = IdempotencyKey.of("a"), IdempotencyKey.of("b")
ADA, BOB = Principal("ada", "iam ada"), Principal("bob", "iam bob")


class TestAllocate:
    def test_ranges_follow_each_other(self, stores):
        put(stores)

        rows = [stores.batches.allocate(8, n, activity=None, room=None) for n in (1, 2**32 - 1, 5)]

        assert [row.items for row in rows if row] == [1, 2**32, 2**32 + 5]
        assert rows[-1] == row_of(stores)

    def test_activity_moves_the_times_and_none_leaves_them(self, stores):
        put(stores)

        assert stores.batches.allocate(8, 1, activity=None, room=None) == new_batch(items=1)
        active = stores.batches.allocate(8, 1, activity=Activity(NOW + 5, NOW + 9), room=None)

        assert active == new_batch(items=2, touched_at=NOW + 5)
        assert list(stores.batches.due(NOW + 10)) == [active.batch_id]
        assert list(stores.batches.due(NOW + 9)) == []

    @pytest.mark.parametrize("state", [State.CLOSED, *TERMINAL])
    def test_only_an_open_batch_takes_items(self, stores, state):
        put(stores, state=state)

        assert stores.batches.allocate(8, 1, activity=None, room=None) is None
        assert row_of(stores).items == 0

    def test_a_batch_that_drains_takes_only_what_its_items_add(self, stores):
        batch, activity = put(stores, items=1, draining_at=NOW), Activity(NOW, NOW)

        assert stores.batches.allocate(8, 1, activity=None, room=None) is None
        assert stores.batches.allocate_once(batch, 2, KEY, activity=activity) is None
        assert stores.batches.allocate_once(batch, 2, KEY, activity=activity, by_item=True) == 1
        assert (row_of(stores).items, row_of(stores).grown) == (3, 2)

    def test_a_batch_takes_its_most_items_and_only_from_those_who_know_of_them(self, stores):
        batch, activity = put(stores, max_items=5), Activity(NOW, NOW)

        assert stores.batches.allocate(8, 1, activity=None, room=None) is None
        assert stores.batches.allocate(8, 6, activity=None, room=None, most=5) is None
        assert stores.batches.allocate_once(batch, 6, OTHER, activity=activity) is None
        assert stores.batches.allocate_once(batch, 4, KEY, activity=activity) == 0
        assert stores.batches.allocate(8, 2, activity=None, room=None, most=5) is None
        assert stores.batches.allocate(8, 1, activity=None, room=None, most=5) == new_batch(
            max_items=5, items=5
        )

    def test_a_bounded_batch_takes_items_while_its_bound_is_within_the_room(self, stores):
        put(stores, limit=10)

        assert stores.batches.allocate(8, 7, activity=None, room=3) == new_batch(
            limit=10, items=7, pending_bound=7
        )
        assert stores.batches.allocate(8, 4, activity=None, room=6) is None
        assert stores.batches.allocate(8, 3, activity=None, room=7) == new_batch(
            limit=10, items=10, pending_bound=10
        )
        assert stores.batches.allocate(8, 11, activity=None, room=-1) is None

    def test_the_caller_must_know_whether_there_is_a_limit(self, stores):
        put(stores, 8)
        put(stores, 9, limit=10)

        assert stores.batches.allocate(8, 1, activity=None, room=9) is None
        assert stores.batches.allocate(9, 1, activity=None, room=None) is None

    def test_a_batch_holds_2_to_the_40_items(self, stores):
        put(stores, items=MAX_ITEMS - 2)

        assert stores.batches.allocate(8, 3, activity=None, room=None) is None
        row = stores.batches.allocate(8, 2, activity=None, room=None)

        assert row is not None
        assert row.items == MAX_ITEMS

    def test_writers_at_once_get_ranges_of_their_own(self, stores):
        put(stores)

        def allocate(n: int) -> range:
            row = stores.batches.allocate(8, n, activity=None, room=None)
            assert row is not None
            return range(row.items - n, row.items)

        with ThreadPoolExecutor(8) as pool:
            ranges = list(pool.map(allocate, [1, 2, 3] * 20))

        assert sorted(i for block in ranges for i in block) == list(range(120))

    def test_of_writers_at_once_no_more_than_the_limit_get_in(self, stores):
        put(stores, limit=10)

        with ThreadPoolExecutor(8) as pool:
            rows = list(pool.map(lambda _: stores.batches.allocate(8, 3, activity=None, room=7), range(16)))

        assert sum(row is not None for row in rows) == 3
        assert row_of(stores) == new_batch(limit=10, items=9, pending_bound=9)


class TestAllocateOnce:
    ACTIVITY = Activity(NOW + 5, NOW + 9)

    def test_a_key_stands_for_one_range(self, stores):
        put(stores, items=3)

        first = stores.batches.allocate_once(row_of(stores), 4, KEY, activity=self.ACTIVITY)
        again = stores.batches.allocate_once(row_of(stores), 4, KEY, activity=self.ACTIVITY)
        other = stores.batches.allocate_once(row_of(stores), 4, OTHER, activity=self.ACTIVITY)

        assert (first, again, other) == (3, 3, 7)
        assert row_of(stores) == new_batch(items=11, touched_at=NOW + 5)
        assert list(stores.batches.due(NOW + 10)) == [row_of(stores).batch_id]

    def test_a_key_is_of_its_batch(self, stores):
        put(stores, 8)
        put(stores, 9, items=2)

        assert stores.batches.allocate_once(row_of(stores, 8), 4, KEY, activity=self.ACTIVITY) == 0
        assert stores.batches.allocate_once(row_of(stores, 9), 5, KEY, activity=self.ACTIVITY) == 2

    def test_a_key_is_for_one_count(self, stores):
        batch = put(stores)
        stores.batches.allocate_once(batch, 4, KEY, activity=self.ACTIVITY)

        with pytest.raises(IdempotencyKeyReused, match=r"'a' was used for 4 items"):
            stores.batches.allocate_once(row_of(stores), 5, KEY, activity=self.ACTIVITY)
        assert row_of(stores).items == 4

    def test_a_key_of_another_caller_is_another_key(self, stores):
        # Given two callers, and one whom nobody knows, with keys of the same text
        put(stores)
        keys = [IdempotencyKey.of("a", caller) for caller in (ADA, BOB, None)]
        # When each adds under theirs, with different counts, and again
        firsts = [
            stores.batches.allocate_once(row_of(stores), n, key, activity=self.ACTIVITY)
            for _ in range(2)
            for n, key in enumerate(keys, 1)
        ]
        # Then each has a range of their own, and has it again
        assert firsts == [0, 1, 3, 0, 1, 3]
        assert row_of(stores).items == 6
        with pytest.raises(IdempotencyKeyReused, match="was used for 2 items"):
            stores.batches.allocate_once(row_of(stores), 1, keys[1], activity=self.ACTIVITY)

    def test_a_batch_that_has_changed_is_to_be_read_again(self, stores):
        stale = put(stores)
        stores.batches.allocate(8, 1, activity=None, room=None)

        assert stores.batches.allocate_once(stale, 4, KEY, activity=self.ACTIVITY) is None
        assert row_of(stores).items == 1
        assert stores.batches.allocate_once(row_of(stores), 4, KEY, activity=self.ACTIVITY) == 1

    def test_a_used_key_answers_after_the_batch_has_closed_and_changed(self, stores):
        # Given a key used on a batch that went on, closed and ended
        stale = put(stores)
        stores.batches.allocate_once(stale, 4, KEY, activity=self.ACTIVITY)
        stores.batches.allocate(8, 1, activity=None, room=None)
        stores.batches.close(8, now=NOW)
        # When it is used again, by one who read the batch before or after that
        answers = [
            stores.batches.allocate_once(batch, 4, KEY, activity=self.ACTIVITY)
            for batch in (stale, row_of(stores))
        ]
        # Then it is the first answer; a fresh key gets nothing, and a wrong count is still refused
        assert answers == [0, 0]
        assert stores.batches.allocate_once(row_of(stores), 4, OTHER, activity=self.ACTIVITY) is None
        with pytest.raises(IdempotencyKeyReused):
            stores.batches.allocate_once(row_of(stores), 5, KEY, activity=self.ACTIVITY)
        assert row_of(stores).items == 5

    def test_a_bounded_batch_must_have_room(self, stores):
        put(stores, limit=10)

        firsts = [
            stores.batches.allocate_once(row_of(stores), n, IdempotencyKey.of(key), activity=self.ACTIVITY)
            for n, key in [(7, "a"), (4, "b"), (3, "c"), (11, "d"), (7, "a")]
        ]

        assert firsts == [0, None, 7, None, 0]
        assert row_of(stores).pending_bound == 10

    def test_a_batch_holds_2_to_the_40_items(self, stores):
        batch = put(stores, items=MAX_ITEMS - 2)

        assert stores.batches.allocate_once(batch, 3, KEY, activity=self.ACTIVITY) is None
        assert stores.batches.allocate_once(batch, 2, KEY, activity=self.ACTIVITY) == MAX_ITEMS - 2

    def test_of_writers_at_once_with_one_key_all_get_one_range(self, stores):
        put(stores)

        def allocate(number: int) -> int:
            key = f"key-{number % 4}"
            while True:
                first = stores.batches.allocate_once(
                    row_of(stores), 5, IdempotencyKey.of(key), activity=self.ACTIVITY
                )
                if first is not None:
                    return first

        with ThreadPoolExecutor(8) as pool:
            firsts = list(pool.map(allocate, range(32)))

        assert Counter(firsts) == dict.fromkeys([0, 5, 10, 15], 8)
        assert all(len(set(firsts[number::4])) == 1 for number in range(4))
        assert row_of(stores).items == 20
