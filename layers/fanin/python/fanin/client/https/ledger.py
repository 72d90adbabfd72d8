"""Batches and acknowledgements over HTTPS."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final

from fanin.client.https.api import HttpsApi
from fanin.client.https.derived import HttpsService
from fanin.domain.batch import Batch, Mode
from fanin.domain.marks import Count, ItemRange, Mark, Marked, Receipt, batch_of, merge
from fanin.errors import (
    GONE,
    FaninError,
    InvalidRequest,
    OutcomeUnknown,
    ServiceUnavailable,
)
from fanin.wire.marks import size_of

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


class HttpsLedger(HttpsService):
    """Marks items, each request of them as often as that is safe.

    What an estimated batch counts is not sent again when its answer was lost, because a repeat counts again.
    The modes of batches are learned from every answer; the service is asked for those that are not known only
    when an answer was lost.

    Args:
        api: the API.
    """

    def __init__(self, api: HttpsApi) -> None:
        super().__init__(api)
        self._modes = KnownModes()

    def _ask(self, name: str, given: dict[str, Any], **how: Any) -> Any:
        answer = super()._ask(name, given, **how)
        batch = answer if isinstance(answer, Batch) else getattr(answer, "batch", None)
        if batch is not None:
            self._modes.note(batch)
        return answer

    def mark(self, marks: Sequence[Mark]) -> Marked:
        refused: dict[int, FaninError] = {}
        places: list[int] = []
        for place, mark in enumerate(marks):
            try:
                size_of(mark)
            except InvalidRequest as error:
                refused[place] = error
            else:
                places.append(place)
        sent = [marks[place] for place in places]
        marked = self._mark(sent) if sent else Marked(())
        return merge([marked.at(places), Marked((), refused=refused)])

    def _mark(self, marks: Sequence[Mark]) -> Marked:
        try:
            marked: Marked = self._ask(
                "mark",
                {"marks": marks},
                repeatable=lambda: self._repeatable(marks),
                fresh=not all(map(self._is_exact, {batch_of(mark) for mark in marks})),
            )
        except OutcomeUnknown as lost:
            unknown = {place: lost for place, mark in enumerate(marks) if self._may_count(mark)}
            silent = ServiceUnavailable(str(lost))
            left = {
                place: silent if self._is_exact(batch_of(mark)) else lost  # of which nobody knows the mode
                for place, mark in enumerate(marks)
                if place not in unknown
            }
            return Marked((), left=left, unknown=unknown)
        self._modes.learn(marks, marked.receipts)
        return marked

    def _is_exact(self, batch_id: int | None) -> bool:
        return batch_id is None or self._modes.of(batch_id) is Mode.EXACT

    def _may_count(self, mark: Mark) -> bool:
        """Whether a mark is known to be of an estimated batch, which counts a repeat again."""
        if isinstance(mark, Count):
            return True
        batch_id = batch_of(mark)
        return batch_id is not None and self._modes.of(batch_id) is Mode.ESTIMATED

    def _repeatable(self, marks: Sequence[Mark]) -> bool:
        """Whether none of the marks is of an estimated batch; asks for the modes that are not known.

        It asks of all batches, so that it is known afterwards which marks may be repeated.
        """
        named = dict.fromkeys(batch_of(mark) for mark in marks)
        exact = [self._exact_batch(batch_id) for batch_id in named if batch_id is not None]
        return all(exact) and not any(isinstance(mark, Count) for mark in marks)

    def _exact_batch(self, batch_id: int) -> bool:
        if (known := self._modes.of(batch_id)) is not None:
            return known is Mode.EXACT
        try:
            return self._ask("status", {"batch_id": batch_id}).batch.mode is Mode.EXACT
        except GONE:
            return True  # the service refuses such a call
