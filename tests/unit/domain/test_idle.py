"""An idle month; tests/infra/test_idle_cost.py computes the same from the template."""

from __future__ import annotations

import pytest

from fanin.domain.idle import idle, waiting_taker
from fanin.domain.prices import DEFAULT


def test_each_part_of_an_idle_month_costs_what_its_prices_say():
    bill = idle(alarm_metrics=10, dashboards=2, polled_queues=3, secrets=1).bill(DEFAULT)
    assert bill["watching"] == pytest.approx(10 * 0.10 + 2 * 3)
    assert bill["SQS"] == pytest.approx(3 * 21_600 * 30 * 0.40 / 1e6)
    assert bill["secrets"] == 0.40


def test_a_slower_reaper_costs_less():
    assert idle(rate_seconds=3_600).invocations == idle().invocations / 12


def test_a_taker_that_waits_in_a_function_pays_for_the_function():
    waiting, polling = (waiting_taker(in_the_service=here).bill(DEFAULT) for here in (True, False))
    assert waiting["Lambda"] > 0.95 * sum(waiting.values())
    assert sum(polling.values()) < sum(waiting.values()) / 20
