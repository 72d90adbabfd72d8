"""Puts and takes of a buffer, on few puts."""

from __future__ import annotations

import pytest

from bench import buffers


@pytest.fixture(autouse=True)
def _few(monkeypatch):
    monkeypatch.setattr(buffers, "PUTS", 200)


def test_a_put_with_its_take_costs_about_two_writes_whatever_the_buffer_holds():
    figures = buffers.one_at_a_time()
    assert len({figure.name for figure in figures}) == 3
    assert all(2 <= figure.measured <= 2.1 for figure in figures)


def test_ten_at_a_time_cost_a_tenth():
    assert all(0.2 <= figure.measured <= 0.4 for figure in buffers.in_tens())
