"""The routes of frames."""

from __future__ import annotations

from typing import Final

from fanin import names
from fanin.app.services import Services
from fanin.domain import limits
from fanin.domain.frames import DEFAULT_LEASE
from fanin.domain.ids import parse_batch_id
from fanin.entry.http.route import Request, Route
from fanin.entry.http.schemas import text, whole
from fanin.entry.observe import count
from fanin.errors import BatchGone, BatchNotFound, ChannelRefused
from fanin.wire import frames as wire
from fanin.wire.ledger import Json

_ROOT: Final = f"{names.API_ROOT}/frames"
_GONE: Final = (BatchNotFound, BatchGone)


def _open(services: Services, request: Request) -> Json:
    frame = services.frames.open(wire.decode_open(request.body))
    count(names.METRIC_FRAMES_OPENED)
    return wire.encode_frame(frame)


def _status(services: Services, request: Request) -> Json:
    query = request.query
    frame = services.frames.status(
        parse_batch_id(request.path["frame_id"]), cursor=query.get("cursor"), limit=query.get("limit", 100)
    )
    return wire.encode_frame(frame)


def _claim(services: Services, request: Request) -> Json:
    lease = request.body.get("lease", DEFAULT_LEASE)
    return wire.encode_claims(services.frames.claim(wire.decode_tickets(request.body), lease=lease))


# fmt: off
ROUTES: Final = (
    Route(
        "POST", _ROOT, "openFrame", "Ask for a frame of so many envelopes", _open, "Frame", 201,
        body="OpenFrame", errors=(ChannelRefused,),
    ),
    Route(
        "GET", _ROOT + "/{frame_id}", "getFrame", "A frame and the envelopes that are missing",
        _status, "Frame",
        optional={"cursor": text(least=1), "limit": whole(1, limits.MAX_PAGE) | {"default": 100}},
        errors=_GONE,
    ),
    Route(
        "POST", f"{names.API_ROOT}/claims", "claimEnvelopes", "Lease envelopes of any frames, to handle them",
        _claim, "Claimed", body="Claims", errors=_GONE,
    ),
)
# fmt: on
