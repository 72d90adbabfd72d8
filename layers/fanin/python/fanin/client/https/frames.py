"""Frames over HTTPS."""

from __future__ import annotations

from collections.abc import Sequence

from fanin.client.https.api import HttpsApi
from fanin.domain.frames import DEFAULT_LEASE, Claim, Frame, OpenFrame, Ticket
from fanin.wire import frames as wire


class HttpsFrames:
    """Implements ``fanin.app.api.Frames`` against a deployed API."""

    def __init__(self, api: HttpsApi) -> None:
        self._api = api

    def open(self, request: OpenFrame) -> Frame:
        return self._api.call(wire.decode_frame, "POST", "/frames", wire.encode_open(request))

    def status(self, frame_id: int, *, cursor: str | None = None, limit: int = 100) -> Frame:
        query = {"cursor": cursor, "limit": limit}
        return self._api.call(wire.decode_frame, "GET", f"/frames/{frame_id}", query=query)

    def claim(self, tickets: Sequence[Ticket], *, lease: int = DEFAULT_LEASE) -> list[Claim]:
        return self._api.call(wire.decode_claims, "POST", "/claims", wire.encode_tickets(tickets, lease))
