"""Reading failures: a page of them, one with its message, and what they have in common."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from fanin.app.failures.messages import KeptMessages
from fanin.app.ledger.failed import Failed
from fanin.app.ledger.held import Held
from fanin.app.ledger.known_batches import KnownBatches
from fanin.app.ports import Ports
from fanin.app.ports.parts import FailureRow, Redriven
from fanin.domain import ids, limits
from fanin.domain.batch import Batch, Kind
from fanin.domain.failures import MAX_ERROR
from fanin.domain.reports import ErrorGroup, Errors, FailedItem, FailedMessage, Failures, by_error
from fanin.errors import FailureNotFound

ERRORS_PAGE: Final = 2_000
"""Notes that one call groups. Each may be a group of its own, and an answer has at most 6 MB."""


class FailureListing:
    """Reads the failed items of batches.

    Args:
        ports: the stores.
        known: batch rows that this process remembers.
        redrives: whether listings say which redrive took a failure, which is a read for each.
    """

    def __init__(self, ports: Ports, known: KnownBatches, *, redrives: bool = True) -> None:
        self._redrives = redrives
        self._ports = ports
        self._known = known
        self._failed = Failed(ports)
        self._held = Held(ports)
        self._messages = KeptMessages(ports)

    def page(self, batch_id: int, *, cursor: str | None, limit: int) -> Failures:
        limits.whole("limit", limit, 1, limits.MAX_PAGE)
        batch = self._known.current(batch_id)
        notes, after = self._ports.parts.failures(batch_id, cursor=cursor, limit=limit)
        return Failures(self._shown(batch, self._that_count(batch, notes)), after)

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
        groups: list[ErrorGroup] = []
        left = ERRORS_PAGE
        while left > 0:
            notes, cursor = self._ports.parts.failures(
                batch_id, cursor=cursor, limit=min(left, limits.MAX_PAGE)
            )
            groups += map(_group, map(_failed_item, self._that_count(batch, notes)))
            left -= len(notes)
            if cursor is None:
                break
        return Errors(by_error(groups), cursor)

    def _that_count(self, batch: Batch, notes: Sequence[FailureRow]) -> Mapping[FailureRow, bool]:
        """The notes of items that have failed, or are held; and whether they are held."""
        failed = {note.ordinal for note in self._failed.confirmed(batch, notes)}
        others = [note for note in notes if note.ordinal not in failed] if batch.may_hold_more else []
        held = {note.ordinal for note in self._held.among(batch, others)} if others else set()
        return {note: note.ordinal in held for note in notes if note.ordinal in failed | held}

    def _shown(self, batch: Batch, notes: Mapping[FailureRow, bool]) -> tuple[FailedItem, ...]:
        redriven: Mapping[int, Redriven] = {}
        if notes and self._redrives and batch.kind is Kind.BATCH:  # what a pattern sends has no redrive
            redriven = self._ports.parts.redriven(batch.batch_id, [note.ordinal for note in notes])
        return tuple(
            _failed_item(
                note, redriven[note.ordinal].redrive if note.ordinal in redriven else None, held=held
            )
            for note, held in notes.items()
        )


def _failed_item(note: FailureRow, redriven: str | None = None, *, held: bool = False) -> FailedItem:
    return FailedItem(
        note.ordinal,
        note.item,
        note.reason,
        attempts=note.attempts,
        failed_at=note.failed_at or None,
        source=note.source,
        kept=bool(note.kept),
        redriven=redriven,
        held=held,
    )


def _group(item: FailedItem) -> ErrorGroup:
    return ErrorGroup(
        item.error, 1, item.reason[:MAX_ERROR], item.ordinal, item.failed_at, kept=int(item.kept)
    )
