"""Ways without fanin, each with the requests that it cannot do without.

An idle month; tests/infra/test_idle_cost.py computes the same from the template.
"""

import pytest

from fanin.domain.planning import alternatives, idle
from fanin.domain.prices import DEFAULT

DOLLARS = {
    "counter in DynamoDB": 0.625,
    "row for each item in DynamoDB": 1.253,
    "Valkey, ElastiCache Serverless": 6.137,
    "Step Functions Express": 1.104,
    "Distributed Map, Express": 26.104,
    "Lambda durable functions": 8.0,
    "Step Functions Standard": 25.0,
}


def test_a_million_items_without_fanin():
    found = {cost.way: cost.dollars(DEFAULT) for cost in alternatives(10**6)}
    assert found == pytest.approx(DOLLARS, abs=0.001)


def test_a_cache_costs_its_least_for_a_month_also_for_one_item():
    (cache,) = [cost for cost in alternatives(1) if cost.way.startswith("Valkey")]
    assert cache.dollars(DEFAULT) == pytest.approx(0.1 * 730 * DEFAULT.cache_gb_hour)


def test_each_part_of_an_idle_month_costs_what_its_prices_say():
    bill = idle(alarm_metrics=10, dashboards=2, polled_queues=3, secrets=1).bill(DEFAULT)
    assert bill["watching"] == pytest.approx(10 * 0.10 + 2 * 3)
    assert bill["SQS"] == pytest.approx(3 * 21_600 * 30 * 0.40 / 1e6)
    assert bill["secrets"] == 0.40


def test_a_slower_reaper_costs_less():
    assert idle(rate_seconds=3_600).invocations == idle().invocations / 12
