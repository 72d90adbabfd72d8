"""Notes of failed items in memory, beyond the contract of all stores: counts."""

from __future__ import annotations

from fanin.adapters.memory import Memory
from fanin.app.ports.batches import FailureRow


def test_an_item_that_is_noted_twice_in_a_call_is_one_write_of_the_last_note() -> None:
    memory = Memory()
    notes = [FailureRow(1, "i", "first"), FailureRow(2, "j", "other"), FailureRow(1, "i", "last")]

    memory.parts.put_failures(8, notes, expires_at=1)

    assert memory.accesses.writes["parts.put_failures"] == 2
    assert memory.parts.failures(8) == ([FailureRow(1, "i", "last"), FailureRow(2, "j", "other")], None)


def test_a_page_is_one_access() -> None:
    memory = Memory()
    memory.parts.put_failures(8, [FailureRow(n, "i", "r") for n in range(5)], expires_at=1)

    rows, cursor = memory.parts.failures(8, limit=3)

    assert [row.ordinal for row in rows] == [0, 1, 2]
    assert cursor is not None
    assert memory.accesses.reads["parts.failures"] == 1
