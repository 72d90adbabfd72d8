"""The routes of scatters: start one, see how far it is, reply, and read the replies."""

from __future__ import annotations

from typing import Final

from fanin import names
from fanin.app.services import Services
from fanin.domain import limits
from fanin.domain.ids import parse_batch_id
from fanin.entry.http.route import Request, Route
from fanin.entry.http.schemas import IDEMPOTENCY_KEY, Schema, text, whole
from fanin.entry.observe import count
from fanin.errors import (
    BatchGone,
    BatchNotFound,
    ChannelRefused,
    CorrelationIdAlive,
    IdempotencyKeyReused,
    NotRegistered,
)
from fanin.wire import scatters as wire
from fanin.wire.ledger import Json

_ROOT: Final = f"{names.API_ROOT}/scatters"
_SCATTER: Final = _ROOT + "/{batch_id}"
_GONE: Final = (BatchNotFound, BatchGone)
_PAGE: Final[dict[str, Schema]] = {
    "cursor": text(least=1) | {"description": "from the page before"},
    "limit": whole(1, limits.MAX_REPLIES) | {"default": limits.MAX_REPLIES},
}


def _start(services: Services, request: Request) -> Json:
    key = request.headers.get(names.IDEMPOTENCY_HEADER)
    return wire.encode_scattered(services.scatters.start(wire.decode_scatter(request.body), key=key))


def _status(services: Services, request: Request) -> Json:
    return wire.encode_scattered(services.scatters.status(parse_batch_id(request.path["batch_id"])))


def _gathered(services: Services, request: Request) -> Json:
    page = services.scatters.replies(
        parse_batch_id(request.path["batch_id"]),
        cursor=request.query.get("cursor"),
        limit=request.query.get("limit", limits.MAX_REPLIES),
    )
    return wire.encode_gathered(page)


def _reply(services: Services, request: Request) -> Json:
    receipts = services.scatters.reply(wire.decode_replies(request.body))
    count(names.METRIC_REPLIES, sum(receipt.first for receipt in receipts))
    return wire.encode_reply_receipts(receipts)


def _claim(services: Services, request: Request) -> Json:
    return wire.encode_claim_check(services.scatters.claim(wire.decode_claim_check_request(request.body)))


# fmt: off
ROUTES: Final = (
    Route(
        "POST", _ROOT, "startScatter", "Send a message to many, and gather their replies",
        _start, "Scattered", 201, body="Scatter",
        headers={names.IDEMPOTENCY_HEADER: IDEMPOTENCY_KEY},
        errors=(BatchGone, ChannelRefused, CorrelationIdAlive, IdempotencyKeyReused, NotRegistered),
    ),
    Route(
        "GET", _SCATTER, "getScatter", "A scatter and how many replied, exactly", _status, "Scattered",
        errors=_GONE,
    ),
    Route(
        "GET", f"{_SCATTER}/replies", "listReplies", "The replies, in the order of the recipients",
        _gathered, "Gathered", optional=_PAGE, errors=_GONE,
    ),
    Route(
        "POST", f"{names.API_ROOT}/replies", "reply", "Reply to scatters; of each recipient the first counts",
        _reply, "ReplyReceipts", body="Replies", errors=_GONE,
    ),
    Route(
        "POST", f"{names.API_ROOT}/claim-checks", "claimPayload", "Where to upload a large payload",
        _claim, "ClaimCheck", 201, body="ClaimCheckRequest", errors=_GONE,
    ),
)
# fmt: on
