"""Scatter-gather over HTTPS."""

from __future__ import annotations

from collections.abc import Sequence

from fanin.client.https.api import HttpsApi, keyed
from fanin.domain.claim_checks import ClaimCheck, ClaimCheckRequest
from fanin.domain.principals import Principal
from fanin.domain.scatter import (
    FailedRecipients,
    Gathered,
    MissingRecipients,
    Reply,
    ReplyReceipt,
    Scatter,
    Scattered,
)
from fanin.wire import scatters as wire


class HttpsScatters:
    """Implements ``fanin.app.api.Scatters`` against a deployed API.

    A start without a key gets one here, so that it starts one scatter however often it is sent.

    Args:
        api: the API.
    """

    def __init__(self, api: HttpsApi) -> None:
        self._api = api

    def start(
        self, scatter: Scatter, *, key: str | None = None, caller: Principal | None = None
    ) -> Scattered:
        body = wire.SCATTER.encode(scatter)
        return self._api.call(wire.SCATTERED, "POST", "/scatters", body, headers=keyed(key, caller))

    def status(self, batch_id: int) -> Scattered:
        return self._api.call(wire.SCATTERED, "GET", f"/scatters/{batch_id}")

    def replies(self, batch_id: int, *, cursor: str | None = None, limit: int = 100) -> Gathered:
        query = {"cursor": cursor, "limit": limit}
        return self._api.call(wire.GATHERED, "GET", f"/scatters/{batch_id}/replies", query=query)

    def missing_recipients(
        self, batch_id: int, *, cursor: str | None = None, limit: int = 100
    ) -> MissingRecipients:
        query = {"cursor": cursor, "limit": limit}
        return self._api.call(wire.MISSING_RECIPIENTS, "GET", f"/scatters/{batch_id}/missing", query=query)

    def failed_recipients(
        self, batch_id: int, *, cursor: str | None = None, limit: int = 100
    ) -> FailedRecipients:
        query = {"cursor": cursor, "limit": limit}
        return self._api.call(wire.FAILED_RECIPIENTS, "GET", f"/scatters/{batch_id}/failed", query=query)

    def reply(self, replies: Sequence[Reply]) -> list[ReplyReceipt]:
        body = wire.REPLIES.encode(replies)
        receipts = self._api.call(wire.REPLY_RECEIPTS, "POST", "/replies", body)
        return list(receipts)

    def claim(self, request: ClaimCheckRequest) -> ClaimCheck:
        body = wire.CLAIM_CHECK_REQUEST.encode(request)
        return self._api.call(wire.CLAIM_CHECK, "POST", "/claim-checks", body)
