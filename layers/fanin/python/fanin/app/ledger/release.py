"""Releasing held items: they are given up, and count as done, so that their batch can complete."""

from __future__ import annotations

from fanin.app.ledger.held import READS, Held
from fanin.app.ledger.known_batches import KnownBatches
from fanin.app.ledger.reading import AROUND
from fanin.app.ledger.settle import Settler, brought
from fanin.app.ports import Ports
from fanin.app.ports.parts import FailureRow
from fanin.app.ports.words import WordKey
from fanin.domain import limits
from fanin.domain.batch import Batch
from fanin.domain.redrives import Selection
from fanin.domain.reports import ReleasedItems
from fanin.errors import InvalidRequest


class Release:
    """Marks held items as failed.

    An item that is acknowledged or redriven at the same time is decided by whoever clears its bit first. An
    item that a redrive has taken is in a queue, and not held: it is left to its consumer.

    Args:
        ports: the stores.
        known: batch rows that this process remembers.
        settler: clears bits and settles what they finish.
        rows: how many rows one call reads at most.
    """

    def __init__(
        self, ports: Ports, known: KnownBatches, settler: Settler, *, rows: int = limits.MAX_ROWS
    ) -> None:
        self._ports = ports
        self._known = known
        self._settler = settler
        self._held = Held(ports)
        self._rows = rows

    def release(self, batch_id: int, selection: Selection, *, cursor: str | None = None) -> ReleasedItems:
        """Mark one page of the selected items as failed; may be repeated.

        Raises:
            InvalidRequest: the batch holds no items, or the selection or the cursor is invalid.
            Throttled, ServiceUnavailable: some items may be marked; repeat the call.
        """
        selection.check()
        batch = self._known.current(batch_id)
        if not batch.holds:
            raise InvalidRequest(
                f"batch {batch_id} holds no items: an item that fails in it is done; open a batch with"
                ' on_failure="hold" to hold them'
            )
        if batch.state.terminal:
            return ReleasedItems(self._held.counted(batch))
        left = self._rows - AROUND - READS
        each, released, after = self._held.most_reads(batch), 0, cursor
        while True:
            limit = max(1, min(limits.MAX_PAGE, left // each))
            notes, after = self._ports.parts.failures(batch_id, cursor=after, limit=limit)
            chosen = [note for note in notes if selection.takes(note.ordinal, note.reason)]
            released += self._fail(batch, self._held.among(batch, chosen))
            left -= max(1, len(notes)) + self._held.reads(batch, [note.ordinal for note in chosen])
            if after is None or left < each:
                break
        batch = self._held.counted(self._known.cached(batch_id) or batch)
        return ReleasedItems(batch, released, None if batch.state.terminal else after)

    def _fail(self, batch: Batch, notes: list[FailureRow]) -> int:
        """Mark items as failed; each brings to the totals what its failure brought when it was held."""
        tree = self._ports.tree
        leaves = tree.masks(note.ordinal for note in notes)
        masks = {WordKey(batch.batch_id, 0, number): mask for number, mask in leaves.items()}
        values = ((note.ordinal, dict(note.totals)) for note in notes)
        cleared = self._settler.settle(masks, failed=masks, brought=brought(batch, values, tree))
        if masks:
            self._known.touch(self._known.cached(batch.batch_id) or batch)
        return sum((masks[key] & found.first).bit_count() for key, found in cleared.items())
