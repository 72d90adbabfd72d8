"""Bits that are cleared as done, and bits that are cleared as failed."""

from __future__ import annotations

from fanin.adapters.memory import Memory
from fanin.app.ports.words import Clear, WordKey


def test_an_item_is_done_unless_it_is_said_to_have_failed() -> None:
    words = Memory().ports().words
    done, failed = WordKey(7, 0, 0), WordKey(7, 0, 1)

    words.clear([Clear(done, 0b11, 2**33), Clear(failed, 0b11, 2**33, failed=True)])

    masks = words.read_failed([done, failed])
    assert (masks.get(done, 0), masks.get(failed, 0)) == (0, 0b11)
