"""A batch acknowledged one item at a time, on a small batch."""

from __future__ import annotations

import pytest

from bench import single


@pytest.fixture(autouse=True)
def _small(monkeypatch):
    monkeypatch.setattr(single, "ITEMS", 1_024)


@pytest.mark.parametrize("order", [single.in_random_order, single.in_order, single.across_words])
def test_each_order_costs_little_more_than_a_write_an_item(order):
    writes, reads = order()
    assert 1 + 1 / 64 <= writes.measured < 1.03
    assert reads.measured < 0.02


def test_an_order_that_leaves_an_item_out_is_refused():
    with pytest.raises(AssertionError, match="all items are acknowledged, but the batch is closed"):
        single._measure("short", lambda: range(1_023))
