"""What stores of batch rows promise: creating, reading and listing them; what is due; children of items."""

from collections.abc import Callable
from dataclasses import replace
from itertools import chain, islice

from fanin.app.ports.batches import Activity, Adoption, BatchRows, ItemPlace
from fanin.domain import limits
from fanin.domain.access import IdempotencyKey
from fanin.domain.batch import LIVE, Mode, OnDeadline, State
from fanin.domain.ids import MAX_ITEMS
from tests.integration.given import HOUR, NOW, new_batch, put, row_of


class TestRows:
    def test_a_row_reads_back_as_it_was_put(self, stores):
        plain = put(stores, 8)
        rich = put(
            stores,
            2**53 - 1,
            state=State.TIMED_OUT,
            mode=Mode.ESTIMATED,
            user_key="catalog-42 ☂",
            items=MAX_ITEMS,
            closed_at=NOW + 1,
            ended_at=NOW + 2,
            deadline=NOW + 3,
            on_deadline=OnDeadline.COMPLETE,
            limit=1,
            pending_bound=2,
            parent_item="1:x:0",
            metadata={"a": "", "b ☂": "c"},
            acked=3,
            partial=True,
        )

        assert stores.batches.read([8, 2**53 - 1, 8]) == {8: plain, 2**53 - 1: rich}

    def test_unknown_rows_are_left_out(self, stores):
        batch = put(stores)

        assert stores.batches.read([9, 8]) == {8: batch}
        assert stores.batches.read([]) == {}

    def test_more_rows_than_a_request_takes(self, stores):
        for batch_id in range(101):
            put(stores, batch_id)

        assert sorted(stores.batches.read(range(103))) == list(range(101))

    def test_an_id_is_taken_once(self, stores):
        batch = put(stores)

        assert not stores.batches.create(replace(batch, salt=bytes(16)))
        assert row_of(stores) == batch

    def test_creating_the_same_batch_again_is_no_clash(self, stores):
        batch = put(stores)
        stores.batches.allocate(8, 5, activity=None, room=None)

        assert stores.batches.create(batch)
        assert row_of(stores).items == 5

    def test_no_call_makes_a_row_of_an_unknown_batch(self, stores):
        batches, activity = stores.batches, Activity(NOW, NOW)

        assert batches.allocate(9, 1, activity=activity, room=None) is None
        assert batches.allocate_once(new_batch(9), 1, IdempotencyKey.of("key"), activity=activity) is None
        assert not batches.rebound(9, items=0, pending=0)
        assert batches.allocate_counted(9, 1, items=0, pending=0, activity=activity) is None
        assert batches.close(9, now=NOW, activity=activity) == (None, False)
        assert batches.end(9, State.CANCELLED, now=NOW, sources=list(State)) == (None, False)
        assert batches.count(9, 1, activity=activity) is None
        assert not batches.expire(9, now=NOW)
        batches.touch(9, activity)
        assert batches.read([9]) == {}


def walk(page_of: Callable[..., BatchRows], of: str, limit: int) -> list[list[int]]:
    """The ids on each page of a listing, up to the last page."""
    pages, cursor = [], None
    while True:
        page = page_of(of, cursor=cursor, limit=limit)
        pages.append([batch.batch_id for batch in page.batches])
        assert len(page.batches) <= limit
        if page.cursor is None:
            return pages
        cursor = page.cursor


class TestPage:
    def test_pages_hold_every_batch_of_the_state_once(self, stores):
        # Given 20 open batches, due in the order opposite to their ids, and others
        for batch_id in range(20):
            put(stores, batch_id, touched_at=NOW - batch_id * HOUR)
        put(stores, 30, state=State.CLOSED)

        for limit in (1, 3, 20, 100):
            # When they are listed in pages
            pages = walk(stores.batches.page, State.OPEN, limit)
            # Then all are there, a shard at a time, and the first due of a shard is the first
            assert list(chain(*pages)) == sorted(range(20), key=lambda batch_id: (batch_id % 8, -batch_id))
        assert walk(stores.batches.page, State.CLOSED, 10) == [[30]]
        counts = [stores.batches.count_in(state) for state in (State.OPEN, State.CLOSED, State.ORPHANED)]
        assert counts == [(len(list(chain(*pages))), False), (1, False), (0, False)]
        assert walk(stores.batches.page, State.ORPHANED, 10) == [[]]

    def test_a_page_is_filled_from_all_shards(self, stores):
        for batch_id in range(8):
            put(stores, batch_id)

        assert len(stores.batches.page(State.OPEN, limit=6).batches) == 6

    def test_a_batch_that_moved_is_in_the_shard_of_its_new_state_only(self, stores):
        put(stores)
        stores.batches.close(8, now=NOW)
        assert [walk(stores.batches.page, state, 9) for state in State][:3] == [[[]], [[8]], [[]]]

        stores.batches.end(8, State.COMPLETE, now=NOW, sources=LIVE)
        assert [walk(stores.batches.page, state, 9) for state in State][:3] == [[[]], [[]], [[8]]]

    def test_a_page_shows_rows_as_they_are_now(self, stores):
        put(stores)
        stores.batches.allocate(8, 5, activity=None, room=None)

        assert stores.batches.page(State.OPEN).batches == [new_batch(items=5)]


class TestPageOfUserKey:
    def test_pages_hold_every_batch_of_the_key_once_and_the_newest_first(self, stores):
        # Given 20 batches of one key in any state, most of them in one shard, and others
        mine = [*range(10), *range(16, 96, 8)]
        for batch_id in mine:
            put(stores, batch_id, user_key="nightly", state=tuple(State)[batch_id % 6])
        put(stores, 200, user_key="nightly#0")
        put(stores, 201, user_key="night")
        put(stores, 202)

        for limit in (1, 3, 20, 100):
            # When they are listed in pages
            pages = walk(stores.batches.page_of_user_key, "nightly", limit)
            # Then all are there in one order over all pages, and no page is empty
            assert list(chain(*pages)) == sorted(mine, reverse=True)
            assert all(pages)
        assert walk(stores.batches.page_of_user_key, "nightly#0", 9) == [[200]]
        assert walk(stores.batches.page_of_user_key, "nobody's", 9) == [[]]

    def test_a_batch_that_was_changed_is_shown_as_it_is_now(self, stores):
        put(stores, user_key="k")
        stores.batches.touch(8, Activity(NOW + 1, NOW + HOUR))
        stores.batches.close(8, now=NOW)
        stores.batches.end(8, State.COMPLETE, now=NOW, sources=LIVE)

        assert stores.batches.page_of_user_key("k") == ([row_of(stores)], None)
        assert row_of(stores).state is State.COMPLETE

    def test_a_child_batch_is_found_too(self, stores):
        child = new_batch(9, user_key="k")
        stores.batches.create_child(child, ItemPlace(8, 0))

        assert stores.batches.page_of_user_key("k") == ([child], None)

    def test_the_children_of_a_batch_are_listed_page_by_page(self, stores):
        for ordinal in range(3):
            stores.batches.create_child(new_batch(10 + ordinal), ItemPlace(8, ordinal))
        stores.batches.create_child(new_batch(20), ItemPlace(9, 0))
        stores.batches.create_child(new_batch(13), ItemPlace(8, 1), instead_of=11)

        assert walk(lambda of, **page: stores.batches.page_of_parent(int(of), **page), "8", 2) == [
            [10, 13],
            [12],
        ]
        assert stores.batches.page_of_parent(7) == ([], None)

    def test_a_batch_without_a_user_key_is_not_found(self, stores):
        put(stores)

        assert stores.batches.page_of_user_key("") == ([], None)

    def test_the_longest_user_key_of_the_longest_characters_is_found(self, stores):
        longest = "\U0001f302" * limits.MAX_USER_KEY
        put(stores, 8, user_key=longest)
        put(stores, 9, user_key=longest)

        assert walk(stores.batches.page_of_user_key, longest, 1) == [[9], [8]]


def test_the_longest_due_comes_first_whatever_its_state_and_shard(stores):
    due: list[tuple[int, int]] = []
    for batch_id in range(40):
        batch = put(
            stores,
            batch_id,
            touched_at=NOW - batch_id * 7 % 40 * HOUR,
            state=LIVE[batch_id % 3 == 0],
            closed_idle_ttl=7_200,
            open_idle_ttl=7_200,
        )
        due.append((batch.look_at(batch.created_at), batch_id))

    assert list(stores.batches.due(NOW + 10 * HOUR)) == [batch_id for _, batch_id in sorted(due)]
    assert list(islice(stores.batches.due(NOW + 10 * HOUR), 3)) == [
        batch_id for _, batch_id in sorted(due)[:3]
    ]
    assert list(stores.batches.due(max(due)[0])) == [batch_id for _, batch_id in sorted(due)[:-1]]


def test_ended_batches_and_those_that_are_due_later_are_left_out(stores):
    batch = put(stores, 8)
    put(stores, 9, state=State.COMPLETE)
    at = batch.due_at

    assert list(stores.batches.due(at)) == []
    assert list(stores.batches.due(at + 1)) == [8]
    stores.batches.touch(8, Activity(batch.touched_at, at + 5))
    assert list(stores.batches.due(at + 1)) == []
    assert list(stores.batches.due(at + 6)) == [8]
    stores.batches.end(8, State.ORPHANED, now=at, sources=LIVE)
    assert list(stores.batches.due(at + 6)) == []


def test_more_than_a_page_of_one_shard(stores):
    for number in range(230):
        put(stores, 8 * number, touched_at=NOW + number)

    assert list(stores.batches.due(NOW + 1_000 * HOUR)) == [8 * number for number in range(230)]


ITEM = ItemPlace(8, 3)


class TestChildren:
    def test_an_item_has_one_child(self, stores):
        first, second = new_batch(9), new_batch(10)

        assert stores.batches.child_of(ITEM) is None
        assert stores.batches.create_child(first, ITEM) == Adoption(first, 9)
        assert stores.batches.create_child(second, ITEM) == Adoption(None, 9)

        assert stores.batches.child_of(ITEM) == 9
        assert stores.batches.read([9, 10]) == {9: first}

    def test_items_and_batches_are_kept_apart(self, stores):
        for child, place in ((9, ITEM), (10, ItemPlace(8, 30)), (11, ItemPlace(80, 3))):
            assert stores.batches.create_child(new_batch(child), place).child == child
        assert stores.batches.child_of(ITEM) == 9

    def test_creating_the_same_child_again_gives_its_row(self, stores):
        first = new_batch(9)
        stores.batches.create_child(first, ITEM)
        stores.batches.allocate(9, 5, activity=None, room=None)

        again = stores.batches.create_child(first, ITEM)

        assert again == Adoption(row_of(stores, 9), 9)
        assert again.row is not None
        assert again.row.items == 5

    def test_an_id_is_taken_once(self, stores):
        batch = put(stores)

        assert stores.batches.create_child(replace(batch, salt=bytes(16)), ITEM) == Adoption(None, None)
        assert stores.batches.child_of(ITEM) is None

    def test_a_child_takes_the_place_of_the_one_that_is_named(self, stores):
        first, second, third = (new_batch(batch_id) for batch_id in (9, 10, 11))
        stores.batches.create_child(first, ITEM)

        assert stores.batches.create_child(second, ITEM, instead_of=9) == Adoption(second, 10)
        assert stores.batches.create_child(third, ITEM, instead_of=9) == Adoption(None, 10)

        assert stores.batches.child_of(ITEM) == 10
        # The write of the first comes again, after all that
        assert stores.batches.create_child(first, ITEM) == Adoption(first, 9)
        assert stores.batches.child_of(ITEM) == 10

    def test_a_batch_that_is_created_closed_is_looked_at_like_one_that_was_closed(self, stores):
        put(stores, 9, state=State.CLOSED, closed_at=NOW, items=3)
        minutes = 60_000

        assert list(stores.batches.due(NOW + 15 * minutes)) == []
        assert list(stores.batches.due(NOW + 15 * minutes + 1)) == [9]
