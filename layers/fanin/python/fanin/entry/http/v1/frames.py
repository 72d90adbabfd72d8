"""The routes of frames."""

from __future__ import annotations

from typing import Final

from fanin import names
from fanin.app.api import Frames
from fanin.domain.access import AccessGroup
from fanin.entry.http.calls import Call
from fanin.entry.http.route import HttpRoute
from fanin.entry.http.v1.parameters import KEY, paged
from fanin.errors import GONE, ChannelRefused, IdempotencyKeyReused
from fanin.wire import frames as wire

_ROOT: Final = f"{names.API_ROOT}/frames"


# fmt: off
ROUTES: Final = (
    HttpRoute(
        "POST", _ROOT, "openFrame", "Ask for a frame of so many envelopes",
        Call(Frames.open, "request"), wire.FRAME, 201,
        body=wire.OPEN_FRAME, headers=KEY, errors=(ChannelRefused, IdempotencyKeyReused),
        data_path=True,
        group=AccessGroup.PRODUCE,
        location=lambda _, frame: f"{_ROOT}/{frame.frame_id}",
    ),
    HttpRoute(
        "GET", _ROOT + "/{frame_id}", "getFrame", "A frame and the envelopes that are missing",
        Call(Frames.status), wire.FRAME, optional=paged(), errors=GONE,
        group=AccessGroup.READ, also=(AccessGroup.PRODUCE,),
    ),
    HttpRoute(
        "POST", f"{names.API_ROOT}/claims", "claimEnvelopes", "Lease envelopes of any frames, to handle them",
        Call(Frames.claim, "tickets", "lease"), wire.CLAIMS, body=wire.CLAIM_ENVELOPES, errors=GONE,
        data_path=True,
        group=AccessGroup.CONSUME,
    ),
)
# fmt: on
