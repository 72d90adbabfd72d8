"""Scatter-gather under many seeds; and proof that a broken one would not pass."""

import pytest

from fanin.app.scatters import gather
from fanin.errors import FaninError
from tests.stateful.scatters import simulate

SEEDS = 60
ENOUGH = 240
"""Seeds within which each broken one must be found out."""


def test_it_gathers_whatever_interleaves_and_crashes():
    played = [simulate(seed) for seed in range(SEEDS)]

    # Each thing of interest happened
    rows = [row for gathering in played for row in gathering.rows.values()]

    assert any(row.retries for row in rows)
    assert any(row.partial for row in rows)
    assert any(not row.partial and row.items > 1 for row in rows)
    assert any(len(words) > 1 for gathering in played for words in gathering.said.values())
    assert {"records.put", "words.clear", "batches.create", "directory.put", "directory.delete"} <= {
        call for gathering in played for call in gathering.answers.repeated
    }
    assert any(gathering.odd is not None for gathering in played)


def fails(seed: int) -> bool:
    try:
        simulate(seed)
    except (AssertionError, FaninError, ValueError):
        return True
    return False


def never_again(*_: object) -> None:
    """End at the first deadline."""


@pytest.mark.soak
def test_a_scatter_that_gives_up_the_missing_at_once_is_found_out(monkeypatch):
    monkeypatch.setattr(gather, "postpone", never_again)
    assert any(fails(seed) for seed in range(ENOUGH))
