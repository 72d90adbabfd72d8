"""How many items of a batch have failed.

The tree carries tallies up. Where these may miss some, the notes of failures are counted. A tally is exact
unless a range was marked high in the tree; and it reaches the words that a reader visits only when the words
below are finished.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Final

from fanin.app.ledger.walk import with_totals
from fanin.app.ports import Ports
from fanin.app.ports.parts import FailureRow
from fanin.app.ports.words import Clear, Tallied, Tally, WordKey
from fanin.domain.batch import Batch, Mode
from fanin.errors import FaninError

MOST_COUNTED: Final = 10_000
"""Notes of failures that are read at most when a batch completes."""


class Failed:
    """Counts failed items.

    Args:
        ports: the stores.
    """

    def __init__(self, ports: Ports) -> None:
        self._ports = ports

    def counted(self, batch: Batch, tally: Tally, *, budget: int) -> Batch:
        """The row with the number of its failed items.

        Args:
            batch: the row.
            tally: of the words that were visited; whole if no failure can lie below any other word.
            budget: how many rows may be read, at least 1.

        Returns:
            The row; ``failed_more`` if some failures may not be counted.
        """
        if not batch.failed_more:
            return batch
        if tally.whole:
            return replace(batch, failed=tally.failed, failed_more=False)
        notes, cursor = self._ports.parts.failures(batch.batch_id, limit=max(1, min(budget // 2, 1_000)))
        affordable = 2 * len(notes) <= budget  # each note may take the read of a word
        found = len(self.confirmed(batch, notes)) if affordable else 0
        if cursor is None and affordable:
            return replace(batch, failed=found, failed_more=False)
        return replace(batch, failed=max(found, tally.failed, batch.failed))

    def at_the_end(self, batch: Batch, tally: Tally) -> tuple[int, bool]:
        """Count the failed items of a batch of which every item is marked, before it is written as complete.

        A range passes over what has failed below it. It may also pass a failure that is being written: its
        note is there, and nothing above its item was clear when it looked. So the bits of items with notes
        are cleared here: whichever mark was first at the item's own word decides, and none comes later.

        Args:
            batch: the row.
            tally: of the root.

        Returns:
            How many items failed, and whether there may be more: of many notes, so many are read.
        """
        failed, cursor, left = 0, None, MOST_COUNTED
        while left:
            notes, cursor = self._ports.parts.failures(batch.batch_id, cursor=cursor, limit=min(1_000, left))
            left -= len(notes)
            self._mark_done(batch, notes)
            failed += len(self.confirmed(batch, notes))
            if cursor is None:
                return failed, False
        return max(failed, tally.failed), True

    def _mark_done(self, batch: Batch, notes: Sequence[FailureRow]) -> None:
        """Clear those bits on level 0 that are pending because a range was marked above them."""
        leaves = self._ports.tree.masks(note.ordinal for note in notes)
        masks = {WordKey(batch.batch_id, 0, number): mask for number, mask in leaves.items()}
        words = self._ports.words.read(masks)
        full = self._ports.tree.full
        pending = {key: mask & words.get(key, full) for key, mask in masks.items()}
        clears = [Clear(key, mask, batch.expires_at) for key, mask in pending.items() if mask]
        for outcome in self._ports.words.clear(clears) if clears else ():
            if isinstance(outcome, FaninError):
                raise outcome

    def confirmed(self, batch: Batch, notes: Sequence[FailureRow]) -> Sequence[FailureRow]:
        """Those notes whose item has failed: a note is written first, and then another mark may have won."""
        if batch.mode is Mode.ESTIMATED:
            return notes
        failed = self.among(batch.batch_id, [note.ordinal for note in notes])
        return [note for note in notes if note.ordinal in failed]

    def among(self, batch_id: int, ordinals: Iterable[int]) -> set[int]:
        """Those ordinals of an exact batch whose bit was cleared as failed; reads their words."""
        tree = self._ports.tree
        places = {ordinal: divmod(ordinal, tree.width) for ordinal in ordinals}
        numbers = sorted({number for number, _ in places.values()})
        masks = self._ports.words.read_failed([WordKey(batch_id, 0, number) for number in numbers])
        return {
            ordinal
            for ordinal, (number, position) in places.items()
            if masks.get(WordKey(batch_id, 0, number), 0) & tree.bits[position]
        }

    def listed(self, batches: Sequence[Batch]) -> tuple[Batch, ...]:
        """Rows with what the roots of their trees know, which is one read for each live batch."""
        tree = self._ports.tree
        roots = {
            batch.batch_id: WordKey(batch.batch_id, tree.root_level(batch.items), 0)
            for batch in batches
            if batch.mode is Mode.EXACT and (batch.failed_more or (batch.totals and not batch.totals_exact))
        }
        words = self._ports.words.read_tallied(roots.values())

        def seen(batch: Batch) -> Batch:
            root = roots.get(batch.batch_id)
            if root is None:
                return batch
            found = words.get(root, Tallied(tree.full, Tally()))
            tally = found.tally.for_totals(len(batch.totals))
            whole = tally.whole and root.level == 0
            batch = with_totals(batch, tally, all_read=root.level == 0)
            return replace(batch, failed=tally.failed, failed_more=not whole) if batch.failed_more else batch

        return tuple(map(seen, batches))
