"""Frames over HTTPS."""

from __future__ import annotations

from collections.abc import Sequence

from fanin.client.https.api import HttpsApi, keyed
from fanin.domain.frames import Claim, ClaimEnvelopes, Frame, OpenFrame, Ticket
from fanin.domain.limits import DEFAULT_ENVELOPE_LEASE
from fanin.domain.principals import Principal
from fanin.wire import frames as wire


class HttpsFrames:
    """Implements ``fanin.app.api.Frames`` against a deployed API.

    An opening without a key gets one here, so that it opens one frame however often it is sent.

    Args:
        api: the API.
    """

    def __init__(self, api: HttpsApi) -> None:
        self._api = api

    def open(self, request: OpenFrame, *, key: str | None = None, caller: Principal | None = None) -> Frame:
        body = wire.OPEN_FRAME.encode(request)
        return self._api.call(wire.FRAME, "POST", "/frames", body, headers=keyed(key, caller))

    def status(self, frame_id: int, *, cursor: str | None = None, limit: int = 100) -> Frame:
        query = {"cursor": cursor, "limit": limit}
        return self._api.call(wire.FRAME, "GET", f"/frames/{frame_id}", query=query)

    def claim(self, tickets: Sequence[Ticket], *, lease: int = DEFAULT_ENVELOPE_LEASE) -> list[Claim]:
        body = wire.CLAIM_ENVELOPES.encode(ClaimEnvelopes(tickets, lease))
        claims = self._api.call(wire.CLAIMS, "POST", "/claims", body)
        return list(claims)
