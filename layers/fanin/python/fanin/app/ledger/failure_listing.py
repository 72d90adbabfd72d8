"""Reading failures: a page of them, one with its message, and what they have in common."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from fanin.app.failures import KeptMessages
from fanin.app.ledger.failed import Failed
from fanin.app.ledger.held import Held
from fanin.app.ledger.known_batches import KnownBatches
from fanin.app.ports import Ports
from fanin.app.ports.parts import REDRIVE, FailureRow, Redriven
from fanin.domain import ids, limits
from fanin.domain.batch import Batch, Kind
from fanin.domain.failures import MAX_ERROR
from fanin.domain.reports import ErrorGroup, Errors, FailedItem, FailedMessage, Failures, by_error
from fanin.errors import FailureNotFound


class _Part(NamedTuple):
    """Notes of a page that count, each with whether its item is held."""

    notes: Mapping[FailureRow, bool]
    cursor: str | None


class FailureListing:
    """Reads the failed items of batches.

    Args:
        ports: the stores.
        known: batch rows that this process remembers.
        redrives: whether listings say which redrive took a failure, which is a read for each.
        rows: how many rows a listing reads at most.
    """

    def __init__(
        self, ports: Ports, known: KnownBatches, *, redrives: bool = True, rows: int = limits.MAX_ROWS
    ) -> None:
        self._redrives = redrives
        self._rows = rows
        self._ports = ports
        self._known = known
        self._failed = Failed(ports)
        self._held = Held(ports)
        self._messages = KeptMessages(ports)

    def page(self, batch_id: int, *, cursor: str | None, limit: int) -> Failures:
        limits.whole("limit", limit, 1, limits.MAX_PAGE)
        batch = self._known.current(batch_id)
        redriven = self._shows_redrives(batch)
        part = self._part(batch, cursor, limit, each=int(redriven) + bool(batch.keyed))
        return Failures(self._shown(batch, part.notes), part.cursor)

    def one(self, batch_id: int, ordinal: int) -> FailedMessage:
        limits.whole("the ordinal of an item", ordinal, 0, ids.MAX_ITEMS - 1)
        batch = self._known.current(batch_id)
        notes = list(self._ports.parts.notes(batch_id, [ordinal]).values())
        confirmed = self._that_count(batch, notes)
        if not confirmed:
            raise FailureNotFound(
                f"item {ordinal} of batch {batch_id} has not failed; `fanin failures` lists those that have"
            )
        (failure,) = self._shown(batch, confirmed)
        return FailedMessage(failure, self._messages.load(batch_id, list(confirmed)).get(ordinal))

    def errors(self, batch_id: int, *, cursor: str | None) -> Errors:
        batch = self._known.current(batch_id)
        part = self._part(batch, cursor, self._rows, each=0)
        return Errors(by_error(map(_group, map(_failed_item, part.notes))), part.cursor)

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
        left = self._rows - 1  # the batch
        most = each + (self._held.most_reads(batch) + 1 if batch.may_hold_more else 2)
        found: dict[FailureRow, bool] = {}
        while True:
            notes, cursor = self._ports.parts.failures(
                batch.batch_id, cursor=cursor, limit=max(1, min(limit, left // most))
            )
            found |= self._that_count(batch, notes)
            limit -= len(notes)
            ordinals = [note.ordinal for note in notes]
            left -= max(1, len(notes)) * (1 + each) + len({n // self._ports.tree.width for n in ordinals})
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
            redriven = self._ports.parts.redriven(batch.batch_id, [note.ordinal for note in notes])
        ordinals = [note.ordinal for note in notes]
        keys = self._ports.parts.keys_of(batch.batch_id, ordinals) if batch.keyed else {}
        return tuple(
            replace(
                _failed_item(
                    note, redriven[note.ordinal].redrive if note.ordinal in redriven else None, held=held
                ),
                key=keys.get(note.ordinal, ""),
            )
            for note, held in notes.items()
        )


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
