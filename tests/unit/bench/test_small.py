"""Measurements of writes and reads, on few items: a figure is what its rows cost, and within its bound."""

from itertools import cycle
from types import ModuleType

import pytest

from bench import buffers, failures, frames, redrive, scatters, single, totals

Bounds = tuple[float, float]
WRITE: Bounds = (1 + 1 / 64, 1.03)
"""Of an acknowledgement: its word, and a little of those above."""
NO_READ: Bounds = (0, 0.02)


@pytest.mark.parametrize(
    ("group", "measurement", "setting", "small", "bounds"),
    [
        (buffers, "one_at_a_time", "PUTS", 200, [(2, 2.1)]),
        (buffers, "in_tens", "PUTS", 200, [(0.2, 0.4)]),
        (failures, "kept", "ITEMS", 640, [(3, 3.1), (4, 4.1), (1, 1.1)]),
        (frames, "envelopes", "SIZES", (64, 200), [(2.001, frames.AT_MOST)]),
        (redrive, "redriven", "SIZES", (1_000, 1_500), [(2.001, redrive.WRITES)]),
        (scatters, "all_replies", "SIZES", (64, 200), [(2.001, scatters.WRITES)]),
        (scatters, "large_topic", "LARGE", 2_000, [(0, 0.05)]),
        (single, "in_random_order", "ITEMS", 1_024, [WRITE, NO_READ]),
        (single, "in_order", "ITEMS", 1_024, [WRITE, NO_READ]),
        (single, "across_words", "ITEMS", 1_024, [WRITE, NO_READ]),
        (totals, "one_at_a_time", "ITEMS", 4_096, [WRITE, NO_READ, (0, 0), (0, 0)]),
        (totals, "ranges", "ITEMS", 4_096, [(1 + 1 / 64, 1.04), (0, 0)]),
    ],
)
def test_a_figure_is_what_its_rows_cost(
    monkeypatch: pytest.MonkeyPatch,
    *,
    group: ModuleType,
    measurement: str,
    setting: str,
    small: object,
    bounds: list[Bounds],
) -> None:
    monkeypatch.setattr(group, setting, small)
    figures = getattr(group, measurement)()
    assert figures
    for figure, (least, most) in zip(figures, cycle(bounds), strict=False):
        assert least <= figure.measured <= most, figure


def test_an_order_that_leaves_an_item_out_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(single, "ITEMS", 1_024)
    with pytest.raises(AssertionError, match="all items are acknowledged, but the batch is closed"):
        single._measure("short", lambda: range(1_023))
