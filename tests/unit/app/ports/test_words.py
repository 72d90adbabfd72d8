"""Bits that are cleared as done, bits that are cleared as failed, and tallies, which add up."""

from __future__ import annotations

import pytest

from fanin.adapters.memory import Memory
from fanin.app.ports.words import Clear, Tally, WordKey


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


def test_an_item_is_done_unless_it_is_said_to_have_failed() -> None:
    words = Memory().ports().words
    done, failed = WordKey(7, 0, 0), WordKey(7, 0, 1)

    words.clear([Clear(done, 0b11, 2**33), Clear(failed, 0b11, 2**33, failed=True)])

    masks = words.read_failed([done, failed])
    assert (masks.get(done, 0), masks.get(failed, 0)) == (0, 0b11)
