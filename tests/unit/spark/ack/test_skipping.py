"""Words that are done are left out, and nothing else is."""

import random
from collections.abc import Collection, Sequence

import pytest

from fanin.adapters.memory import Memory
from fanin.app.ledger.service import LedgerService
from fanin.app.ports.words import Clear, WordKey
from fanin.domain.batch import OpenBatch, State
from fanin.domain.tree import Bits, Tree
from fanin.spark.ack.skipping import SAMPLE, Sieve

TREE = Tree()


class Counted:
    """Counts the words that are read."""

    def __init__(self, memory: Memory) -> None:
        self._words = memory.ports().words
        self.reads: list[int] = []

    def read(self, keys: Collection[WordKey]) -> dict[WordKey, int]:
        self.reads.append(len(keys))
        return self._words.read(keys)


def batch_of(ledger: LedgerService, items: int) -> int:
    batch_id = ledger.open(OpenBatch()).batch_id
    ledger.add(batch_id, items)
    ledger.close(batch_id)
    return batch_id


def half(numbers: Sequence[int]) -> list[tuple[Bits, None]]:
    """A word of each number, of which every second item is marked."""
    return [(Bits(0, number, 0x5555555555555555), None) for number in numbers]


def test_below_a_finished_word_nothing_is_read_but_the_words_above(ledger, memory):
    # Given a batch of 40,000 items, of which the first 20,480 are done, word by word
    batch_id = batch_of(ledger, 40_000)
    ledger.clear({batch_id: [Bits(0, number, TREE.full) for number in range(320)]})
    words = Counted(memory)
    # When all of its first 500 words are to be marked again
    sieve = Sieve(words)
    left, done = sieve.sift({batch_id: [(Bits(0, number, TREE.full), None) for number in range(500)]})
    # Then those that are not done are left, and one below the root, which may be finished for all that its
    # pending bits tell; and one word for 64 was read, and a sample
    assert [mark.number for mark, _ in left[batch_id]] == [0, *range(320, 500)]
    assert done[batch_id] == 319 * 64
    assert words.reads == [8, 1, 1, SAMPLE]


def test_words_that_will_never_be_whole_are_read_if_enough_are_done(ledger, memory):
    # Given every second item of 1,000 words, of which nine tenths are done
    batch_id = batch_of(ledger, 64_000)
    ledger.clear({batch_id: [mark for mark, _ in half(range(900))]})
    words = Counted(memory)

    left, done = Sieve(words).sift({batch_id: half(range(1000))})

    assert [mark.number for mark, _ in left[batch_id]] == list(range(900, 1000))
    assert done[batch_id] == 900 * 32
    assert words.reads == [16, SAMPLE, 1000]


def test_words_of_a_new_batch_are_not_read_one_by_one(ledger, memory):
    batch_id = batch_of(ledger, 64_000)
    words = Counted(memory)
    sieve = Sieve(words)
    for start in (0, 500):
        left, done = sieve.sift({batch_id: half(range(start, start + 500))})
        assert (len(left[batch_id]), done[batch_id]) == (500, 0)
    assert words.reads == [8, SAMPLE, 9]


def test_what_calls_find_done_is_learnt(ledger, memory):
    # Given a sample that found nothing, and a call that found a third done
    batch_id = batch_of(ledger, 64_000)
    words = Counted(memory)
    sieve = Sieve(words)
    sieve.sift({batch_id: half(range(100))})
    sieve.learn(300, 100)
    ledger.clear({batch_id: [mark for mark, _ in half(range(200, 250))]})
    # Then the next words are read
    left, _ = sieve.sift({batch_id: half(range(200, 300))})
    assert [mark.number for mark, _ in left[batch_id]] == list(range(250, 300))


def test_a_finished_word_that_was_not_carried_up_is_written_again(ledger, memory):
    # Given a batch whose words are cleared, but whose words above were lost with the process that wrote them
    batch_id = batch_of(ledger, 100)
    memory.ports().words.clear(
        [Clear(WordKey(batch_id, 0, 0), TREE.full, 2**40), Clear(WordKey(batch_id, 0, 1), 2**36 - 1, 2**40)]
    )
    marks = [(Bits(0, 0, TREE.full), None), (Bits(0, 1, 2**36 - 1), None)]
    # Then neither is left out, and marking them completes the batch
    left, _ = Sieve(memory.ports().words).sift({batch_id: marks})
    assert left[batch_id] == marks
    (marked,) = ledger.clear({batch_id: [mark for mark, _ in left[batch_id]]})
    assert marked.state is State.COMPLETE


@pytest.mark.parametrize("seed", range(40))
def test_what_is_left_out_is_done_and_the_rest_completes_the_batch(seed):
    # Given a batch, some of whose items are done, in words, in ranges, and by processes that died half-way
    chance = random.Random(seed)
    memory = Memory()
    ledger = LedgerService(memory.ports())
    items = chance.choice([1, 63, 64, 65, 100, 4096, 4097, 5000, 20_000])
    batch_id = batch_of(ledger, items)
    group_done = set()
    for _ in range(chance.randint(0, 30)):
        level = chance.choice([0, 0, 0, 1])
        if level > TREE.root_level(items):
            continue
        number = chance.randint(0, TREE.last(level, items))
        children = TREE.last_children(level, items) if number == TREE.last(level, items) else 64
        whole = children if level == 0 else min(64, items // 64 - number * 64)
        if whole < 1:
            continue
        mask = chance.choice([2**whole - 1, chance.getrandbits(whole) or 1])
        if chance.random() < 0.3:
            memory.ports().words.clear([Clear(WordKey(batch_id, level, number), mask, 2**40)])
        else:
            ledger.clear({batch_id: [Bits(level, number, mask)]})
        span = TREE.span(level - 1)
        for position in range(children):
            if mask >> position & 1:
                first = (number * 64 + position) * span
                group_done |= set(range(first, min(first + span, items)))
    # When all of its words are sifted
    last = TREE.last(0, items)
    marks = [(Bits(0, number, TREE.full), None) for number in range(last)]
    marks.append((Bits(0, last, 2 ** TREE.last_children(0, items) - 1), None))
    sieve = Sieve(memory.ports().words)
    sieve.learn(1, 1)
    left, done = sieve.sift({batch_id: marks})
    # Then what is left out is done, and the rest completes the batch
    written = {mark.number for mark, _ in left[batch_id]}
    skipped = {n for n in range(items) if n // 64 not in written}
    assert skipped <= group_done
    assert done[batch_id] == len(skipped)
    (marked,) = ledger.clear({batch_id: [mark for mark, _ in left[batch_id]]})
    assert marked.state is State.COMPLETE
