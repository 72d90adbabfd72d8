"""Words in memory, beyond what every store of words promises."""

from __future__ import annotations

from fanin.adapters.memory import Memory
from fanin.app.ports.words import Clear, WordKey
from fanin.domain.tree import Tree


def clears(*masks: int) -> list[Clear]:
    return [Clear(WordKey(7, 0, number), mask, 1) for number, mask in enumerate(masks)]


def test_a_duplicate_is_a_refused_write_and_the_rest_another() -> None:
    memory = Memory()
    memory.words.clear(clears(0b0011))

    memory.words.clear(clears(0b0001))
    assert (memory.accesses.writes["words.clear"], memory.accesses.refused["words.clear"]) == (2, 1)

    memory.words.clear(clears(0b0110))
    assert (memory.accesses.writes["words.clear"], memory.accesses.refused["words.clear"]) == (4, 2)


def test_finished_words_are_kept_in_order() -> None:
    memory = Memory(tree=Tree(width=2))

    memory.words.clear(clears(0b11, 0b01))
    memory.words.clear(clears(0b11, 0b10))

    assert memory.words.finished == [WordKey(7, 0, 0), WordKey(7, 0, 1)]
