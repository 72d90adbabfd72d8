"""The routes of frames."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from fanin import names
from fanin.app.api import Fanin
from fanin.domain.access import AccessGroup
from fanin.domain.frames import Claim, ClaimEnvelopes, Frame
from fanin.domain.ids import parse_batch_id
from fanin.entry.http.route import Request, Route
from fanin.entry.http.v1.parameters import GONE, KEY, page_of, paged
from fanin.entry.observe import count
from fanin.errors import ChannelRefused, IdempotencyKeyReused
from fanin.wire import frames as wire

_ROOT: Final = f"{names.API_ROOT}/frames"


def _open(fanin: Fanin, request: Request) -> Frame:
    frame = fanin.frames.open(request.read(), key=request.key, caller=request.caller)
    count(names.METRIC_FRAMES_OPENED)
    return frame


def _status(fanin: Fanin, request: Request) -> Frame:
    return fanin.frames.status(parse_batch_id(request.path["frame_id"]), **page_of(request))


def _claim(fanin: Fanin, request: Request) -> Sequence[Claim]:
    wanted: ClaimEnvelopes = request.read()
    return fanin.frames.claim(wanted.tickets, lease=wanted.lease)


# fmt: off
ROUTES: Final = (
    Route(
        "POST", _ROOT, "openFrame", "Ask for a frame of so many envelopes", _open, wire.FRAME, 201,
        body=wire.OPEN_FRAME, headers=KEY, errors=(ChannelRefused, IdempotencyKeyReused),
        data_path=True,
        group=AccessGroup.PRODUCE,
        location=lambda _, frame: f"{_ROOT}/{frame.frame_id}",
    ),
    Route(
        "GET", _ROOT + "/{frame_id}", "getFrame", "A frame and the envelopes that are missing",
        _status, wire.FRAME, optional=paged(), errors=GONE,
        group=AccessGroup.READ, also=(AccessGroup.PRODUCE,),
    ),
    Route(
        "POST", f"{names.API_ROOT}/claims", "claimEnvelopes", "Lease envelopes of any frames, to handle them",
        _claim, wire.CLAIMS, body=wire.CLAIM_ENVELOPES, errors=GONE,
        data_path=True,
        group=AccessGroup.CONSUME,
    ),
)
# fmt: on
