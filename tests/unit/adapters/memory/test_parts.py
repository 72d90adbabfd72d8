"""Notes of failed items in memory, beyond what every store of them promises."""

from __future__ import annotations

from fanin.adapters.memory import Memory
from fanin.app.ports.batches import FailureRow


def test_notes_of_one_item_are_one_row() -> None:
    memory = Memory()
    memory.parts.put_failures(
        8, [FailureRow(1, "i", "r"), FailureRow(2, "j", "r"), FailureRow(1, "i", "s")], expires_at=1
    )
    assert memory.accesses.writes == {"parts.put_failures": 2}
    assert memory.parts.failures(8) == ([FailureRow(1, "i", "s"), FailureRow(2, "j", "r")], None)


def test_a_page_goes_on_where_the_one_before_it_ended() -> None:
    parts = Memory().parts
    parts.put_failures(8, [FailureRow(n, f"{n}", "r") for n in range(5)], expires_at=1)
    first, cursor = parts.failures(8, limit=3)
    rest, end = parts.failures(8, cursor=cursor, limit=3)
    assert [row.ordinal for row in first + rest] == [0, 1, 2, 3, 4]
    assert end is None
