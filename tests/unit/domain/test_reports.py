"""Reports about batches."""

from __future__ import annotations

from fanin.domain.batch import Batch
from fanin.domain.reports import Progress

BATCH = Batch(1, b"", 0, 0, 9, 1, 1)


def test_progress_is_exact_when_its_bounds_meet() -> None:
    assert Progress(BATCH, 3, 3).exact
    assert not Progress(BATCH, 3, 4).exact
