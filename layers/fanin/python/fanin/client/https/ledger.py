"""Batches and acknowledgements over HTTPS."""

import time
from collections.abc import Sequence
from typing import Any

from fanin.client.ended_batches import EndedBatches
from fanin.client.https.api import HttpsApi, HttpsService
from fanin.domain.batch import Batch, Mode
from fanin.domain.marks import Count, Mark, Marked, batch_of, merge
from fanin.errors import GONE, FaninError, InvalidRequest, OutcomeUnknown, ServiceUnavailable
from fanin.wire.marks import size_of


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
        self._known = EndedBatches(time.monotonic)

    def _ask(self, name: str, given: dict[str, Any], **how: Any) -> Any:
        answer = super()._ask(name, given, **how)
        batch = answer if isinstance(answer, Batch) else getattr(answer, "batch", None)
        if batch is not None:
            self._known.note(batch)
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
        self._known.learn(marks, marked)
        return marked

    def _is_exact(self, batch_id: int | None) -> bool:
        return batch_id is None or self._known.of(batch_id).exact is True

    def _may_count(self, mark: Mark) -> bool:
        """Whether a mark is known to be of an estimated batch, which counts a repeat again."""
        if isinstance(mark, Count):
            return True
        batch_id = batch_of(mark)
        return batch_id is not None and self._known.of(batch_id).exact is False

    def _repeatable(self, marks: Sequence[Mark]) -> bool:
        """Whether none of the marks is of an estimated batch; asks for the modes that are not known.

        It asks of all batches, so that it is known afterwards which marks may be repeated.
        """
        named = dict.fromkeys(batch_of(mark) for mark in marks)
        exact = [self._exact_batch(batch_id) for batch_id in named if batch_id is not None]
        return all(exact) and not any(isinstance(mark, Count) for mark in marks)

    def _exact_batch(self, batch_id: int) -> bool:
        if (exact := self._known.of(batch_id).exact) is not None:
            return exact
        try:
            return self._ask("status", {"batch_id": batch_id}).batch.mode is Mode.EXACT
        except GONE:
            return True  # the service refuses such a call
