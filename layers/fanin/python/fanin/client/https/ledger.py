"""Batches and acknowledgements over HTTPS."""

from __future__ import annotations

import uuid
from collections.abc import Sequence

from fanin.client.https.api import HttpsApi
from fanin.domain.acks import Acks, Count, Failure, ItemRange, Receipt
from fanin.domain.batch import Batch, OpenBatch, State
from fanin.domain.ids import Group
from fanin.domain.reports import Batches, Expired, Failures, Missing, Progress, Verdict
from fanin.names import IDEMPOTENCY_HEADER
from fanin.wire import batches
from fanin.wire import items as shapes
from fanin.wire.times import encode_time


class HttpsLedger:
    """Implements ``fanin.app.api.Ledger`` against a deployed API.

    Every call may be sent again. An ``add`` without a key gets one here. An ``open`` without a key whose
    answer was lost leaves an empty batch, which the reaper ends.

    Args:
        api: the API.
    """

    def __init__(self, api: HttpsApi) -> None:
        self._api = api

    def open(self, request: OpenBatch, *, key: str | None = None) -> Batch:
        headers = {} if key is None else {IDEMPOTENCY_HEADER: key}
        return self._api.call(
            batches.BATCH, "POST", "/batches", batches.OPEN_BATCH.encode(request), headers=headers
        )

    def add(self, batch_id: int, count: int, *, key: str | None = None) -> Group:
        path, headers = f"/batches/{batch_id}/items", {IDEMPOTENCY_HEADER: key or uuid.uuid4().hex}
        return self._api.call(batches.GROUP, "POST", path, {"count": count}, headers=headers)

    def ack(
        self,
        items: Sequence[str] = (),
        *,
        ranges: Sequence[ItemRange] = (),
        counts: Sequence[Count] = (),
    ) -> list[Receipt]:
        body = shapes.ACKS.encode(Acks(items, ranges, counts))
        receipts = self._api.call(shapes.RECEIPTS, "POST", "/acks", body, rest_is_repeated=True)
        return list(receipts)

    def fail(self, failures: Sequence[Failure]) -> list[Receipt]:
        body = shapes.FAILURES.encode(failures)
        receipts = self._api.call(shapes.RECEIPTS, "POST", "/failures", body, rest_is_repeated=True)
        return list(receipts)

    def close(self, batch_id: int) -> Batch:
        return self._api.call(batches.BATCH, "POST", f"/batches/{batch_id}/close")

    def cancel(self, batch_id: int) -> Batch:
        return self._api.call(batches.BATCH, "POST", f"/batches/{batch_id}/cancel")

    def status(self, batch_id: int, *, exact: bool = False) -> Progress:
        query = {"exact": "true"} if exact else {}
        return self._api.call(batches.PROGRESS, "GET", f"/batches/{batch_id}", query=query)

    def remove(self, batch_id: int) -> Expired:
        return self._api.call(batches.EXPIRED, "DELETE", f"/batches/{batch_id}")

    def missing(self, batch_id: int, *, cursor: str | None = None, limit: int = 100) -> Missing:
        query = {"cursor": cursor, "limit": limit}
        return self._api.call(shapes.MISSING, "GET", f"/batches/{batch_id}/missing", query=query)

    def failures(self, batch_id: int, *, cursor: str | None = None, limit: int = 100) -> Failures:
        query = {"cursor": cursor, "limit": limit}
        return self._api.call(shapes.FAILED_ITEMS, "GET", f"/batches/{batch_id}/failures", query=query)

    def verify(self, batch_id: int, *, cursor: str | None = None, repair: bool = True) -> Verdict:
        query = {"cursor": cursor, "repair": "true" if repair else "false"}
        return self._api.call(batches.VERDICT, "POST", f"/batches/{batch_id}/verify", query=query)

    def list(self, state: State, *, cursor: str | None = None, limit: int = 100) -> Batches:
        query = {"state": state.value, "cursor": cursor, "limit": limit}
        return self._api.call(batches.BATCHES, "GET", "/batches", query=query)

    def expire(self, state: State, *, idle_since: int) -> Expired:
        query = {"state": state.value, "idle_since": encode_time(idle_since)}
        return self._api.call(batches.EXPIRED, "DELETE", "/batches", query=query)
