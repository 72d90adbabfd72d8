"""What every store of words promises: bits cleared once, and leases."""

from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import reduce
from operator import or_

import pytest

from fanin.app.ports.words import Claimed, Clear, Cleared, ItemClaim, Tally, WordKey, WordRow
from fanin.domain.tree import Tree

from .conftest import EMULATOR, MEMORY, SECOND, Stores, opened
from .given import FULL, KEY, LATER, clear


def claim(stores: Stores, position: int, *, now: int = 100, until: int = 130) -> Claimed:
    (claimed,) = stores.words.claim([ItemClaim(KEY, position, now, until, LATER)])
    return claimed


def raised(stores: Stores, key: WordKey, mask: int, carried: Mapping[int, Tally]) -> Cleared:
    (cleared,) = stores.words.clear([Clear(key, mask, LATER, carried=carried)])
    assert isinstance(cleared, Cleared)
    return cleared


class TestClaims:
    def test_a_lease_is_one_holders_until_it_is_over(self, stores):
        assert claim(stores, 5) == Claimed(pending=True, until=130, taken=True)
        assert claim(stores, 5, now=129, until=159) == Claimed(pending=True, until=130, taken=False)
        assert claim(stores, 5, now=130, until=160) == Claimed(pending=True, until=160, taken=True)

    def test_leases_and_bits_of_a_word_do_not_touch_each_other(self, stores):
        assert claim(stores, 0).taken
        assert claim(stores, 63).taken
        assert stores.words.read([KEY]).get(KEY, FULL) == FULL
        assert clear(stores, 0b1) == Cleared(FULL - 1, 0b1)
        assert clear(stores, 0b11) == Cleared(FULL - 3, 0b10)
        assert not claim(stores, 63).taken
        assert claim(stores, 2).taken

    def test_a_clear_bit_cannot_be_claimed(self, stores):
        claim(stores, 5)
        clear(stores, 0b11 << 5)
        for position in (5, 6):  # leased before, and not
            answer = claim(stores, position, now=500, until=530)
            assert answer == Claimed(pending=False, until=0, taken=False)

    def test_a_finished_word_has_nothing_to_claim(self, stores):
        clear(stores, FULL)
        assert claim(stores, 7) == Claimed(pending=False, until=0, taken=False)
        assert stores.words.read([KEY]) == {KEY: 0}

    def test_of_many_at_once_one_gets_it(self, stores):
        with ThreadPoolExecutor(8) as pool:
            answers = list(pool.map(lambda n: claim(stores, 9, until=130 + n), range(16)))
        (winner,) = [answer for answer in answers if answer.taken]
        assert {answer.until for answer in answers} == {winner.until}


class TestWords:
    def test_a_word_that_was_never_written_has_no_row(self, stores):
        assert stores.words.read([KEY]) == {}
        assert stores.words.read([]) == {}
        assert stores.words.clear([]) == []

    def test_a_cleared_bit_is_first_once(self, stores):
        assert clear(stores, 1 << 53) == Cleared(FULL ^ 1 << 53, 1 << 53)
        assert clear(stores, 1 << 53) == Cleared(FULL ^ 1 << 53, 0)
        assert stores.words.read([KEY]) == {KEY: FULL ^ 1 << 53}

    def test_a_full_mask_finishes_a_word_that_is_unwritten_or_half_done(self, stores):
        half = WordKey(7, 0, 4)
        assert clear(stores, FULL, failed=FULL) == Cleared(0, FULL, Tally(64))
        assert clear(stores, 0xFF, half) == Cleared(FULL ^ 0xFF, 0xFF)
        assert clear(stores, FULL, half) == Cleared(0, FULL ^ 0xFF)

        assert stores.words.read([KEY, half]) == {KEY: 0, half: 0}
        assert stores.words.read_failed([KEY, half]) == {KEY: FULL}
        for mask in (FULL, 0b101):
            assert clear(stores, mask, half) == Cleared(0, 0)

    def test_single_bits_finish_a_word(self, stores):
        words = [clear(stores, 1 << bit).word for bit in range(64)]

        assert words == [FULL >> bit + 1 << bit + 1 for bit in range(64)]

    def test_many_words_in_one_call_are_answered_in_order(self, stores):
        # Given every third word half done
        keys = [WordKey(7, number % 3, number) for number in range(104)]
        stores.words.clear([Clear(key, 0b01, LATER) for key in keys[::3]])
        # When all of them are cleared at once
        answers = stores.words.clear([Clear(key, 0b11, LATER) for key in keys])
        # Then each answer tells its own word, and all read back, more than one request's worth
        assert [answer.first for answer in answers] == [0b11 if n % 3 else 0b10 for n in range(104)]
        assert stores.words.read([*keys, *keys]) == dict.fromkeys(keys, FULL ^ 0b11)

    def test_words_of_other_batches_and_levels_are_others(self, stores):
        clear(stores, 0b1, WordKey(7, 0, 3))

        assert clear(stores, 0b1, WordKey(7, 1, 3)).first == 0b1
        assert clear(stores, 0b1, WordKey(8, 0, 3)).first == 0b1
        assert clear(stores, 0b1, WordKey(7, 0, 31)).first == 0b1

    def test_failed_bits_are_those_that_a_failure_cleared_first(self, stores):
        clear(stores, 0b0001)

        answers = [
            clear(stores, 0b0011, failed=0b0011),
            clear(stores, 0b0110),
            clear(stores, 0b1110, failed=0b1110),
        ]

        assert [answer.first for answer in answers] == [0b0010, 0b0100, 0b1000]
        assert stores.words.read_failed([KEY, WordKey(7, 0, 4)]) == {KEY: 0b1010}

    def test_one_write_clears_bits_of_which_some_have_failed(self, stores):
        clear(stores, 0b0011, failed=0b0010)

        answer = clear(stores, FULL, failed=0b1101)

        assert (answer.word, answer.first, answer.tally) == (0, FULL ^ 0b0011, Tally(3))
        assert stores.words.read_failed([KEY]) == {KEY: 0b1110}

    def test_a_word_without_failures_is_left_out_of_the_failed(self, stores):
        clear(stores, 0b1)

        assert stores.words.read_failed([KEY]) == {}

    def test_the_tally_of_a_word_of_level_0_is_what_has_failed_in_it(self, stores):
        clear(stores, 0b0001)

        assert clear(stores, 0b0111, failed=0b0111).tally == Tally(2)
        assert clear(stores, 0b1111).tally == Tally(2)
        assert clear(stores, 0b1111).tally == Tally(2)
        assert stores.words.read_tallied([KEY, WordKey(7, 0, 4)]) == {KEY: (FULL ^ 0b1111, Tally(2))}

    def test_tallies_go_up_once_with_the_bits_that_a_write_clears(self, stores):
        key = WordKey(7, 1, 0)
        carried = {0: Tally(), 1: Tally(5), 2: Tally(64), 63: Tally(1)}

        assert raised(stores, key, 0b0011, carried) == Cleared(FULL ^ 0b0011, 0b0011, Tally(5))
        assert raised(stores, key, 0b0011, carried) == Cleared(FULL ^ 0b0011, 0, Tally(5))
        assert raised(stores, key, 0b0110, carried) == Cleared(FULL ^ 0b0111, 0b0100, Tally(69))
        assert stores.words.read_tallied([key]) == {key: (FULL ^ 0b0111, Tally(69))}

    def test_a_bit_without_a_tally_leaves_the_sum_a_lower_bound(self, stores):
        """A range passes over the words below; a word passed over, or one below it, may hold failures."""
        passed, below = WordKey(7, 1, 0), WordKey(7, 1, 1)

        raised(stores, passed, 0b001, {0: Tally(5)})

        assert raised(stores, passed, 0b110, {1: Tally(1)}).tally == Tally(6, whole=False)
        assert raised(stores, below, 0b1, {0: Tally(5, whole=False)}).tally == Tally(5, whole=False)
        assert stores.words.read_tallied([passed])[passed].tally == Tally(6, whole=False)

    def test_an_untouched_word_has_no_row_and_no_tally(self, stores):
        assert stores.words.read_tallied([KEY]) == {}
        assert stores.words.read_tallied([]) == {}

    @pytest.mark.parametrize("kind", [MEMORY, SECOND, EMULATOR])
    def test_narrow_words_are_full_at_their_width(self, kind):
        with opened(kind, Tree(width=3)) as stores:
            assert clear(stores, 0b001) == Cleared(0b110, 0b001)
            assert clear(stores, 0b111) == Cleared(0, 0b110)

    def test_of_many_writers_each_bit_has_one_first(self, stores):
        # Given 16 writers that together clear every bit of two words twice or more, in masks that overlap
        keys = [KEY, WordKey(7, 0, 4)]
        masks = [(0b111 << step) & FULL for step in range(64)] * 2

        # When they all go at once
        def write(number: int) -> list[Cleared]:
            return stores.words.clear([Clear(key, masks[number], LATER) for key in keys])

        with ThreadPoolExecutor(16) as pool:
            answers = list(pool.map(write, range(len(masks))))
        # Then the firsts of a word are disjoint and complete, and exactly one writer saw it finished first
        for place, key in enumerate(keys):
            firsts = [answer[place].first for answer in answers]
            assert sum(mask.bit_count() for mask in firsts) == 64
            assert reduce(or_, firsts) == FULL
            assert stores.words.read([key]) == {key: 0}
            assert sum(answer[place].word == 0 and answer[place].first > 0 for answer in answers) == 1


class TestRows:
    def test_say_what_is_pending_failed_and_leased(self, stores):
        claim(stores, 0, until=130)
        claim(stores, 63, until=140)
        clear(stores, 0b0101)
        clear(stores, 0b1010, failed=0b1010)

        assert stores.words.read_rows([KEY]) == {KEY: WordRow(FULL ^ 0b1111, 0b1010, {0: 130, 63: 140})}

    def test_of_words_that_were_only_leased_are_pending(self, stores):
        claim(stores, 7, until=130)

        assert stores.words.read_rows([KEY]) == {KEY: WordRow(FULL, 0, {7: 130})}

    def test_are_read_on_all_levels_and_left_out_where_there_are_none(self, stores):
        above = WordKey(KEY.batch_id, 1, 0)
        raised(stores, above, 0b1, {0: Tally(2)})

        assert stores.words.read_rows([above, KEY, above]) == {above: WordRow(FULL - 1)}
        assert stores.words.read_rows([]) == {}


class TestSums:
    def test_are_added_by_the_write_that_clears_the_bits(self, stores):
        mine = raised(stores, KEY, 0b11, {0: Tally(sums=(5, -7)), 1: Tally(sums=(2**53, 0))})
        assert mine.tally.sums == (2**53 + 5, -7)
        assert raised(stores, KEY, 0b100, {}).tally.sums == (2**53 + 5, -7)

    def test_of_bits_that_are_clear_are_not_added_again(self, stores):
        raised(stores, KEY, 0b01, {0: Tally(sums=(5,))})
        again = raised(stores, KEY, 0b11, {0: Tally(sums=(50,)), 1: Tally(sums=(3,))})
        assert (again.first, again.tally.sums) == (0b10, (8,))
        assert raised(stores, KEY, 0b11, {0: Tally(sums=(50,))}).tally.sums == (8,)

    def test_of_a_whole_word_and_of_failed_items_count_too(self, stores):
        whole = raised(stores, KEY, FULL, {n: Tally(sums=(n, 2**53, 1, -1)) for n in range(64)})
        assert whole.tally.sums == (2016, 2**59, 64, -64)

    def test_go_up_and_say_if_a_word_did_not_know_its_own(self, stores):
        above = WordKey(KEY.batch_id, 1, 0)
        both = {0: Tally(sums=(5, 0)), 1: Tally(2, sums=(-5, 2**93))}
        assert raised(stores, above, 0b11, both).tally == Tally(2, sums=(0, 2**93))
        assert raised(stores, above, 0b100, {2: Tally(1, whole=False, sums=(0, 0))}).tally == Tally(
            3, whole=False, sums=(0, 2**93)
        )
        (read,) = stores.words.read_tallied([above]).values()
        assert read.tally == Tally(3, whole=False, sums=(0, 2**93))

    def test_of_items_say_if_an_item_did_not_know_its_own(self, stores):
        both = {0: Tally(sums=(5,)), 1: Tally(sums=(0,))}
        assert raised(stores, KEY, 0b11, both).tally == Tally(sums=(5,))
        unsure = {2: Tally(whole=False, sums=(0,))}
        assert raised(stores, KEY, 0b100, unsure).tally == Tally(whole=False, sums=(5,))
        assert stores.words.read_tallied([KEY])[KEY].tally == Tally(whole=False, sums=(5,))
