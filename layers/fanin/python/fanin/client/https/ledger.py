"""Batches and acknowledgements over HTTPS."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from fanin.client.https.api import HttpsApi, keyed
from fanin.domain.acks import Acks, Count, Failure, ItemRange, Receipt
from fanin.domain.batch import Batch, Mode, OpenBatch, State
from fanin.domain.ids import Group, parse_batch_id
from fanin.domain.reports import Batches, Expired, Failures, Missing, Progress, Verdict
from fanin.errors import BatchGone, BatchNotFound, InvalidRequest
from fanin.wire import batches
from fanin.wire import items as shapes
from fanin.wire.times import encode_time


class HttpsLedger:
    """Implements ``fanin.app.api.Ledger`` against a deployed API.

    A call whose answer was lost is sent again, so an ``open`` or an ``add`` without a key gets one here. Only
    what an estimated batch counts is not, because a repeat counts again.

    Args:
        api: the API.
    """

    def __init__(self, api: HttpsApi) -> None:
        self._api = api

    def open(self, request: OpenBatch, *, key: str | None = None) -> Batch:
        body = batches.OPEN_BATCH.encode(request)
        return self._api.call(batches.BATCH, "POST", "/batches", body, headers=keyed(key))

    def add(self, batch_id: int, count: int, *, key: str | None = None) -> Group:
        path, body = f"/batches/{batch_id}/items", {"count": count}
        return self._api.call(batches.GROUP, "POST", path, body, headers=keyed(key))

    def ack(
        self,
        items: Sequence[str] = (),
        *,
        ranges: Sequence[ItemRange] = (),
        counts: Sequence[Count] = (),
    ) -> list[Receipt]:
        body = shapes.ACKS.encode(Acks(items, ranges, counts))
        named = [*items, *(one.group for one in ranges)]
        receipts = self._api.call(
            shapes.RECEIPTS,
            "POST",
            "/acks",
            body,
            repeatable=lambda: not counts and self._exact(named),
            rest_is_repeated=True,
        )
        return list(receipts)

    def fail(self, failures: Sequence[Failure]) -> list[Receipt]:
        body = shapes.FAILURES.encode(failures)
        named = [failure.item for failure in failures]
        receipts = self._api.call(
            shapes.RECEIPTS,
            "POST",
            "/failures",
            body,
            repeatable=lambda: self._exact(named),
            rest_is_repeated=True,
        )
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

    def _exact(self, named: Collection[str]) -> bool:
        """Whether no item or group that is named belongs to an estimated batch, which would count it."""
        return all(self._exact_batch(batch) for batch in {name.partition(":")[0] for name in named})

    def _exact_batch(self, batch: str) -> bool:
        try:
            return self.status(parse_batch_id(batch)).batch.mode is Mode.EXACT
        except (InvalidRequest, BatchNotFound, BatchGone):
            return True  # the service refuses such a call
