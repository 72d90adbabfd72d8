"""Words, in a dict."""

from collections.abc import Callable, Collection, Sequence
from functools import partial
from typing import Final, TypeVar

from fanin.adapters.memory.accesses import Accesses
from fanin.app.ports import words as port
from fanin.domain.totals import Sums, plus
from fanin.domain.tree import Tree
from fanin.errors import ServiceUnavailable, Throttled

T = TypeVar("T")


_NOTHING: Final[tuple[int, int, Sums]] = 0, 0, ()


class MemoryWords(port.WordStore):
    """A ``WordStore`` that holds only words that were written.

    Attributes:
        finished: the key of every word that a write has left at 0, in order, as in the stream of the words
            table.
    """

    def __init__(self, tree: Tree, accesses: Accesses) -> None:
        self.finished: list[port.WordKey] = []
        self._full = tree.full
        self._accesses = accesses
        self._words: dict[port.WordKey, int] = {}
        self._failed: dict[port.WordKey, int] = {}
        self._carried: dict[port.WordKey, tuple[int, int, Sums]] = {}  # failures, whole tallies, totals
        self._leases: dict[tuple[port.WordKey, int], int] = {}

    def claim(self, claims: Sequence[port.ItemClaim]) -> list[port.Claimed]:
        return [self._accesses.write("words.claim", partial(self._claim, claim)) for claim in claims]

    def _claim(self, claim: port.ItemClaim) -> port.Claimed:
        place = claim.key, claim.position
        pending = bool(self._words.get(claim.key, self._full) >> claim.position & 1)
        held = self._leases.get(place, 0)
        if pending and held <= claim.now:
            self._leases[place] = claim.until
            return port.Claimed(pending, claim.until, taken=True)
        self._accesses.refused["words.claim"] += 1
        return port.Claimed(pending, held if pending else 0, taken=False)

    def clear(self, clears: Sequence[port.Clear]) -> list[port.Outcome]:
        return [self._outcome(clear) for clear in clears]

    def _outcome(self, clear: port.Clear) -> port.Outcome:
        try:
            return self._clear(clear)
        except (Throttled, ServiceUnavailable) as error:  # a test lets the store refuse this word
            return error

    def _clear(self, clear: port.Clear) -> port.Cleared:
        mask = clear.mask
        while True:
            (word, tally), moved = self._accesses.write("words.clear", partial(self._attempt, clear, mask))
            if moved:
                return port.Cleared(word, mask, tally)
            mask &= word
            if not mask:
                return port.Cleared(word, 0, tally)

    def _attempt(self, clear: port.Clear, mask: int) -> tuple[port.Tallied, bool]:
        key = clear.key
        word = self._words.get(key, self._full)
        if word & mask != mask:
            self._accesses.refused["words.clear"] += 1
            return self._tallied(key), False
        self._words[key] = word = word ^ mask
        if failed := clear.failed & mask:
            self._failed[key] = self._failed.get(key, 0) | failed
        for below in (below for at, below in clear.carried.items() if mask >> at & 1):
            self._carry(key, below)
        if not word:
            self.finished.append(key)
        return self._tallied(key), True

    def _carry(self, key: port.WordKey, below: port.Tally) -> None:
        """Add the tally of a word, or what an item brings."""
        failed, whole, sums = self._carried.get(key, _NOTHING)
        self._carried[key] = failed + below.failed, whole + below.whole, plus(sums, below.sums)

    def _tallied(self, key: port.WordKey) -> port.Tallied:
        word, failed = self._words.get(key, self._full), self._failed.get(key, 0)
        below, whole, sums = self._carried.get(key, _NOTHING)
        return port.tallied(key, word, full=self._full, failed=failed, below=below, whole=whole, sums=sums)

    def read(self, keys: Collection[port.WordKey]) -> dict[port.WordKey, int]:
        return self._read("words.read", self._words.get, keys)

    def read_tallied(self, keys: Collection[port.WordKey]) -> dict[port.WordKey, port.Tallied]:
        def read(key: port.WordKey) -> port.Tallied | None:
            return self._tallied(key) if key in self._words else None

        return self._read("words.read", read, keys)

    def read_failed(self, keys: Collection[port.WordKey]) -> dict[port.WordKey, int]:
        return self._read("words.read_failed", self._failed.get, keys)

    def read_rows(self, keys: Collection[port.WordKey]) -> dict[port.WordKey, port.WordRow]:
        def read(key: port.WordKey) -> port.WordRow | None:
            held = ((at, self._leases.get((key, at))) for at in range(self._full.bit_length()))
            leases = {at: until for at, until in held if until is not None}
            if key not in self._words and not leases:
                return None
            return port.WordRow(self._words.get(key, self._full), self._failed.get(key, 0), leases)

        return self._read("words.read_rows", read, keys)

    def _read(
        self, call: str, read: Callable[[port.WordKey], T | None], keys: Collection[port.WordKey]
    ) -> dict[port.WordKey, T]:
        found = ((key, self._accesses.read(call, partial(read, key))) for key in dict.fromkeys(keys))
        return {key: value for key, value in found if value is not None}
