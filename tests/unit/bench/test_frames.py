"""What an envelope costs, on small frames."""

from __future__ import annotations

from bench import frames


def test_each_envelope_costs_a_claim_and_an_ack(monkeypatch):
    monkeypatch.setattr(frames, "SIZES", (64, 200))
    figures = frames.envelopes()
    assert len({figure.name for figure in figures}) == 1
    assert all(2 < figure.measured <= frames.AT_MOST for figure in figures)
    assert "64, 200" in figures[0].note
