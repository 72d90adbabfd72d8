"""Redrives over HTTPS."""

from __future__ import annotations

from fanin.client.https.api import HttpsApi
from fanin.domain.redrives import Redrive, Redriving, Redrivings
from fanin.wire import redrives as shapes


class HttpsRedrives:
    """Implements ``fanin.app.api.Redrives`` against a deployed API.

    Args:
        api: the API.
    """

    def __init__(self, api: HttpsApi) -> None:
        self._api = api

    def redrive(self, batch_id: int, request: Redrive | None = None) -> Redriving:
        body = shapes.REDRIVE.encode(request or Redrive())
        return self._api.call(shapes.REDRIVING, "POST", f"/batches/{batch_id}/redrive", body)

    def redrives(self, batch_id: int, *, cursor: str | None = None, limit: int = 100) -> Redrivings:
        query = {"cursor": cursor, "limit": limit}
        return self._api.call(shapes.REDRIVINGS, "GET", f"/batches/{batch_id}/redrives", query=query)
