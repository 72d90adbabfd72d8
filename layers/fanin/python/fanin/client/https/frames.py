"""Frames over HTTPS, and the frames of any ledger."""

from __future__ import annotations

from collections.abc import Sequence

from fanin.app.api import Ledger
from fanin.app.frames.service import DEFAULT_LEASE, FrameCalls, Frames
from fanin.app.ledger.service import LedgerService
from fanin.client.https.ledger import HttpsLedger
from fanin.domain.frames import Claim, Frame, OpenFrame, Ticket
from fanin.errors import NotConfigured
from fanin.wire import frames as wire


class HttpsFrames:
    """Implements ``FrameCalls`` against a deployed API."""

    def __init__(self, api: HttpsLedger) -> None:
        self._api = api

    def open(self, request: OpenFrame) -> Frame:
        return self._api.call(wire.decode_frame, "POST", "/frames", wire.encode_open(request))

    def status(self, frame_id: int, *, cursor: str | None = None, limit: int = 100) -> Frame:
        query = {"cursor": cursor, "limit": limit}
        return self._api.call(wire.decode_frame, "GET", f"/frames/{frame_id}", query=query)

    def claim(self, tickets: Sequence[Ticket], *, lease: int = DEFAULT_LEASE) -> list[Claim]:
        return self._api.call(wire.decode_claims, "POST", "/claims", wire.encode_tickets(tickets, lease))


def frames_of(ledger: Ledger) -> FrameCalls:
    """The frames that stand on a ledger, reached the way it is.

    Raises:
        NotConfigured: it is neither the service's own nor that of an API.
    """
    match ledger:
        case HttpsLedger():
            return HttpsFrames(ledger)
        case LedgerService():
            return Frames(ledger.ports, ledger)
        case _:
            raise NotConfigured("frames need a tracker over HTTPS, straight on the tables, or in memory")
