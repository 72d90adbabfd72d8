"""Which batches are estimated, as far as a client has learned it from answers; a batch keeps its mode."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from fanin.domain.batch import Batch, Mode
from fanin.domain.marks import ItemRange, Mark, Receipt

_MOST: Final = 10_000
"""Batches that are remembered; the oldest are forgotten first."""


class KnownModes:
    """Remembers the modes of batches, so that a client need not ask while the service does not answer.

    Threads may share it: a mode that is forgotten or noted twice does no harm.
    """

    def __init__(self) -> None:
        self._modes: dict[int, Mode] = {}

    def of(self, batch_id: int) -> Mode | None:
        """The mode of a batch; None if no answer has told it yet."""
        return self._modes.get(batch_id)

    def note(self, batch: Batch) -> Batch:
        """Learn from a batch, and return it."""
        self._keep(batch.batch_id, batch.mode)
        return batch

    def learn(self, marks: Iterable[Mark], receipts: Iterable[Receipt]) -> None:
        """Learn from the receipts of a request.

        Only exact batches know who was first. Items that were named by their ids, and that a receipt counts
        as a range all the same, are those of an estimated batch. An ended batch counts nothing any more, so
        it does no harm if an estimated one passes for exact then.
        """
        ranges = any(isinstance(mark, ItemRange) for mark in marks)
        for receipt in receipts:
            if receipt.first or receipt.duplicates or receipt.held:
                self._keep(receipt.batch_id, Mode.EXACT)
            elif receipt.ranged and not ranges:
                self._keep(receipt.batch_id, Mode.ESTIMATED)

    def _keep(self, batch_id: int, mode: Mode) -> None:
        self._modes[batch_id] = mode
        if len(self._modes) > _MOST:
            for oldest in list(self._modes)[: len(self._modes) - _MOST]:
                self._modes.pop(oldest, None)
