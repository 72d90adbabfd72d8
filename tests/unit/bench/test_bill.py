"""The whole bill: what is counted in a run, and what the plan computes."""

from __future__ import annotations

import pytest

from bench import bill
from fanin.domain.costs import TOGETHER, costs
from fanin.domain.prices import DEFAULT
from fanin.domain.usage import Order

TOLERANCE = 0.03
"""By which the plan may differ from the counts."""
LARGE = 32_768


def planned(way: str, items: int, order: Order, together: int = TOGETHER):
    (cost,) = [one for one in costs(items, order, together=together) if one.way.startswith(way)]
    return cost.usage


def agree(counted, plan) -> None:
    assert plan.dollars(DEFAULT) == pytest.approx(counted.dollars(DEFAULT), rel=TOLERANCE)
    ours, theirs = plan.bill(DEFAULT), counted.bill(DEFAULT)
    for service, amount in theirs.items():
        assert ours[service] == pytest.approx(amount, rel=2 * TOLERANCE, abs=1e-5), service


@pytest.mark.parametrize(
    ("together", "order"), [(1, Order.SCATTERED), (10, Order.SCATTERED), (10, Order.NEIGHBOURS)]
)
def test_the_plan_of_https_is_what_a_run_counts(together, order):
    counted = bill.bill_of_https(4_096, together, order)
    agree(counted, planned("HTTPS, one" if together == 1 else "HTTPS, 10", 4_096, order, 10))


@pytest.mark.parametrize("order", Order)
def test_the_plan_of_the_ack_queue_is_what_a_run_counts(order):
    agree(bill.bill_of_queue(LARGE, order), planned("ack queue", LARGE, order))


@pytest.mark.parametrize("order", Order)
def test_the_plan_of_direct_calls_is_what_a_run_counts(order):
    agree(bill.bill_of_direct(LARGE, order), planned("direct", LARGE, order))


def test_the_faster_the_items_the_fewer_writes_of_the_ack_queue():
    slow, fast = (bill.bill_of_queue(4_096, Order.SCATTERED, rate) for rate in (100, 10_000))
    assert fast.writes < slow.writes / 2
