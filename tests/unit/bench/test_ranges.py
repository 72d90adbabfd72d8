"""Ranges to acknowledge: which ones are tried, and what they cost."""

from __future__ import annotations

import pytest

from bench import ranges
from bench.figures import number


@pytest.mark.parametrize("items", [10**6, 10**9])
def test_every_range_lies_in_the_batch_and_is_not_empty(items):
    found = list(ranges._ranges(items))
    assert len(found) > 2_000
    assert all(0 <= start < stop <= items for start, stop in found)
    assert (0, items) in found


def test_the_edges_of_words_of_every_level_are_tried():
    ends = {end for span in ranges._ranges(10**6) for end in span}
    assert {63, 64, 65, 4_095, 4_096, 4_097, 262_143, 262_144, 262_145} <= ends


@pytest.mark.parametrize(("start", "stop"), [(0, 64), (1, 63), (5, 10_000), (64, 4_096)])
@pytest.mark.parametrize("lowest", [0, 1])
def test_what_is_done_before_lies_inside_the_range(start, stop, lowest):
    for low, high in ranges._done_inside(start, stop, lowest):
        assert start <= low < high <= stop
        assert high - low in {64**level for level in range(lowest, 4)}


def test_a_part_that_is_done_costs_further_writes():
    fresh = ranges._spent(10_000, 5, 9_000)
    inside = list(ranges._done_inside(5, 9_000, 0))
    assert inside
    assert ranges._spent(10_000, 5, 9_000, inside=inside) > fresh


def test_adding_costs_one_write_or_a_transaction():
    assert [(figure.measured, number(figure.at_most)) for figure in ranges.adding()] == [(1, "1"), (2, "2")]


def test_a_range_of_whole_words_has_no_word_that_is_partly_done():
    assert list(ranges._done_inside(0, 64, 0)) == []
    assert list(ranges._done_inside(1, 64, 0)) == [(1, 2)]
