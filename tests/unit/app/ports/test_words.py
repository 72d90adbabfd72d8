"""Tallies add up."""

from __future__ import annotations

import pytest

from fanin.app.ports.words import Tally


@pytest.mark.parametrize(
    ("ours", "theirs", "both"),
    [
        (Tally(), Tally(), Tally(0)),
        (Tally(2), Tally(3), Tally(5)),
        (Tally(2), Tally(3, whole=False), Tally(5, whole=False)),
        (Tally(2, whole=False), Tally(), Tally(2, whole=False)),
    ],
)
def test_a_sum_is_whole_if_both_are(ours: Tally, theirs: Tally, both: Tally) -> None:
    assert ours.and_(theirs) == both
