"""Held items: they failed, and stay pending, because their batch was opened with ``on_failure="hold"``.

Nothing is stored for them but the note of the failure. An item is held as long as its bit is pending and no
redrive has taken its latest failure. So an acknowledgement needs no step of its own to end the hold.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from typing import Final, TypeAlias

from fanin.app.ports import Ports
from fanin.app.ports.parts import FailureRow, PartStore
from fanin.app.ports.words import WordKey
from fanin.domain.batch import Batch

READS: Final = 67
"""How many rows are read at most to count the held items of a batch, unless the caller says otherwise."""
_LISTED: Final = 10
"""How many batches of a page are looked at for held items, a few notes each."""
_LISTED_READS: Final = 20
READS_OF_LIST: Final = _LISTED * _LISTED_READS
"""How many rows are read at most to count the held items of the batches of a page."""
_PAGE: Final = 1_000
_Paths: TypeAlias = Mapping[int, list[tuple[WordKey, int]]]
"""Number of a word of level 0 → the words above it, each with the bit that leads down to it."""


class Held:
    """Finds held items. For a batch that holds none, it reads nothing.

    Args:
        ports: the stores.
    """

    def __init__(self, ports: Ports) -> None:
        self._ports = ports

    def counted(self, batch: Batch, *, budget: int = READS) -> Batch:
        """The row with the number of its held items; see ``count``."""
        return self.count(batch, budget=budget)[0]

    def count(self, batch: Batch, *, budget: int) -> tuple[Batch, int]:
        """Count the held items of a batch.

        Args:
            batch: the row, as it is now.
            budget: how many rows may be read.

        Returns:
            The row, with ``held_more`` if the budget ended the count; and how many rows were read.
        """
        if not batch.held_more:
            return batch, 0
        if batch.all_done or not batch.items:
            return replace(batch, held=0, held_more=False), 0
        each = self.most_reads(batch)
        held, reads, cursor = 0, 0, None
        while budget - reads >= each:
            limit = min(_PAGE, (budget - reads) // each)
            notes, cursor = self._ports.parts.failures(batch.batch_id, cursor=cursor, limit=limit)
            ordinals = [note.ordinal for note in notes]
            pending = self.pending(batch, ordinals)
            waiting = [note for note in notes if note.ordinal in pending]
            held += len(not_redriven(self._ports.parts, batch.batch_id, waiting))
            reads += max(1, len(notes)) + self.reads(batch, ordinals) - len(notes) + len(waiting)
            if cursor is None:
                return replace(batch, held=held, held_more=False), reads
        return replace(batch, held=held), reads

    def most_reads(self, batch: Batch) -> int:
        """Rows that it takes at most to see whether an item is held.

        A note, the mark of a redrive, and the words from the item up to the root.
        """
        return 3 + self._ports.tree.root_level(batch.items)

    def reads(self, batch: Batch, ordinals: Collection[int]) -> int:
        """The same of several items with notes that were read before; neighbours share words."""
        return len(_words(batch, self._paths(batch, ordinals))) + len(ordinals)

    def listed(self, batches: Iterable[Batch]) -> tuple[Batch, ...]:
        """Rows with what a few reads show of the first of those that hold items; of the others, nothing."""
        rows = tuple(batches)
        holding = (batch for batch in rows if batch.may_hold_more)
        first = islice(holding, _LISTED)
        counted = {batch.batch_id: self.counted(batch, budget=_LISTED_READS) for batch in first}
        return tuple(counted.get(batch.batch_id, batch) for batch in rows)

    def among(self, batch: Batch, notes: Sequence[FailureRow]) -> list[FailureRow]:
        """Those notes whose item is held now."""
        pending = self.pending(batch, [note.ordinal for note in notes])
        return not_redriven(
            self._ports.parts, batch.batch_id, [note for note in notes if note.ordinal in pending]
        )

    def pending(self, batch: Batch, ordinals: Collection[int]) -> set[int]:
        """Those ordinals of which no bit is clear, neither their own nor one above it."""
        tree = self._ports.tree
        paths = self._paths(batch, ordinals)
        words = self._ports.words.read(_words(batch, paths))
        return {
            ordinal
            for ordinal in self._below_pending(ordinals, paths, words)
            if words.get(_leaf(batch, ordinal // tree.width), tree.full) & tree.bits[ordinal % tree.width]
        }

    def below_pending(self, batch: Batch, ordinals: Collection[int]) -> set[int]:
        """Those ordinals of which no bit above their own is clear: no range has marked them from above."""
        paths = self._paths(batch, ordinals)
        words = self._ports.words.read({key for path in paths.values() for key, _ in path})
        return self._below_pending(ordinals, paths, words)

    def _below_pending(
        self, ordinals: Collection[int], paths: _Paths, words: Mapping[WordKey, int]
    ) -> set[int]:
        full, width = self._ports.tree.full, self._ports.tree.width
        below = {n for n, path in paths.items() if all(words.get(key, full) & mask for key, mask in path)}
        return {ordinal for ordinal in ordinals if ordinal // width in below}

    def _paths(self, batch: Batch, ordinals: Iterable[int]) -> _Paths:
        tree = self._ports.tree
        return {
            number: [
                (WordKey(batch.batch_id, above.level, above.number), above.mask)
                for above in tree.ancestors(number, batch.items)
            ]
            for number in {ordinal // tree.width for ordinal in ordinals}
        }


def _leaf(batch: Batch, number: int) -> WordKey:
    return WordKey(batch.batch_id, 0, number)


def _words(batch: Batch, paths: _Paths) -> set[WordKey]:
    """All words of the paths."""
    return {_leaf(batch, number) for number in paths} | {key for path in paths.values() for key, _ in path}


def not_redriven(parts: PartStore, batch_id: int, notes: Sequence[FailureRow]) -> list[FailureRow]:
    """Those notes that no redrive has taken: of items that failed after it, or were never redriven."""
    taken = parts.redriven(batch_id, [note.ordinal for note in notes])
    return [
        note for note in notes if note.ordinal not in taken or note.failed_at > taken[note.ordinal].failed_at
    ]
