"""What a client learns of a batch's mode from the answers it gets."""

from __future__ import annotations

import pytest

from fanin.client.https import known_modes
from fanin.client.https.known_modes import KnownModes
from fanin.domain.batch import Mode, State
from fanin.domain.marks import ItemRange, Mark, Receipt

NAMED: list[Mark] = ["1:g:0"]
RANGED: list[Mark] = [ItemRange("1:g")]


@pytest.mark.parametrize(
    ("marks", "receipt", "mode"),
    [
        (NAMED, Receipt(1, "", State.OPEN, first=1), Mode.EXACT),
        (NAMED, Receipt(1, "", State.OPEN, duplicates=("1:g:0",)), Mode.EXACT),
        (NAMED, Receipt(1, "", State.OPEN, ranged=1), Mode.ESTIMATED),
        (RANGED, Receipt(1, "", State.OPEN, ranged=1), None),
        (NAMED, Receipt(1, "", State.TIMED_OUT, late=1), None),
    ],
)
def test_a_receipt_tells_the_mode_where_it_can(marks, receipt, mode):
    modes = KnownModes()
    modes.learn(marks, [receipt])
    assert modes.of(1) is mode


def test_the_oldest_batches_are_forgotten_first(monkeypatch):
    monkeypatch.setattr(known_modes, "_MOST", 2)
    modes = KnownModes()
    modes.learn(NAMED, [Receipt(number, "", State.OPEN, first=1) for number in range(3)])
    assert [modes.of(number) for number in range(3)] == [None, Mode.EXACT, Mode.EXACT]
