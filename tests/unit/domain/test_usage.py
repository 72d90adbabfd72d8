"""Usage and its bill: every amount costs something, and every price is charged.

Writes to words: by how many items are acknowledged together, and which.
"""

from __future__ import annotations

import pytest

from fanin.domain.costs import Order, Usage, carried, parents, words_touched
from fanin.domain.prices import DEFAULT


@pytest.mark.parametrize("name", list(Usage.__dataclass_fields__))
def test_every_amount_is_billed(name):
    assert Usage(**{name: 10**6}).dollars(DEFAULT) > 0
    assert (Usage(**{name: 1}) + Usage(**{name: 2})).times(2).amounts() == {name: 6}


def test_every_price_is_used():
    every = Usage(**dict.fromkeys(Usage.__dataclass_fields__, 10**6))
    for name in DEFAULT.amounts():
        assert every.dollars(DEFAULT.with_own({name: 0}, "x")) < every.dollars(DEFAULT), name


def test_a_bill_lists_every_service_and_adds_up():
    usage = Usage(writes=10**6, api_requests=2 * 10**6, log_bytes=3 * 10**9)
    bill = usage.bill(DEFAULT)
    assert (bill["DynamoDB"], bill["API"], bill["logs"]) == (0.625, 2.0, 1.5)
    assert sum(bill.values()) == usage.dollars(DEFAULT)
    assert set(bill) == set(Usage().bill(DEFAULT))


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
