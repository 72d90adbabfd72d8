"""What became of work that was put in: tells finished work from work that nobody will ever do."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from enum import Enum, auto
from itertools import groupby
from typing import Final

from fanin.app.ledger.service import LedgerService
from fanin.app.ports import Ports
from fanin.domain import ids
from fanin.domain.ids import Block
from fanin.errors import GONE

LOST: Final = "its message is lost or expired"
"""Reason of items whose slots were reclaimed."""
REPLACED: Final = "its work was put in again under its key"
"""Reason of items that a repeat of their put replaced by others."""


class WorkState(Enum):
    """What became of an item's work.

    Attributes:
        FINISHED: done, or given up by its consumer: it failed there, or its message died as a dead letter.
        PENDING: neither; there may be a message for it.
        DROPPED: given up by the service, or its batch ended without it. No message for it counts any more.
        UNKNOWN: its batch is gone.
    """

    FINISHED = auto()
    PENDING = auto()
    DROPPED = auto()
    UNKNOWN = auto()


class WorkStates:
    """Reads the states of work from the bits of its items, and from the notes of those that failed.

    Args:
        ports: the words, and the notes of failed items.
        ledger: tells which items are pending.
    """

    def __init__(self, ports: Ports, ledger: LedgerService) -> None:
        self._ports = ports
        self._ledger = ledger

    def of(self, items: Sequence[str]) -> dict[str, WorkState]:
        """The states of items, which may be of several batches."""
        states: dict[str, WorkState] = {}
        for prefix, group in groupby(items, key=_prefix):
            states |= self._of_block(ids.parse_prefix(prefix), list(group))
        return states

    def _of_block(self, block: Block, items: Sequence[str]) -> dict[str, WorkState]:
        try:
            batch = self._ledger.refresh([block.batch_id])[block.batch_id]
            pending = self._ledger.pending(block.batch_id, block.first, block.stop)
        except GONE:
            return dict.fromkeys(items, WorkState.UNKNOWN)
        ordinals = {item: ids.parse_item(item)[1] for item in items}
        given_up = self._given_up(block.batch_id, set(ordinals.values()) - pending)
        if_pending = WorkState.DROPPED if batch.state.terminal else WorkState.PENDING
        return {
            item: if_pending
            if ordinal in pending
            else WorkState.DROPPED
            if ordinal in given_up
            else WorkState.FINISHED
            for item, ordinal in ordinals.items()
        }

    def _given_up(self, batch_id: int, ordinals: Collection[int]) -> set[int]:
        """Those that the service gave up; the note of a failure is written before its bit."""
        failed = self._ledger.failed_among(batch_id, ordinals)
        notes = self._ports.parts.notes(batch_id, failed) if failed else {}
        return {ordinal for ordinal, note in notes.items() if note.given_up}


def _prefix(item: str) -> str:
    return item.rpartition(":")[0]
