"""Words in memory, beyond what every store of words promises."""

from __future__ import annotations

from fanin.adapters.memory import Memory
from fanin.app.ports.words import Claim, Claimed, Clear, Cleared, WordKey
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


def test_a_word_that_others_finish_between_two_tries_is_a_duplicate() -> None:
    # Given a clear of bits 0 and 1 that finds bit 0 cleared, and others who clear bit 1 before its next try
    def race(call: str, moment: str) -> None:
        if (call, moment) == ("words.clear", "after") and memory.accesses.refused["words.clear"] == 1:
            memory.words.clear(clears(0b10))

    memory = Memory(tree=Tree(width=2), on_call=race)
    memory.words.clear(clears(0b01))

    # Then it cleared nothing, and the word was finished once
    assert memory.words.clear(clears(0b11)) == [Cleared(0, 0)]
    assert memory.words.finished == [WordKey(7, 0, 0)]


def test_a_refused_lease_is_a_refused_write() -> None:
    memory = Memory()
    lease = Claim(WordKey(7, 0, 0), 5, now=100, until=130, expires_at=1)

    answers = [memory.words.claim([lease])[0] for _ in range(2)]

    assert answers == [Claimed(pending=True, until=130, taken=True), Claimed(True, 130, taken=False)]
    assert (memory.accesses.writes, memory.accesses.refused) == ({"words.claim": 2}, {"words.claim": 1})
