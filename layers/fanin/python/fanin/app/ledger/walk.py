"""The walk from the root into pending children only; it costs what is missing, whatever the size.

It also sums the totals of a batch. The root holds the sum of every finished word below it, and an unfinished
word the sum of its own items. So a walk into pending words only, as for what is missing, meets every value
once.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import KW_ONLY, dataclass, field, replace
from itertools import islice
from typing import Final, NamedTuple

from fanin.app.ports import Ports
from fanin.app.ports.words import Tallied, Tally, WordKey
from fanin.domain.batch import Batch, Mode
from fanin.domain.totals import by_name

CHUNK = 100
"""How many words are read at a time: what one BatchGetItem takes."""
_FEW: Final = 8
_ABOVE: Final = 16
"""Words above level 0 are read ``_FEW`` at a time, or as many as a sixteenth of what the budget has left."""


class Visited(NamedTuple):
    """A word of the walk, what has failed below its clear bits, and their sums."""

    level: int
    number: int
    word: int
    tally: Tally


@dataclass
class Walk:
    """A walk down the pending words of a batch, in order of their items.

    Iterating yields each word visited: parents before children, those of level
    0 ascending. A word is visited if all bits above it are pending.

    Args:
        ports: the stores.
        batch: the row; its ``items`` bound the walk.
        start: first ordinal of interest; words entirely before it are not visited.
        stop: one past the last; words entirely after it are not visited. None for the end.
        budget: how many words to read at most.
        chunk: how many words to read at a time. Above level 0 it is less where the budget is small, so that
            most of the budget is left for the words that hold items.
        lowest: level below which no word is visited.

    Attributes:
        chunk: as given; whoever iterates may change it. With 1, the walk reads only the words on its way.
        reads: words read so far.
        pending: at most so many items of the batch are pending: a word counts with all its items until it is
            visited itself.
        tally: what has failed below the words visited so far, and their sums. An item counts once: a word
            that is visited has not given its tally to its parent, as the parent was when it was read.
        stopped_at: ordinal to continue from, if the budget ended the walk; everything before it was visited.
    """

    ports: Ports
    batch: Batch
    _: KW_ONLY
    start: int = 0
    stop: int | None = None
    budget: int
    chunk: int = CHUNK
    lowest: int = 0
    reads: int = field(default=0, init=False)
    pending: int = field(init=False)
    tally: Tally = field(default=Tally(), init=False)
    stopped_at: int | None = field(default=None, init=False)

    def __post_init__(self) -> None:
        self.pending = self.batch.items
        self._last = (self.pending if self.stop is None else min(self.stop, self.pending)) - 1

    def __iter__(self) -> Iterator[Visited]:
        if self.start <= self._last:
            yield from self._descend(self.ports.tree.root_level(self.batch.items), iter([0]))

    def finish(self) -> Walk:
        """Visit the words that are left, as far as the budget allows."""
        for _ in self:
            pass
        return self

    def _descend(self, level: int, numbers: Iterator[int]) -> Iterator[Visited]:
        tree, batch, totals = self.ports.tree, self.batch, len(self.batch.totals)
        while chunk := list(islice(numbers, self._next(level))):
            if self.stopped_at is None and self.reads >= self.budget:
                self.stopped_at = max(self.start, chunk[0] * tree.span(level))
            if self.stopped_at is not None:
                return
            self.reads += len(chunk)
            keys = [WordKey(batch.batch_id, level, number) for number in chunk]
            words = self.ports.words.read_tallied(keys)
            untouched = Tallied(tree.full, Tally())
            found = ((number, words.get(key, untouched)) for key, number in zip(keys, chunk, strict=True))
            visited = [Visited(level, n, word, tally.for_totals(totals)) for n, (word, tally) in found]
            for one in visited:
                self.tally = self.tally.and_(one.tally)
                self.pending += tree.pending(level, one.number, one.word, batch.items)
                self.pending -= tree.size(level, one.number, batch.items)
                yield one
            if level > self.lowest:
                yield from self._descend(level - 1, self._children(level, visited))

    def _next(self, level: int) -> int:
        """How many words to read next; at least 1, to learn whether there is another."""
        left = self.budget - self.reads
        share = left if level == self.lowest else max(_FEW, left // _ABOVE)
        return max(1, min(self.chunk, left, share))

    def _children(self, level: int, visited: list[Visited]) -> Iterator[int]:
        tree = self.ports.tree
        first, last = (at // tree.span(level - 1) for at in (self.start, self._last))
        for _, number, word, _ in visited:
            for child in tree.children(level, number, word, self.batch.items):
                if first <= child <= last:
                    yield child


BUDGET: Final = 10_000
"""How many words are read at most to sum totals up exactly, or rows to count failures, held or done items."""


def count_totals(ports: Ports, batch: Batch, *, budget: int = BUDGET) -> Batch:
    """The row with its totals as they are now; without totals, it reads nothing.

    Args:
        ports: the stores.
        batch: the row.
        budget: how many words may be read.

    Returns:
        The row; not ``totals_exact`` if the budget ended the walk, or if what an item has brought may be
        missing. Those of an estimated batch count repeats, and are never exact.
    """
    if not batch.totals or batch.totals_exact or batch.mode is Mode.ESTIMATED:
        return batch
    walk = Walk(ports, batch, budget=budget).finish()
    return with_totals(batch, walk.tally, all_read=walk.stopped_at is None)


def with_totals(batch: Batch, tally: Tally, *, all_read: bool) -> Batch:
    """The row with the sums of the words that were read.

    Args:
        batch: the row.
        tally: of these words.
        all_read: whether these are all the words that can hold values.
    """
    if not batch.totals or batch.totals_exact or batch.mode is Mode.ESTIMATED:
        return batch
    totals = by_name(tuple(batch.totals), tally.sums)
    return replace(batch, totals=totals, totals_exact=all_read and tally.whole)
