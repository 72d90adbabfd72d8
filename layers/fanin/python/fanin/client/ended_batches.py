"""Which batches have ended, as far as a process has learned it from answers; an end is for ever.

An estimated batch that is complete has not ended here: it counts repeats, so it may be complete early, and
some of its messages may still have work that nobody has done.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, TypeVar

from fanin.domain.batch import Batch, Mode, State
from fanin.domain.marks import Mark, Marked, batch_of
from fanin.errors import BatchGone

_MOST: Final = 10_000
"""Batches that are remembered; the oldest are forgotten first."""

B = TypeVar("B", bound=Batch)


class EndedBatches:
    """Remembers which batches have ended, and when an answer last said that a batch is live.

    Every answer that names a batch teaches it, so it costs nothing. Threads may share it: what is forgotten
    or noted twice does no harm.

    Args:
        monotonic: tells the age of an answer, in seconds.
    """

    def __init__(self, monotonic: Callable[[], float]) -> None:
        self._monotonic = monotonic
        self._ended: dict[int, bool] = {}
        self._complete: dict[int, bool] = {}
        self._answered: dict[int, float] = {}
        self._exact: dict[int, bool] = {}
        self._doubtful: dict[int, bool] = {}

    def __contains__(self, batch_id: object) -> bool:
        """Whether a batch is known to have ended."""
        return batch_id in self._ended

    def complete(self, batch_id: int) -> bool:
        """Whether a batch is known to be complete."""
        return batch_id in self._complete

    def note(self, batch: B) -> B:
        """Learn from a batch, and return it."""
        self._exact[batch.batch_id] = batch.mode is Mode.EXACT
        _forget(self._exact)
        self._doubtful.pop(batch.batch_id, None)
        self._learn(batch.batch_id, batch.state)
        return batch

    def learn(self, marks: Sequence[Mark], marked: Marked) -> None:
        """Learn from the answer to a request: from receipts, and from refusals of batches that are gone."""
        for place, error in marked.refused.items():
            if isinstance(error, BatchGone) and (batch_id := batch_of(marks[place])) is not None:
                self.gone(batch_id)
        for receipt in marked.receipts:
            if receipt.first or receipt.duplicates or receipt.held:  # only exact batches know that
                self._exact[receipt.batch_id] = True
                _forget(self._exact)
            state = State.COMPLETE if receipt.complete else receipt.state
            if (
                state is State.COMPLETE
                and receipt.batch_id not in self._exact
                and (receipt.ranged or receipt.late)
            ):
                self._doubtful[receipt.batch_id] = True
                _forget(self._doubtful)
            else:
                self._learn(receipt.batch_id, state)

    def gone(self, batch_id: int) -> None:
        """Note that a batch was removed."""
        self._doubtful.pop(batch_id, None)
        self._end(batch_id)

    def silent(self, batch_id: int) -> None:
        """Note that no answer came to a question about a batch, so that it is not asked again at once."""
        self._doubtful.pop(batch_id, None)
        self._live(batch_id)

    def doubtful(self, batch_id: int) -> bool:
        """Whether a batch is complete, and may be estimated; if it is exact, it has ended."""
        return batch_id in self._doubtful

    def age(self, batch_id: int) -> float | None:
        """Seconds since an answer last said that a batch is live, or did not come; None if there was none."""
        at = self._answered.get(batch_id)
        return None if at is None else self._monotonic() - at

    def first_time(self, batch_id: int) -> bool:
        """True the first time it is called for an ended batch, so that the end is logged once."""
        asked = self._ended.get(batch_id, False)
        self._ended[batch_id] = True
        return not asked

    def _learn(self, batch_id: int, state: State) -> None:
        early = state is State.COMPLETE and not self._exact.get(batch_id, True)
        if state.terminal and not early:
            self._end(batch_id)
            if state is State.COMPLETE:
                self._complete[batch_id] = True
                _forget(self._complete)
        else:
            self._live(batch_id)

    def _end(self, batch_id: int) -> None:
        self._ended.setdefault(batch_id, False)
        self._answered.pop(batch_id, None)
        _forget(self._ended)

    def _live(self, batch_id: int) -> None:
        if batch_id not in self._ended:
            self._answered.pop(batch_id, None)
            self._answered[batch_id] = self._monotonic()
            _forget(self._answered)


def _forget(known: dict[int, bool] | dict[int, float]) -> None:
    for oldest in list(known)[: max(0, len(known) - _MOST)]:
        known.pop(oldest, None)
