"""Failures: a page of them, one with its message, what they have in common; and releasing held items.

Released items are given up, and count as done, so that their batch can complete.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from fanin.app.failures import load_messages
from fanin.app.ledger.held import READS
from fanin.app.ledger.reading import AROUND
from fanin.app.ledger.settle import Settling, brought
from fanin.app.ports.parts import REDRIVE, FailureRow, Redriven
from fanin.app.ports.words import WordKey
from fanin.domain import ids, limits
from fanin.domain.batch import Batch, Kind
from fanin.domain.failures import MAX_ERROR
from fanin.domain.redrives import Selection
from fanin.domain.reports import (
    ErrorGroup,
    Errors,
    FailedItem,
    FailedMessage,
    Failures,
    ReleasedItems,
    by_error,
)
from fanin.errors import FailureNotFound, InvalidRequest


class _Part(NamedTuple):
    """Notes of a page that count, each with whether its item is held."""

    notes: Mapping[FailureRow, bool]
    cursor: str | None


class Failing(Settling):
    """Reads the failed items of batches, and gives up those that are held."""

    def failures(self, batch_id: int, *, cursor: str | None = None, limit: int = 100) -> Failures:
        limits.whole("limit", limit, 1, limits.MAX_PAGE)
        batch = self._known.current(batch_id)
        redriven = self._shows_redrives(batch)
        part = self._part(batch, cursor, limit, each=int(redriven) + bool(batch.keyed))
        return Failures(self._shown(batch, part.notes), part.cursor)

    def failure(self, batch_id: int, ordinal: int) -> FailedMessage:
        limits.whole("the ordinal of an item", ordinal, 0, ids.MAX_ITEMS - 1)
        batch = self._known.current(batch_id)
        notes = list(self.ports.parts.notes(batch_id, [ordinal]).values())
        confirmed = self._that_count(batch, notes)
        if not confirmed:
            raise FailureNotFound(
                f"item {ordinal} of batch {batch_id} has not failed; `fanin failures` lists those that have"
            )
        (failure,) = self._shown(batch, confirmed)
        return FailedMessage(failure, load_messages(self.ports, batch_id, list(confirmed)).get(ordinal))

    def errors(self, batch_id: int, *, cursor: str | None = None) -> Errors:
        batch = self._known.current(batch_id)
        part = self._part(batch, cursor, self.rows, each=0)
        return Errors(by_error(map(_group, map(_failed_item, part.notes))), part.cursor)

    def release(
        self, batch_id: int, selection: Selection | None = None, *, cursor: str | None = None
    ) -> ReleasedItems:
        """Mark one page of the selected held items as failed; may be repeated.

        An item that is acknowledged or redriven at the same time is decided by whoever clears its bit first.
        An item that a redrive has taken is in a queue, and not held: it is left to its consumer.

        Raises:
            InvalidRequest: the batch holds no items, or the selection or the cursor is invalid.
            Throttled, ServiceUnavailable: some items may be marked; repeat the call.
        """
        selection = selection or Selection()
        selection.check()
        batch = self._known.current(batch_id)
        if not batch.holds:
            raise InvalidRequest(
                f"batch {batch_id} holds no items: an item that fails in it is done; open a batch with"
                ' on_failure="hold" to hold them'
            )
        if batch.state.terminal:
            return ReleasedItems(self._held.counted(batch))
        left = self.rows - AROUND - READS
        each, released, after = self._held.most_reads(batch), 0, cursor
        while True:
            limit = max(1, min(limits.MAX_PAGE, left // each))
            notes, after = self.ports.parts.failures(batch_id, cursor=after, limit=limit)
            chosen = [note for note in notes if selection.takes(note.ordinal, note.reason)]
            released += self._fail(batch, self._held.among(batch, chosen))
            left -= max(1, len(notes)) + self._held.reads(batch, [note.ordinal for note in chosen])
            if after is None or left < each:
                break
        batch = self._held.counted(self._known.cached(batch_id) or batch)
        return ReleasedItems(batch, released, None if batch.state.terminal else after)

    def _part(self, batch: Batch, cursor: str | None, limit: int, *, each: int) -> _Part:
        """Read notes up to a limit, or until another could take more rows than are left.

        A note takes the word of its item; one that may be held takes those above it, too, and the mark of a
        redrive. Neighbours share words, so it is only known afterwards how many rows notes have taken.

        Args:
            batch: the row.
            cursor: of the part before.
            limit: most notes.
            each: rows that the caller reads for each note that counts.
        """
        left = self.rows - 1  # the batch
        most = each + (self._held.most_reads(batch) + 1 if batch.may_hold_more else 2)
        found: dict[FailureRow, bool] = {}
        while True:
            notes, cursor = self.ports.parts.failures(
                batch.batch_id, cursor=cursor, limit=max(1, min(limit, left // most))
            )
            found |= self._that_count(batch, notes)
            limit -= len(notes)
            ordinals = [note.ordinal for note in notes]
            left -= max(1, len(notes)) * (1 + each) + len({n // self._tree.width for n in ordinals})
            if batch.may_hold_more:
                left -= self._held.reads(batch, ordinals)
            if cursor is None or limit <= 0 or left < most:
                return _Part(found, cursor)

    def _that_count(self, batch: Batch, notes: Sequence[FailureRow]) -> Mapping[FailureRow, bool]:
        """The notes of items that have failed, or are held; and whether they are held."""
        failed = {note.ordinal for note in self._failed.confirmed(batch, notes)}
        others = [note for note in notes if note.ordinal not in failed] if batch.may_hold_more else []
        held = {note.ordinal for note in self._held.among(batch, others)} if others else set()
        return {note: note.ordinal in held for note in notes if note.ordinal in failed | held}

    def _shows_redrives(self, batch: Batch) -> bool:
        return self._redrives and batch.kind is Kind.BATCH  # what a pattern sends has no redrive

    def _shown(self, batch: Batch, notes: Mapping[FailureRow, bool]) -> tuple[FailedItem, ...]:
        redriven: Mapping[int, Redriven] = {}
        if notes and self._shows_redrives(batch):
            redriven = self.ports.parts.redriven(batch.batch_id, [note.ordinal for note in notes])
        ordinals = [note.ordinal for note in notes]
        keys = self.ports.parts.keys_of(batch.batch_id, ordinals) if batch.keyed else {}
        return tuple(
            replace(
                _failed_item(
                    note, redriven[note.ordinal].redrive if note.ordinal in redriven else None, held=held
                ),
                key=keys.get(note.ordinal, ""),
            )
            for note, held in notes.items()
        )

    def _fail(self, batch: Batch, notes: list[FailureRow]) -> int:
        """Mark items as failed; each brings to the totals what its failure brought when it was held."""
        leaves = self._tree.masks(note.ordinal for note in notes)
        masks = {WordKey(batch.batch_id, 0, number): mask for number, mask in leaves.items()}
        values = ((note.ordinal, dict(note.totals)) for note in notes)
        cleared = self.settle(masks, failed=masks, brought=brought(batch, values, self._tree))
        if masks:
            self._known.touch(self._known.cached(batch.batch_id) or batch)
        return sum((masks[key] & found.first).bit_count() for key, found in cleared.items())


def _failed_item(note: FailureRow, redriven: str | None = None, *, held: bool = False) -> FailedItem:
    return FailedItem(
        note.ordinal,
        note.item,
        note.reason,
        note.failed_at,
        attempts=note.attempts,
        source=note.source,
        kept=bool(note.kept),
        redriven=redriven and redriven.removeprefix(REDRIVE),
        held=held,
    )


def _group(item: FailedItem) -> ErrorGroup:
    return ErrorGroup(
        item.error, 1, item.reason[:MAX_ERROR], item.ordinal, item.failed_at, kept=int(item.kept)
    )
