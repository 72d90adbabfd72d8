"""Which batches have ended, as far as a process has learned it from answers; an end is for ever."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, TypeVar

from fanin.domain.acks import Receipt
from fanin.domain.batch import Batch

_MOST: Final = 10_000
"""Batches that are remembered; the oldest are forgotten first."""

B = TypeVar("B", bound=Batch)
R = TypeVar("R", bound=Sequence[Receipt])


class EndedBatches:
    """Remembers which batches have ended, and when an answer last told of one that lives.

    Every answer that names a batch teaches it, so it costs nothing. Threads may share it: what is forgotten
    or noted twice does no harm.

    Args:
        monotonic: tells the age of an answer, in seconds.
    """

    def __init__(self, monotonic: Callable[[], float]) -> None:
        self._monotonic = monotonic
        self._ended: dict[int, bool] = {}
        self._answered: dict[int, float] = {}

    def __contains__(self, batch_id: object) -> bool:
        """Whether a batch is known to have ended."""
        return batch_id in self._ended

    def note(self, batch: B) -> B:
        """Learn from a batch, and return it."""
        self._learn(batch.batch_id, ended=batch.state.terminal)
        return batch

    def learn(self, receipts: R) -> R:
        """Learn from receipts, and return them."""
        for receipt in receipts:
            self._learn(receipt.batch_id, ended=receipt.state.terminal or receipt.complete)
        return receipts

    def gone(self, batch_id: int) -> None:
        """Note that a batch was removed."""
        self._learn(batch_id, ended=True)

    def age(self, batch_id: int) -> float | None:
        """Seconds since the last answer that told of a batch as live; None if there was none."""
        at = self._answered.get(batch_id)
        return None if at is None else self._monotonic() - at

    def first_time(self, batch_id: int) -> bool:
        """Whether this is asked for the first time of an ended batch, so that it is logged once."""
        asked = self._ended.get(batch_id, False)
        self._ended[batch_id] = True
        return not asked

    def _learn(self, batch_id: int, *, ended: bool) -> None:
        if ended:
            self._ended.setdefault(batch_id, False)
            self._answered.pop(batch_id, None)
            _forget(self._ended)
        elif batch_id not in self._ended:
            self._answered.pop(batch_id, None)
            self._answered[batch_id] = self._monotonic()
            _forget(self._answered)


def _forget(known: dict[int, bool] | dict[int, float]) -> None:
    for oldest in list(known)[: max(0, len(known) - _MOST)]:
        known.pop(oldest, None)
