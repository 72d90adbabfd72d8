"""What every store promises, whatever it keeps its rows in."""

import base64
import json
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import reduce
from itertools import chain
from operator import or_

import pytest

from fanin.app.ports.batches import Activity, FailureRow
from fanin.app.ports.words import Claim, Claimed, Clear, Cleared, WordKey
from fanin.domain.batch import LIVE, Batch, Kind, Mode, OnDeadline, State
from fanin.domain.ids import MAX_ITEMS
from fanin.domain.tree import Tree
from fanin.errors import IdempotencyKeyReused, InvalidRequest

from .conftest import EMULATOR, MEMORY, MOTO, Stores, opened

FULL = 2**64 - 1
LATER = 1_800_000_000  # seconds
KEY = WordKey(7, 0, 3)

NOW = 1_790_000_000_000
HOUR = 3_600_000
TERMINAL = [State.COMPLETE, State.TIMED_OUT, State.CANCELLED, State.ORPHANED]


def clear(stores: Stores, mask: int, key: WordKey = KEY, *, failed: bool = False) -> Cleared:
    (cleared,) = stores.words.clear([Clear(key, mask, LATER, failed)])
    return cleared


def new_batch(batch_id: int = 8, **values: object) -> Batch:
    row = Batch(
        batch_id=batch_id,
        salt=batch_id.to_bytes(16, "big"),
        created_at=NOW,
        touched_at=NOW,
        expires_at=LATER,
        open_idle_ttl=7200,
        closed_idle_ttl=604_800,
    )
    return replace(row, **values)


def put(stores: Stores, batch_id: int = 8, **values: object) -> Batch:
    batch = new_batch(batch_id, **values)
    assert stores.batches.create(batch)
    return batch


def row_of(stores: Stores, batch_id: int = 8) -> Batch:
    return stores.batches.read([batch_id])[batch_id]


def claim(stores: Stores, position: int, *, now: int = 100, until: int = 130) -> Claimed:
    (claimed,) = stores.words.claim([Claim(KEY, position, now, until, LATER)])
    return claimed


class TestClaims:
    def test_a_lease_is_one_holders_until_it_is_over(self, stores: Stores) -> None:
        assert claim(stores, 5) == Claimed(pending=True, until=130, taken=True)
        assert claim(stores, 5, now=129, until=159) == Claimed(pending=True, until=130, taken=False)
        assert claim(stores, 5, now=130, until=160) == Claimed(pending=True, until=160, taken=True)

    def test_leases_and_bits_of_a_word_do_not_touch_each_other(self, stores: Stores) -> None:
        assert claim(stores, 0).taken
        assert claim(stores, 63).taken
        assert stores.words.read([KEY]).get(KEY, FULL) == FULL
        assert clear(stores, 0b1) == Cleared(FULL - 1, 0b1)
        assert clear(stores, 0b11) == Cleared(FULL - 3, 0b10)
        assert not claim(stores, 63).taken
        assert claim(stores, 2).taken

    @pytest.mark.parametrize("leased", [False, True])
    def test_a_clear_bit_cannot_be_claimed(self, stores: Stores, leased: bool) -> None:
        if leased:
            claim(stores, 5)
        clear(stores, 1 << 5)
        assert claim(stores, 5, now=500, until=530) == Claimed(pending=False, until=0, taken=False)

    def test_a_finished_word_has_nothing_to_claim(self, stores: Stores) -> None:
        clear(stores, FULL)
        assert claim(stores, 7) == Claimed(pending=False, until=0, taken=False)
        assert stores.words.read([KEY]) == {KEY: 0}

    def test_of_many_at_once_one_gets_it(self, racing: Stores) -> None:
        with ThreadPoolExecutor(8) as pool:
            answers = list(pool.map(lambda n: claim(racing, 9, until=130 + n), range(16)))
        (winner,) = [answer for answer in answers if answer.taken]
        assert {answer.until for answer in answers} == {winner.until}


class TestWords:
    def test_a_word_that_was_never_written_has_no_row(self, stores: Stores) -> None:
        assert stores.words.read([KEY]) == {}
        assert stores.words.read([]) == {}
        assert stores.words.clear([]) == []

    @pytest.mark.parametrize("bit", [0, 1, 31, 32, 53, 62, 63])
    def test_a_cleared_bit_is_first_once(self, stores: Stores, bit: int) -> None:
        assert clear(stores, 1 << bit) == Cleared(FULL ^ 1 << bit, 1 << bit)
        assert clear(stores, 1 << bit) == Cleared(FULL ^ 1 << bit, 0)
        assert stores.words.read([KEY]) == {KEY: FULL ^ 1 << bit}

    def test_bits_that_were_clear_are_not_first_but_the_others_are(self, stores: Stores) -> None:
        clear(stores, 0b0110)

        answer = clear(stores, 0b1111 | 1 << 63)

        assert answer == Cleared(FULL ^ (0b1111 | 1 << 63), 0b1001 | 1 << 63)

    def test_a_full_mask_finishes_an_unwritten_word(self, stores: Stores) -> None:
        assert clear(stores, FULL) == Cleared(0, FULL)
        assert stores.words.read([KEY]) == {KEY: 0}
        assert clear(stores, FULL) == Cleared(0, 0)

    def test_a_full_mask_finishes_a_half_done_word(self, stores: Stores) -> None:
        clear(stores, 0xFF)

        assert clear(stores, FULL) == Cleared(0, FULL ^ 0xFF)

    def test_a_finished_word_has_no_bits_left(self, stores: Stores) -> None:
        clear(stores, FULL)

        assert clear(stores, 0b101) == Cleared(0, 0)

    def test_single_bits_finish_a_word(self, stores: Stores) -> None:
        words = [clear(stores, 1 << bit).word for bit in range(64)]

        assert words == [FULL >> bit + 1 << bit + 1 for bit in range(64)]

    def test_many_words_in_one_call_are_answered_in_order(self, stores: Stores) -> None:
        # Given every third word half done
        keys = [WordKey(7, number % 3, number) for number in range(130)]
        stores.words.clear([Clear(key, 0b01, LATER) for key in keys[::3]])

        # When all of them are cleared at once
        answers = stores.words.clear([Clear(key, 0b11, LATER) for key in keys])

        # Then each answer tells its own word, and all read back, more than one request's worth
        assert [answer.first for answer in answers] == [0b11 if n % 3 else 0b10 for n in range(130)]
        assert stores.words.read([*keys, *keys]) == dict.fromkeys(keys, FULL ^ 0b11)

    def test_words_of_other_batches_and_levels_are_others(self, stores: Stores) -> None:
        clear(stores, 0b1, WordKey(7, 0, 3))

        assert clear(stores, 0b1, WordKey(7, 1, 3)).first == 0b1
        assert clear(stores, 0b1, WordKey(8, 0, 3)).first == 0b1
        assert clear(stores, 0b1, WordKey(7, 0, 31)).first == 0b1

    def test_failed_bits_are_those_that_a_failure_cleared_first(self, stores: Stores) -> None:
        clear(stores, 0b0001)

        answers = [
            clear(stores, 0b0011, failed=True),
            clear(stores, 0b0110),
            clear(stores, 0b1110, failed=True),
        ]

        assert [answer.first for answer in answers] == [0b0010, 0b0100, 0b1000]
        assert stores.words.read_failed([KEY, WordKey(7, 0, 4)]) == {KEY: 0b1010}

    def test_a_word_without_failures_is_left_out_of_the_failed(self, stores: Stores) -> None:
        clear(stores, 0b1)

        assert stores.words.read_failed([KEY]) == {}

    def test_a_whole_word_can_fail(self, stores: Stores) -> None:
        clear(stores, FULL, failed=True)

        assert stores.words.read_failed([KEY]) == {KEY: FULL}

    @pytest.mark.parametrize("kind", [MEMORY, MOTO, EMULATOR])
    def test_narrow_words_are_full_at_their_width(self, kind: str) -> None:
        with opened(kind, Tree(width=3)) as stores:
            assert clear(stores, 0b001) == Cleared(0b110, 0b001)
            assert clear(stores, 0b111) == Cleared(0, 0b110)

    def test_of_many_writers_each_bit_has_one_first(self, racing: Stores) -> None:
        # Given 16 writers that together clear every bit of two words twice or more, in masks that overlap
        keys = [KEY, WordKey(7, 0, 4)]
        masks = [(0b111 << step) & FULL for step in range(64)] * 2

        # When they all go at once
        def write(number: int) -> list[Cleared]:
            return racing.words.clear([Clear(key, masks[number], LATER) for key in keys])

        with ThreadPoolExecutor(16) as pool:
            answers = list(pool.map(write, range(len(masks))))

        # Then the firsts of a word are disjoint and complete, and exactly one writer saw it finished first
        for place, key in enumerate(keys):
            firsts = [answer[place].first for answer in answers]
            assert sum(mask.bit_count() for mask in firsts) == 64
            assert reduce(or_, firsts) == FULL
            assert racing.words.read([key]) == {key: 0}
            assert sum(answer[place].word == 0 and answer[place].first > 0 for answer in answers) == 1


class TestRows:
    def test_a_row_reads_back_as_it_was_put(self, stores: Stores) -> None:
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

    def test_unknown_rows_are_left_out(self, stores: Stores) -> None:
        batch = put(stores)

        assert stores.batches.read([9, 8]) == {8: batch}
        assert stores.batches.read([]) == {}

    def test_more_rows_than_a_request_takes(self, stores: Stores) -> None:
        for batch_id in range(120):
            put(stores, batch_id)

        assert sorted(stores.batches.read(range(130))) == list(range(120))

    def test_an_id_is_taken_once(self, stores: Stores) -> None:
        batch = put(stores)

        assert not stores.batches.create(replace(batch, salt=bytes(16)))
        assert row_of(stores) == batch

    def test_creating_the_same_batch_again_is_no_clash(self, stores: Stores) -> None:
        batch = put(stores)
        stores.batches.allocate(8, 5, activity=None, room=None)

        assert stores.batches.create(batch)
        assert row_of(stores).items == 5

    def test_no_call_makes_a_row_of_an_unknown_batch(self, stores: Stores) -> None:
        batches, activity = stores.batches, Activity(NOW, NOW)

        assert batches.allocate(9, 1, activity=activity, room=None) is None
        assert batches.allocate_once(new_batch(9), 1, "key", activity=activity) is None
        assert not batches.rebound(9, items=0, pending=0)
        assert batches.allocate_counted(9, 1, items=0, pending=0, activity=activity) is None
        assert batches.close(9, now=NOW, activity=activity) == (None, False)
        assert batches.end(9, State.CANCELLED, now=NOW, sources=list(State)) == (None, False)
        assert batches.count(9, 1, activity=activity) is None
        assert not batches.expire(9, now=NOW)
        batches.touch(9, activity)
        assert batches.read([9]) == {}


class TestAllocate:
    def test_ranges_follow_each_other(self, stores: Stores) -> None:
        put(stores)

        rows = [stores.batches.allocate(8, n, activity=None, room=None) for n in (1, 2**32 - 1, 5)]

        assert [row.items for row in rows if row] == [1, 2**32, 2**32 + 5]
        assert rows[-1] == row_of(stores)

    def test_activity_moves_the_times_and_none_leaves_them(self, stores: Stores) -> None:
        put(stores)

        assert stores.batches.allocate(8, 1, activity=None, room=None) == new_batch(items=1)
        active = stores.batches.allocate(8, 1, activity=Activity(NOW + 5, NOW + 9), room=None)

        assert active == new_batch(items=2, touched_at=NOW + 5)
        assert stores.batches.page(State.OPEN, due_before=NOW + 10).batches == [active]
        assert stores.batches.page(State.OPEN, due_before=NOW + 9).batches == []

    @pytest.mark.parametrize("state", [State.CLOSED, *TERMINAL])
    def test_only_an_open_batch_takes_items(self, stores: Stores, state: State) -> None:
        put(stores, state=state)

        assert stores.batches.allocate(8, 1, activity=None, room=None) is None
        assert row_of(stores).items == 0

    def test_a_bounded_batch_takes_items_while_its_bound_is_within_the_room(self, stores: Stores) -> None:
        put(stores, limit=10)

        assert stores.batches.allocate(8, 7, activity=None, room=3) == new_batch(
            limit=10, items=7, pending_bound=7
        )
        assert stores.batches.allocate(8, 4, activity=None, room=6) is None
        assert stores.batches.allocate(8, 3, activity=None, room=7) == new_batch(
            limit=10, items=10, pending_bound=10
        )
        assert stores.batches.allocate(8, 11, activity=None, room=-1) is None

    def test_the_caller_must_know_whether_there_is_a_limit(self, stores: Stores) -> None:
        put(stores, 8)
        put(stores, 9, limit=10)

        assert stores.batches.allocate(8, 1, activity=None, room=9) is None
        assert stores.batches.allocate(9, 1, activity=None, room=None) is None

    def test_a_batch_holds_2_to_the_40_items(self, stores: Stores) -> None:
        put(stores, items=MAX_ITEMS - 2)

        assert stores.batches.allocate(8, 3, activity=None, room=None) is None
        row = stores.batches.allocate(8, 2, activity=None, room=None)

        assert row is not None
        assert row.items == MAX_ITEMS

    def test_writers_at_once_get_ranges_of_their_own(self, racing: Stores) -> None:
        put(racing)

        def allocate(n: int) -> range:
            row = racing.batches.allocate(8, n, activity=None, room=None)
            assert row is not None
            return range(row.items - n, row.items)

        with ThreadPoolExecutor(8) as pool:
            ranges = list(pool.map(allocate, [1, 2, 3] * 20))

        assert sorted(i for block in ranges for i in block) == list(range(120))

    def test_of_writers_at_once_no_more_than_the_limit_get_in(self, racing: Stores) -> None:
        put(racing, limit=10)

        with ThreadPoolExecutor(8) as pool:
            rows = list(pool.map(lambda _: racing.batches.allocate(8, 3, activity=None, room=7), range(16)))

        assert sum(row is not None for row in rows) == 3
        assert row_of(racing) == new_batch(limit=10, items=9, pending_bound=9)


class TestAllocateOnce:
    ACTIVITY = Activity(NOW + 5, NOW + 9)

    def test_a_key_stands_for_one_range(self, stores: Stores) -> None:
        put(stores, items=3)

        first = stores.batches.allocate_once(row_of(stores), 4, "a", activity=self.ACTIVITY)
        again = stores.batches.allocate_once(row_of(stores), 4, "a", activity=self.ACTIVITY)
        other = stores.batches.allocate_once(row_of(stores), 4, "b", activity=self.ACTIVITY)

        assert (first, again, other) == (3, 3, 7)
        assert row_of(stores) == new_batch(items=11, touched_at=NOW + 5)
        assert stores.batches.page(State.OPEN, due_before=NOW + 10).batches == [row_of(stores)]

    def test_a_key_is_of_its_batch(self, stores: Stores) -> None:
        put(stores, 8)
        put(stores, 9, items=2)

        assert stores.batches.allocate_once(row_of(stores, 8), 4, "a", activity=self.ACTIVITY) == 0
        assert stores.batches.allocate_once(row_of(stores, 9), 5, "a", activity=self.ACTIVITY) == 2

    def test_a_key_is_for_one_count(self, stores: Stores) -> None:
        batch = put(stores)
        stores.batches.allocate_once(batch, 4, "a", activity=self.ACTIVITY)

        with pytest.raises(IdempotencyKeyReused, match=r"'a' was used for 4 items"):
            stores.batches.allocate_once(row_of(stores), 5, "a", activity=self.ACTIVITY)
        assert row_of(stores).items == 4

    def test_a_batch_that_has_changed_is_to_be_read_again(self, stores: Stores) -> None:
        stale = put(stores)
        stores.batches.allocate(8, 1, activity=None, room=None)

        assert stores.batches.allocate_once(stale, 4, "a", activity=self.ACTIVITY) is None
        assert row_of(stores).items == 1
        assert stores.batches.allocate_once(row_of(stores), 4, "a", activity=self.ACTIVITY) == 1

    def test_a_used_key_answers_after_the_batch_has_closed_and_changed(self, stores: Stores) -> None:
        # Given a key used on a batch that went on, closed and ended
        stale = put(stores)
        stores.batches.allocate_once(stale, 4, "a", activity=self.ACTIVITY)
        stores.batches.allocate(8, 1, activity=None, room=None)
        stores.batches.close(8, now=NOW)

        # When it is used again, by one who read the batch before or after that
        answers = [
            stores.batches.allocate_once(batch, 4, "a", activity=self.ACTIVITY)
            for batch in (stale, row_of(stores))
        ]

        # Then it is the first answer; a fresh key gets nothing, and a wrong count is still refused
        assert answers == [0, 0]
        assert stores.batches.allocate_once(row_of(stores), 4, "b", activity=self.ACTIVITY) is None
        with pytest.raises(IdempotencyKeyReused):
            stores.batches.allocate_once(row_of(stores), 5, "a", activity=self.ACTIVITY)
        assert row_of(stores).items == 5

    def test_a_bounded_batch_must_have_room(self, stores: Stores) -> None:
        put(stores, limit=10)

        firsts = [
            stores.batches.allocate_once(row_of(stores), n, key, activity=self.ACTIVITY)
            for n, key in [(7, "a"), (4, "b"), (3, "c"), (11, "d"), (7, "a")]
        ]

        assert firsts == [0, None, 7, None, 0]
        assert row_of(stores).pending_bound == 10

    def test_a_batch_holds_2_to_the_40_items(self, stores: Stores) -> None:
        batch = put(stores, items=MAX_ITEMS - 2)

        assert stores.batches.allocate_once(batch, 3, "a", activity=self.ACTIVITY) is None
        assert stores.batches.allocate_once(batch, 2, "a", activity=self.ACTIVITY) == MAX_ITEMS - 2

    def test_of_writers_at_once_with_one_key_all_get_one_range(self, racing: Stores) -> None:
        put(racing)

        def allocate(number: int) -> int:
            key = f"key-{number % 4}"
            while True:
                first = racing.batches.allocate_once(row_of(racing), 5, key, activity=self.ACTIVITY)
                if first is not None:
                    return first

        with ThreadPoolExecutor(8) as pool:
            firsts = list(pool.map(allocate, range(32)))

        assert Counter(firsts) == dict.fromkeys([0, 5, 10, 15], 8)
        assert all(len(set(firsts[number::4])) == 1 for number in range(4))
        assert row_of(racing).items == 20


class TestMoves:
    def test_a_fresh_count_is_kept_unless_items_were_added(self, stores: Stores) -> None:
        put(stores, limit=10, items=10, pending_bound=10)

        assert stores.batches.rebound(8, items=10, pending=4)
        assert row_of(stores) == new_batch(limit=10, items=10, pending_bound=4)
        assert not stores.batches.rebound(8, items=9, pending=0)
        assert row_of(stores).pending_bound == 4

    def test_counted_items_are_added_with_the_count_unless_items_were_added(self, stores: Stores) -> None:
        put(stores, limit=10, items=10, pending_bound=10)
        activity = Activity(NOW + 5, NOW + 9)

        added = stores.batches.allocate_counted(8, 3, items=10, pending=4, activity=activity)

        assert added == new_batch(limit=10, items=13, pending_bound=7, touched_at=NOW + 5)
        assert row_of(stores) == added
        assert stores.batches.allocate_counted(8, 3, items=10, pending=4, activity=activity) is None
        assert row_of(stores) == added

    def test_counted_items_are_added_to_open_bounded_batches_only(self, stores: Stores) -> None:
        put(stores, limit=10, items=1, state=State.CLOSED)
        put(stores, 9, items=1)
        activity = Activity(NOW, NOW)
        for batch_id in (8, 9):
            call = stores.batches.allocate_counted
            assert call(batch_id, 1, items=1, pending=0, activity=activity) is None

    def test_an_open_batch_closes_once(self, stores: Stores) -> None:
        put(stores)
        closed = new_batch(state=State.CLOSED, closed_at=NOW + 1, touched_at=NOW + 5)

        assert stores.batches.close(8, now=NOW + 1, activity=Activity(NOW + 5, NOW + 9)) == (closed, True)
        assert stores.batches.close(8, now=NOW + 2) == (closed, False)
        assert row_of(stores) == closed

    def test_closing_without_activity_leaves_the_times(self, stores: Stores) -> None:
        batch = put(stores)

        row, moved = stores.batches.close(8, now=NOW + 1)

        assert (row, moved) == (replace(batch, state=State.CLOSED, closed_at=NOW + 1), True)
        assert stores.batches.page(State.CLOSED, due_before=batch.due_at + 1).batches == [row]
        assert stores.batches.page(State.CLOSED, due_before=batch.due_at).batches == []

    @pytest.mark.parametrize("state", TERMINAL)
    def test_a_batch_ends_once(self, stores: Stores, state: State) -> None:
        put(stores)
        ended = new_batch(state=state, ended_at=NOW + 1, partial=True)

        first = stores.batches.end(8, state, now=NOW + 1, sources=LIVE, partial=True)
        later = [stores.batches.end(8, other, now=NOW + 2, sources=LIVE) for other in TERMINAL]

        assert first == (ended, True)
        assert later == [(ended, False)] * 4
        assert stores.batches.close(8, now=NOW + 3) == (ended, False)
        assert row_of(stores) == ended

    def test_a_deadline_is_put_off_once_from_where_it_was_seen(self, stores: Stores) -> None:
        put(stores, state=State.CLOSED, deadline=NOW + 5)
        activity = Activity(NOW + 7, NOW + 9)
        later = new_batch(state=State.CLOSED, deadline=NOW + 50, retries=1, touched_at=activity.touched_at)

        first = stores.batches.postpone(8, deadline=NOW + 5, until=NOW + 50, activity=activity)
        again = stores.batches.postpone(8, deadline=NOW + 5, until=NOW + 60, activity=activity)

        assert first == (later, True)
        assert again == (later, False)
        assert row_of(stores) == later

    def test_an_empty_open_batch_begins_once_with_its_items(self, stores: Stores) -> None:
        put(stores, deadline=NOW + 5, retries=2)
        activity = Activity(NOW + 7, NOW + 9)
        begun = new_batch(
            state=State.CLOSED, closed_at=NOW + 1, items=70, deadline=NOW + 50, touched_at=NOW + 7
        )

        first = stores.batches.begin(8, 70, now=NOW + 1, deadline=NOW + 50, activity=activity)
        again = stores.batches.begin(8, 71, now=NOW + 2, deadline=NOW + 60, activity=activity)

        assert first == (begun, True)
        assert again == (begun, False)
        assert row_of(stores) == begun
        assert stores.batches.page(State.CLOSED, due_before=NOW + 10).batches == [begun]

    def test_a_batch_with_items_does_not_begin(self, stores: Stores) -> None:
        batch = put(stores, items=1)

        moved = stores.batches.begin(8, 70, now=NOW, deadline=NOW, activity=Activity(NOW, NOW))

        assert moved == (batch, False)

    @pytest.mark.parametrize("state", TERMINAL)
    def test_an_ended_batch_has_no_other_deadline(self, stores: Stores, state: State) -> None:
        batch = put(stores, state=state, deadline=NOW + 5)

        moved = stores.batches.postpone(8, deadline=NOW + 5, until=NOW + 50, activity=Activity(NOW, NOW))

        assert moved == (batch, False)

    def test_replies_of_a_scatter_are_counted_too(self, stores: Stores) -> None:
        put(stores, kind=Kind.SCATTER, state=State.CLOSED)

        row = stores.batches.count(8, 3, activity=None)

        assert row is not None
        assert row.acked == 3

    def test_a_batch_ends_from_the_given_states_only(self, stores: Stores) -> None:
        batch = put(stores)

        assert stores.batches.end(8, State.COMPLETE, now=NOW, sources=[State.CLOSED]) == (batch, False)
        stores.batches.close(8, now=NOW)
        assert stores.batches.end(8, State.COMPLETE, now=NOW, sources=[State.CLOSED])[1]

    def test_activity_saves_a_batch_from_the_reaper(self, stores: Stores) -> None:
        put(stores)
        stores.batches.touch(8, Activity(NOW + 5, NOW + 9))

        row, moved = stores.batches.end(8, State.ORPHANED, now=NOW, sources=LIVE, touched_at=NOW)
        assert (row, moved) == (new_batch(touched_at=NOW + 5), False)
        assert stores.batches.end(8, State.ORPHANED, now=NOW, sources=LIVE, touched_at=NOW + 5)[1]

    def test_of_enders_at_once_one_moves_the_batch(self, racing: Stores) -> None:
        put(racing)

        with ThreadPoolExecutor(8) as pool:
            answers = list(
                pool.map(lambda state: racing.batches.end(8, state, now=NOW, sources=LIVE), TERMINAL * 8)
            )

        assert [moved for _, moved in answers].count(True) == 1
        assert {str(row) for row, _ in answers} == {str(row_of(racing))}

    def test_touch_goes_forward_only(self, stores: Stores) -> None:
        put(stores)

        stores.batches.touch(8, Activity(NOW + 5, NOW + 9))
        stores.batches.touch(8, Activity(NOW + 4, NOW + 90))

        assert row_of(stores) == new_batch(touched_at=NOW + 5)
        assert stores.batches.page(State.OPEN, due_before=NOW + 10).batches == [row_of(stores)]

    def test_touch_moves_the_index_key_of_a_row_touched_at_that_time(self, stores: Stores) -> None:
        put(stores)

        stores.batches.touch(8, Activity(NOW, NOW + 90))

        assert row_of(stores) == new_batch()
        assert stores.batches.page(State.OPEN, due_before=NOW + 90).batches == []
        assert stores.batches.page(State.OPEN, due_before=NOW + 91).batches == [row_of(stores)]

    @pytest.mark.parametrize("state", TERMINAL)
    def test_touch_leaves_an_ended_batch(self, stores: Stores, state: State) -> None:
        batch = put(stores, state=state)

        stores.batches.touch(8, Activity(NOW + 5, NOW + 9))

        assert row_of(stores) == batch
        assert stores.batches.page(state, due_before=NOW + 10).batches == []

    @pytest.mark.parametrize("state", LIVE)
    def test_counts_add_up(self, stores: Stores, state: State) -> None:
        put(stores, mode=Mode.ESTIMATED, state=state)

        stores.batches.count(8, 2, activity=None)
        row = stores.batches.count(8, 3, activity=Activity(NOW + 5, NOW + 9))

        assert row == new_batch(mode=Mode.ESTIMATED, state=state, acked=5, touched_at=NOW + 5)

    def test_counts_are_for_live_estimated_batches(self, stores: Stores) -> None:
        put(stores, 8)
        put(stores, 9, mode=Mode.ESTIMATED, state=State.COMPLETE)

        assert stores.batches.count(8, 1, activity=None) is None
        assert stores.batches.count(9, 1, activity=None) is None
        assert row_of(stores, 9).acked == 0

    @pytest.mark.parametrize("state", TERMINAL)
    def test_an_ended_batch_expires_at_once(self, stores: Stores, state: State) -> None:
        put(stores, state=state)

        assert stores.batches.expire(8, now=NOW + 1)
        assert row_of(stores).gone(NOW + 1)
        assert not stores.batches.expire(8, now=NOW + 2)

    @pytest.mark.parametrize("state", LIVE)
    def test_a_live_batch_does_not_expire(self, stores: Stores, state: State) -> None:
        batch = put(stores, state=state)

        assert not stores.batches.expire(8, now=NOW)
        assert row_of(stores) == batch


class TestPage:
    @staticmethod
    def walk(stores: Stores, state: State, limit: int, due_before: int | None = None) -> list[list[int]]:
        pages, cursor = [], None
        while True:
            page = stores.batches.page(state, due_before=due_before, cursor=cursor, limit=limit)
            pages.append([batch.batch_id for batch in page.batches])
            assert len(page.batches) <= limit
            if page.cursor is None:
                return pages
            cursor = page.cursor

    def test_pages_hold_every_batch_of_the_state_once(self, stores: Stores) -> None:
        # Given 20 open batches, due in the order opposite to their ids, and others
        for batch_id in range(20):
            put(stores, batch_id, touched_at=NOW - batch_id * HOUR)
        put(stores, 30, state=State.CLOSED)

        for limit in (1, 3, 20, 100):
            # When they are listed in pages
            pages = self.walk(stores, State.OPEN, limit)

            # Then all are there, a shard at a time, and the first due of a shard is the first
            assert list(chain(*pages)) == sorted(range(20), key=lambda batch_id: (batch_id % 8, -batch_id))
        assert self.walk(stores, State.CLOSED, 10) == [[30]]
        assert self.walk(stores, State.ORPHANED, 10) == [[]]

    def test_a_page_is_filled_from_all_shards(self, stores: Stores) -> None:
        for batch_id in range(8):
            put(stores, batch_id)

        assert len(stores.batches.page(State.OPEN, limit=6).batches) == 6

    def test_only_what_is_due(self, stores: Stores) -> None:
        due = {put(stores, batch_id, touched_at=NOW + batch_id).due_at: batch_id for batch_id in range(10)}

        listed = self.walk(stores, State.OPEN, 3, due_before=min(due) + 4)

        assert sorted(chain(*listed)) == [0, 1, 2, 3]

    def test_a_batch_that_moved_is_in_the_shard_of_its_new_state_only(self, stores: Stores) -> None:
        put(stores)
        stores.batches.close(8, now=NOW)
        assert [self.walk(stores, state, 9) for state in State][:3] == [[[]], [[8]], [[]]]

        stores.batches.end(8, State.COMPLETE, now=NOW, sources=LIVE)
        assert [self.walk(stores, state, 9) for state in State][:3] == [[[]], [[]], [[8]]]

    def test_a_page_shows_rows_as_they_are_now(self, stores: Stores) -> None:
        put(stores)
        stores.batches.allocate(8, 5, activity=None, room=None)

        assert stores.batches.page(State.OPEN).batches == [new_batch(items=5)]


class TestFailures:
    def test_notes_are_listed_by_ordinal(self, stores: Stores) -> None:
        ordinals = [MAX_ITEMS - 1, 10, 9, 0, 100, *range(1000, 1040)]
        notes = {n: FailureRow(n, f"8:g:{n}", f"reason {n} ☂") for n in ordinals}
        stores.parts.put_failures(8, notes.values(), expires_at=LATER)
        stores.parts.put_failures(9, [FailureRow(1, "9:g:1", "")], expires_at=LATER)

        for limit in (1, 7, 45, 100):
            listed, cursor = stores.parts.failures(8, limit=limit)
            while cursor is not None:
                page, cursor = stores.parts.failures(8, limit=limit, cursor=cursor)
                assert len(page) <= limit
                listed += page
            assert listed == [notes[n] for n in sorted(notes)]

    def test_the_last_note_of_an_item_stays(self, stores: Stores) -> None:
        notes = [FailureRow(n % 30, f"8:g:{n % 30}", f"try {n}") for n in range(60)]
        stores.parts.put_failures(8, notes, expires_at=LATER)
        stores.parts.put_failures(8, [FailureRow(0, "8:g:0", "again")], expires_at=LATER)

        reasons = [note.reason for note in stores.parts.failures(8)[0]]

        assert reasons == ["again", *(f"try {n}" for n in range(31, 60))]

    def test_idempotency_keys_are_no_notes(self, stores: Stores) -> None:
        batch = put(stores)
        stores.batches.allocate_once(batch, 4, "zzz", activity=Activity(NOW, NOW))

        assert stores.parts.failures(8) == ([], None)

    def test_no_notes_is_no_write(self, stores: Stores) -> None:
        stores.parts.put_failures(8, [], expires_at=LATER)

        assert stores.parts.failures(8) == ([], None)


def cursor_of(*parts: object) -> str:
    return base64.urlsafe_b64encode(json.dumps(parts).encode()).decode().rstrip("=")


class TestCursors:
    MALFORMED = (
        "",
        "x",
        "☂",
        "====",
        "a b",
        "A" * 10_000,
        cursor_of(),
        cursor_of("batches open"),
        cursor_of("batches open", -1),
        cursor_of("batches open", 1.5),
        cursor_of("batches open", True),
        cursor_of("batches open", "1"),
        cursor_of("batches open", 1, 2),
        cursor_of("batches open", 1, 2, 2**53),
        base64.urlsafe_b64encode(b"7").decode(),
        base64.urlsafe_b64encode(b'{"batches open": 1}').decode(),
        base64.urlsafe_b64encode(b"\xff\xfe").decode(),
    )

    @pytest.mark.parametrize("cursor", MALFORMED)
    def test_a_malformed_cursor_is_refused(self, stores: Stores, cursor: str) -> None:
        with pytest.raises(InvalidRequest, match="cursor"):
            stores.batches.page(State.OPEN, cursor=cursor)
        with pytest.raises(InvalidRequest, match="cursor"):
            stores.parts.failures(8, cursor=cursor)

    def test_a_cursor_is_good_for_its_own_listing_only(self, stores: Stores) -> None:
        for batch_id in range(3):
            put(stores, batch_id)
        batches = stores.batches.page(State.OPEN, limit=1).cursor
        notes = [FailureRow(n, f"8:g:{n}", "") for n in range(3)]
        stores.parts.put_failures(8, notes, expires_at=LATER)
        failures = stores.parts.failures(8, limit=1)[1]

        for use in (
            lambda: stores.batches.page(State.CLOSED, cursor=batches),
            lambda: stores.batches.page(State.OPEN, cursor=failures),
            lambda: stores.parts.failures(9, cursor=failures),
            lambda: stores.parts.failures(8, cursor=batches),
        ):
            with pytest.raises(InvalidRequest, match="cursor"):
                use()
