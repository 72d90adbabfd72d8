"""Writes to words: by how many items are acknowledged together, and which."""

from __future__ import annotations

import pytest

from fanin.domain.word_writes import Order, carried, parents, words_touched


def test_parents_are_one_63rd_of_the_words():
    assert parents(64**4) == 64**3 + 64**2 + 64
    assert parents(64) == 0


@pytest.mark.parametrize("order", Order)
@pytest.mark.parametrize("together", [1, 7, 64, 1_000])
def test_more_together_touch_fewer_words_and_never_fewer_than_there_are(order, together):
    touched = words_touched(100_000, together, order)
    assert 100_000 / 64 <= touched <= 100_000
    assert touched <= words_touched(100_000, 1, order) + 1


def test_scattered_items_touch_nearly_as_many_words_as_there_are_items():
    assert words_touched(10**6, 10, Order.SCATTERED) == pytest.approx(10**6, rel=0.001)
    assert words_touched(10**6, 10, Order.NEIGHBOURS) == pytest.approx(112_500, rel=0.001)


def test_windows_of_neighbours_write_the_words_above_once():
    assert carried(10**6, 1, Order.NEIGHBOURS) == parents(10**6)
    assert carried(10**6, 1_000, Order.NEIGHBOURS) < parents(10**6) / 10
    assert carried(0, 10, Order.NEIGHBOURS) == 0
