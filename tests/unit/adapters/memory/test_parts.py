"""Notes of failed items in memory: written row by row, listed by ordinal."""

import pytest

from fanin.adapters.memory import Memory
from fanin.app.ports.parts import FailureRow


class Crash(Exception):
    pass


def note(ordinal: int, reason: str = "why") -> FailureRow:
    return FailureRow(ordinal, f"8:g:{ordinal}", reason)


def test_each_item_is_one_write_of_its_first_note() -> None:
    memory = Memory()

    memory.parts.put_failures(8, iter([note(1, "first"), note(2), note(1, "second")]), expires_at=1)

    assert memory.parts.failures(8) == ([note(1, "first"), note(2)], None)
    assert memory.accesses.writes == {"parts.put_failures": 2}


def test_a_crash_between_two_notes_leaves_the_first() -> None:
    def crash(call: str, moment: str) -> None:
        if (call, moment) == ("parts.put_failures", "before") and memory.accesses.writes[call] == 1:
            raise Crash

    memory = Memory(on_call=crash)

    with pytest.raises(Crash):
        memory.parts.put_failures(8, [note(1), note(2)], expires_at=1)

    assert memory.parts.failures(8) == ([note(1)], None)


def test_a_page_goes_on_after_the_last_note_it_showed() -> None:
    # Given a page, and a note that came in behind it and one before it since
    memory = Memory()
    memory.parts.put_failures(8, [note(1), note(3), note(7)], expires_at=1)
    first, cursor = memory.parts.failures(8, limit=2)
    memory.parts.put_failures(8, [note(0), note(5)], expires_at=1)

    # Then only the one behind is seen
    assert first == [note(1), note(3)]
    assert memory.parts.failures(8, cursor=cursor, limit=2) == ([note(5), note(7)], None)  # a full last page
