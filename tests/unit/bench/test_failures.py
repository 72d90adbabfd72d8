"""Failed items, on few items."""

from __future__ import annotations

from bench import failures


def test_a_failure_with_a_message_costs_three_rows_and_a_success_one(monkeypatch):
    monkeypatch.setattr(failures, "ITEMS", 640)

    failing, units, succeeding = failures.kept()

    assert 3 <= failing.measured < 3.1
    assert 4 <= units.measured < 4.1
    assert 1 <= succeeding.measured < 1.1
