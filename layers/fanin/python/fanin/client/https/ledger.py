"""Batches and acknowledgements over HTTPS."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from fanin.client.https.api import HttpsApi, keyed
from fanin.client.https.known_modes import KnownModes
from fanin.domain.batch import Batch, Mode, OpenBatch, State
from fanin.domain.ids import Group
from fanin.domain.marks import Count, Mark, Marked, batch_of, merge
from fanin.domain.principals import Principal
from fanin.domain.reports import (
    Batches,
    Errors,
    Expired,
    FailedMessage,
    Failures,
    Missing,
    Progress,
    ReleasedItems,
    Verdict,
)
from fanin.domain.selection import Selection
from fanin.domain.targets import TargetReports
from fanin.errors import (
    BatchGone,
    BatchNotFound,
    FaninError,
    InvalidRequest,
    OutcomeUnknown,
    ServiceUnavailable,
)
from fanin.wire import batches
from fanin.wire import items as shapes
from fanin.wire.marks import MARKED, MARKS, size_of
from fanin.wire.selections import SELECTION
from fanin.wire.targets import TARGET_REPORTS
from fanin.wire.times import encode_time

if TYPE_CHECKING:
    from fanin.domain.picture import Picture


class HttpsLedger:
    """Implements ``fanin.app.api.Ledger`` against a deployed API.

    A call whose answer was lost is sent again, so an ``open`` or an ``add`` without a key gets one here. Only
    what an estimated batch counts is not, because a repeat counts again. The modes of batches are learned
    from every answer; the service is asked for those that are not known only when an answer was lost.

    Args:
        api: the API.
    """

    def __init__(self, api: HttpsApi) -> None:
        self._api = api
        self._modes = KnownModes()

    def open(self, request: OpenBatch, *, key: str | None = None, caller: Principal | None = None) -> Batch:
        body = batches.OPEN_BATCH.encode(request)
        return self._modes.note(
            self._api.call(batches.BATCH, "POST", "/batches", body, headers=keyed(key, caller))
        )

    def add(
        self, batch_id: int, count: int, *, key: str | None = None, caller: Principal | None = None
    ) -> Group:
        path, body = f"/batches/{batch_id}/items", {"count": count}
        return self._api.call(batches.GROUP, "POST", path, body, headers=keyed(key, caller))

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
        marked = self._mark(sent) if sent else Marked()
        return merge([marked.at(places), Marked(refused=refused)])

    def _mark(self, marks: Sequence[Mark]) -> Marked:
        try:
            marked = self._api.call(
                MARKED,
                "POST",
                "/acks",
                MARKS.encode(marks),
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
            return Marked(left=left, unknown=unknown)
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

    def close(self, batch_id: int) -> Batch:
        return self._modes.note(self._api.call(batches.BATCH, "POST", f"/batches/{batch_id}/close"))

    def cancel(self, batch_id: int) -> Batch:
        return self._api.call(batches.BATCH, "POST", f"/batches/{batch_id}/cancel")

    def release(
        self, batch_id: int, selection: Selection | None = None, *, cursor: str | None = None
    ) -> ReleasedItems:
        body = SELECTION.encode(selection or Selection())
        path = f"/batches/{batch_id}/release"
        return self._api.call(batches.RELEASED, "POST", path, body, query={"cursor": cursor})

    def status(self, batch_id: int, *, exact: bool = False, brief: bool = False) -> Progress:
        query = {"exact": "true"} if exact else {"brief": "true"} if brief else {}
        progress = self._api.call(batches.PROGRESS, "GET", f"/batches/{batch_id}", query=query)
        self._modes.note(progress.batch)
        return progress

    def remove(self, batch_id: int) -> Expired:
        return self._api.call(batches.EXPIRED, "DELETE", f"/batches/{batch_id}")

    def targets(self, batch_id: int) -> TargetReports:
        return self._api.call(TARGET_REPORTS, "GET", f"/batches/{batch_id}/targets")

    def redeliver(self, batch_id: int) -> TargetReports:
        return self._api.call(TARGET_REPORTS, "POST", f"/batches/{batch_id}/targets/redeliver")

    def missing(self, batch_id: int, *, cursor: str | None = None, limit: int = 100) -> Missing:
        query = {"cursor": cursor, "limit": limit}
        return self._api.call(shapes.MISSING, "GET", f"/batches/{batch_id}/missing", query=query)

    def picture(self, batch_id: int, *, level: int | None = None, number: int = 0) -> Picture:
        from fanin.wire.picture import PICTURE  # noqa: PLC0415  only consoles ask for it

        query = {"level": level, "number": number}
        return self._api.call(PICTURE, "GET", f"/batches/{batch_id}/picture", query=query)

    def failures(self, batch_id: int, *, cursor: str | None = None, limit: int = 100) -> Failures:
        query = {"cursor": cursor, "limit": limit}
        return self._api.call(shapes.FAILED_ITEMS, "GET", f"/batches/{batch_id}/failures", query=query)

    def failure(self, batch_id: int, ordinal: int) -> FailedMessage:
        return self._api.call(shapes.FAILED_MESSAGE, "GET", f"/batches/{batch_id}/failures/{ordinal}")

    def errors(self, batch_id: int, *, cursor: str | None = None) -> Errors:
        query = {"cursor": cursor}
        return self._api.call(shapes.ERRORS, "GET", f"/batches/{batch_id}/errors", query=query)

    def verify(self, batch_id: int, *, cursor: str | None = None, repair: bool = True) -> Verdict:
        query = {"cursor": cursor, "repair": "true" if repair else "false"}
        return self._api.call(batches.VERDICT, "POST", f"/batches/{batch_id}/verify", query=query)

    def list(
        self,
        state: State | None = None,
        *,
        user_key: str | None = None,
        cursor: str | None = None,
        limit: int = 100,
    ) -> Batches:
        of = None if state is None else state.value
        query = {"state": of, "user_key": user_key, "cursor": cursor, "limit": limit}
        return self._api.call(batches.BATCHES, "GET", "/batches", query=query)

    def expire(self, state: State, *, idle_since: int, cursor: str | None = None) -> Expired:
        query = {"state": state.value, "idle_since": encode_time(idle_since), "cursor": cursor}
        return self._api.call(batches.EXPIRED, "DELETE", "/batches", query=query)

    def _exact_batch(self, batch_id: int) -> bool:
        if (known := self._modes.of(batch_id)) is not None:
            return known is Mode.EXACT
        try:
            return self.status(batch_id).batch.mode is Mode.EXACT
        except (BatchNotFound, BatchGone):
            return True  # the service refuses such a call
