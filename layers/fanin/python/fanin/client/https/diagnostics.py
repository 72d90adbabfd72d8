"""Why a batch is not finished, over HTTPS."""

from __future__ import annotations

from collections.abc import Sequence

from fanin.client.https.api import NOTHING, HttpsApi
from fanin.domain.diagnosis import Diagnosis, Retry, SentItems
from fanin.wire import diagnosis as shapes


class HttpsDiagnostics:
    """Implements ``fanin.app.api.Diagnostics`` against a deployed API.

    Args:
        api: the API.
    """

    def __init__(self, api: HttpsApi) -> None:
        self._api = api

    def why(self, batch_id: int) -> Diagnosis:
        return self._api.call(shapes.DIAGNOSIS, "GET", f"/batches/{batch_id}/diagnosis")

    def note_sent(self, batch_id: int, sent: SentItems) -> None:
        self._api.call(NOTHING, "POST", f"/batches/{batch_id}/sent", shapes.SENT.encode(sent))

    def note_retries(self, retries: Sequence[Retry]) -> None:
        # Its consumer has messages to answer for, before its time is up.
        self._api.call(NOTHING, "POST", "/retries", shapes.RETRIES.encode(retries), once=True)
