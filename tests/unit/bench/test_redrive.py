"""The figure of redrives."""

from __future__ import annotations

from bench import redrive


def test_a_redriven_item_costs_its_mark_and_its_acknowledgement(monkeypatch):
    monkeypatch.setattr(redrive, "SIZES", (1_000, 1_500))
    assert all(2 < figure.measured <= redrive.WRITES for figure in redrive.redriven())
