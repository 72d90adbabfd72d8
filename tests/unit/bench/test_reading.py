"""Closing and reading, on few sizes."""

from __future__ import annotations

import pytest

from bench import reading
from fanin.domain.ids import MAX_ITEMS


def test_the_sizes_are_those_at_which_trees_grow_and_the_ends():
    sizes = {size for size, _ in reading._batches()}
    assert {1, 63, 64, 65, 4_095, 4_096, 4_097, 10**9, MAX_ITEMS} <= sizes
    assert max(sizes) == MAX_ITEMS


def test_every_size_comes_with_nothing_all_and_all_but_one_done():
    assert {done for size, done in reading._batches() if size == 64} == {(0, 0), (0, 64), (1, 64), (0, 63)}


@pytest.mark.parametrize("warm", [True, False])
@pytest.mark.parametrize("done", [(0, 0), (0, 4_097), (1, 4_097)])
def test_closing_reads_little(warm, done):
    assert reading._close(4_097, *done, warm=warm).measured <= 7


def test_a_process_that_does_not_know_the_batch_reads_it_first():
    known, unknown = (reading._close(4_097, 0, 0, warm=warm).measured for warm in (True, False))
    assert unknown >= known


def test_bounds_read_at_most_a_word_and_its_children():
    assert 1 <= reading._bounds(4_095, 1, 4_095).measured <= 66


def test_held_items_are_counted_within_the_reads_of_any_status():
    near, apart = (reading._holding(10**5, step).measured for step in (1, 97))
    assert 20 < near <= 67
    assert 20 < apart <= 67


def test_a_diagnosis_takes_at_most_a_hundred_reads():
    (figure,) = reading.diagnosis()

    assert 50 < figure.measured <= 100


def test_missing_items_are_found_by_their_paths():
    near = reading._missing(list(range(0, 20, 2)))
    apart = reading._missing(list(range(1, 10**9, 10**8)))
    assert near.measured < apart.measured <= 60


def test_a_picture_of_a_billion_takes_as_many_rows_as_it_may():
    root, middle = (reading._picture(0, 0, [place], holds=False).measured for place in ((4, 0), (1, 5)))
    leaf, held = (reading._picture(0, 0, [(0, 1)], holds=holds).measured for holds in (False, True))

    # The root of a billion has 60 words below it. A leaf has four words above it.
    assert (root, middle, leaf, held) == (62, 66, 6, 46)
