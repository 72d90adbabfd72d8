"""Comparisons: fanin's conditional expression with compare-and-swap, and fanin with its alternatives."""

from collections.abc import Callable, Collection, Sequence
from dataclasses import replace

from bench.figures import Figure
from bench.interleaving import Interleaving
from bench.world import World, span
from bench.writers import writer
from fanin.adapters.memory import Accesses
from fanin.app.ledger.service import LedgerService
from fanin.app.ports.words import Clear, Cleared, Tallied, Tally, WordKey, WordStore
from fanin.domain.planning import alternatives as without
from fanin.domain.prices import DEFAULT
from fanin.domain.tree import Tree

ACKERS = (8, 32)
ITEMS = 8_192
PLANNED = 1_000_000
WIDTH = Tree().width


class SwappedWords:
    """A ``WordStore`` with compare-and-swap: reads a word, clears bits, writes it back if unchanged.

    This is the best case for compare-and-swap on DynamoDB: a refused write returns the new word, so only the
    first attempt on each word costs a read.
    """

    def __init__(self, accesses: Accesses) -> None:
        self._accesses = accesses
        self._words: dict[WordKey, int] = {}

    def clear(self, clears: Sequence[Clear]) -> list[Cleared]:
        return [self._clear(clear.key, clear.mask) for clear in clears]

    def _clear(self, key: WordKey, mask: int) -> Cleared:
        known = self._accesses.read("words.read", lambda: self._now(key))
        while first := mask & known:
            wanted = known ^ first
            found = self._accesses.write("words.swap", lambda: self._swap(key, known, wanted))  # noqa: B023
            if found == known:
                return Cleared(wanted, first)
            known = found
        return Cleared(known, 0)

    def _swap(self, key: WordKey, old: int, new: int) -> int:
        found = self._now(key)
        if found == old:
            self._words[key] = new
        else:
            self._accesses.refused["words.swap"] += 1
        return found

    def _now(self, key: WordKey) -> int:
        return self._words.get(key, Tree().full)

    def read(self, keys: Collection[WordKey]) -> dict[WordKey, int]:
        return {key: self._accesses.read("words.read", lambda: self._now(key)) for key in keys}  # noqa: B023

    def read_tallied(self, keys: Collection[WordKey]) -> dict[WordKey, Tallied]:
        return {key: Tallied(word, Tally()) for key, word in self.read(keys).items()}

    def read_failed(self, keys: Collection[WordKey]) -> dict[WordKey, int]:
        return dict.fromkeys(keys, 0)


def expressions() -> list[Figure]:
    """Writes and reads for each item, with either way to clear a bit."""
    figures = []
    for ackers in ACKERS:
        for name, bound, words in (
            ("conditional expression", 1.02, None),
            ("compare-and-swap", None, SwappedWords),
        ):
            writes, reads = _measure(ackers, words)
            what = f"writes an item, {ackers} ackers on one word, {name}"
            figures.append(Figure(what, writes, at_most=bound, note=f"and {reads:.3g} reads; virtual time"))
    return figures


def alternatives() -> list[Figure]:
    """What ``fanin plan`` computes for a million items without fanin; the group ``bill`` has fanin."""
    return [
        Figure(f"dollars for {PLANNED:,} items: {cost.way}", cost.dollars(DEFAULT), note=f"plan: {cost.note}")
        for cost in without(PLANNED)
    ]


def _measure(ackers: int, words: Callable[[Accesses], WordStore] | None) -> tuple[float, float]:
    """Let all ackers work on the same word until it is done, then on the next, so that they contend."""
    schedule = Interleaving(seed=ackers)
    world = World(schedule.on_call)
    ports = world.memory.ports()
    if words:
        ports = replace(ports, words=words(world.accesses))
    ledgers = [LedgerService(ports) for _ in range(ackers)]
    items = span(world.batch(ITEMS, closed=True), 0, ITEMS)
    with world.spending() as spent:
        for first in range(0, ITEMS, WIDTH):
            word = items[first : first + WIDTH]
            schedule.run(writer(ledger, word[n::ackers]) for n, ledger in enumerate(ledgers))
    world.check_complete()
    return spent.writes / ITEMS, spent.reads / ITEMS
