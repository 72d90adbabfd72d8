"""What a scatter costs for each recipient, on small ones."""

from __future__ import annotations

import pytest

from bench import scatters


def test_a_reply_costs_its_row_and_its_item(monkeypatch):
    monkeypatch.setattr(scatters, "SIZES", (64, 200))
    assert all(2 < figure.measured <= scatters.WRITES for figure in scatters.all_replies())


def test_a_quorum_counts_each_reply_besides():
    (without,) = [scatters._measure(200, quorum=None)]
    counted = scatters._measure(200, quorum=200)
    assert counted.measured - without.measured == pytest.approx(1, abs=0.2)


def test_a_large_topic_is_sent_to_by_the_worker(monkeypatch):
    monkeypatch.setattr(scatters, "LARGE", 2_000)
    (figure,) = scatters.large_topic()
    assert figure.measured < 0.05
