"""The routes of scatters: start one, see how far it is, reply, and read the replies."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from fanin import names
from fanin.app.api import Fanin
from fanin.domain import limits
from fanin.domain.access import AccessGroup
from fanin.domain.claim_checks import ClaimCheck
from fanin.domain.scatter import FailedRecipients, Gathered, MissingRecipients, ReplyReceipt, Scattered
from fanin.entry.http.route import Request, Route
from fanin.entry.http.v1.parameters import GONE, KEY, page_of, paged
from fanin.entry.observe import count
from fanin.errors import BatchGone, ChannelRefused, CorrelationIdAlive, IdempotencyKeyReused, NotRegistered
from fanin.wire import scatters as wire

_ROOT: Final = f"{names.API_ROOT}/scatters"
_SCATTER: Final = _ROOT + "/{batch_id}"
_PAGE: Final = paged(limits.MAX_REPLIES, limits.MAX_REPLIES)


def _start(fanin: Fanin, request: Request) -> Scattered:
    return fanin.scatters.start(request.read(), key=request.key, caller=request.caller)


def _status(fanin: Fanin, request: Request) -> Scattered:
    return fanin.scatters.status(request.batch_id)


def _gathered(fanin: Fanin, request: Request) -> Gathered:
    return fanin.scatters.replies(request.batch_id, **page_of(request))


def _missing(fanin: Fanin, request: Request) -> MissingRecipients:
    return fanin.scatters.missing_recipients(request.batch_id, **page_of(request))


def _failed(fanin: Fanin, request: Request) -> FailedRecipients:
    return fanin.scatters.failed_recipients(request.batch_id, **page_of(request))


def _reply(fanin: Fanin, request: Request) -> Sequence[ReplyReceipt]:
    receipts = fanin.scatters.reply(request.read())
    count(names.METRIC_REPLIES, sum(receipt.first for receipt in receipts))
    return receipts


def _claim(fanin: Fanin, request: Request) -> ClaimCheck:
    return fanin.scatters.claim(request.read())


# fmt: off
ROUTES: Final = (
    Route(
        "POST", _ROOT, "startScatter", "Send a message to many, and gather their replies",
        _start, wire.SCATTERED, 201, body=wire.SCATTER, headers=KEY,
        errors=(BatchGone, ChannelRefused, CorrelationIdAlive, IdempotencyKeyReused, NotRegistered),
        data_path=True,
        group=AccessGroup.PRODUCE,
        location=lambda _, scattered: f"{_ROOT}/{scattered.batch.batch_id}",
    ),
    Route(
        "GET", _SCATTER, "getScatter", "A scatter and how many replied, exactly", _status, wire.SCATTERED,
        errors=GONE,
        group=AccessGroup.READ,
    ),
    Route(
        "GET", f"{_SCATTER}/replies", "listReplies", "The replies, in the order of the recipients",
        _gathered, wire.GATHERED, optional=_PAGE, errors=GONE,
        group=AccessGroup.READ,
    ),
    Route(
        "GET", f"{_SCATTER}/missing", "listMissingRecipients", "Recipients that neither replied nor failed",
        _missing, wire.MISSING_RECIPIENTS, optional=_PAGE, errors=GONE,
        group=AccessGroup.READ,
    ),
    Route(
        "GET", f"{_SCATTER}/failed", "listFailedRecipients", "Recipients that failed, and why",
        _failed, wire.FAILED_RECIPIENTS, optional=_PAGE, errors=GONE,
        group=AccessGroup.READ,
    ),
    Route(
        "POST", f"{names.API_ROOT}/replies", "reply", "Reply to scatters; of each recipient the first counts",
        _reply, wire.REPLY_RECEIPTS, body=wire.REPLIES, errors=GONE,
        data_path=True,
        group=AccessGroup.CONSUME,
    ),
    Route(
        "POST", f"{names.API_ROOT}/claim-checks", "claimPayload", "Where to upload a large payload",
        _claim, wire.CLAIM_CHECK, 201, body=wire.CLAIM_CHECK_REQUEST, errors=GONE,
        data_path=True,
        group=AccessGroup.CONSUME,
    ),
)
# fmt: on
