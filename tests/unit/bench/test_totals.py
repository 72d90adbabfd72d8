"""Totals, on a small batch."""

from __future__ import annotations

import pytest

from bench import totals


@pytest.fixture(autouse=True)
def _small(monkeypatch):
    monkeypatch.setattr(totals, "ITEMS", 4_096)


def test_an_ack_with_totals_costs_what_one_without_costs():
    writes, reads, failed, more = totals.one_at_a_time()
    assert 1 + 1 / 64 <= writes.measured < 1.03
    assert reads.measured < 0.02
    assert (failed.measured, more.measured) == (0, 0)
    assert "82 true duplicates" in writes.note


def test_a_range_of_a_batch_with_totals_costs_a_write_for_64_items():
    writes, failed = totals.ranges()
    assert 1 + 1 / 64 <= writes.measured < 1.04
    assert failed.measured == 0


def test_items_come_in_any_order_and_some_again_later():
    order = list(totals._order(1_000))
    assert sorted(set(order)) == list(range(1_000))
    assert len(order) == 1_020


def test_totals_that_do_not_add_up_are_refused(monkeypatch):
    monkeypatch.setattr("fanin.app.ledger.settle.by_name", lambda names, _sums: dict.fromkeys(names, 7))
    with pytest.raises(AssertionError, match="and the items brought"):
        totals._spent(range(4_096), totals.NAMES)
