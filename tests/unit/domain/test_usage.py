"""Usage and its bill: every amount costs something, and every price is charged."""

from __future__ import annotations

import pytest

from fanin.domain.prices import DEFAULT
from fanin.domain.usage import Usage


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
