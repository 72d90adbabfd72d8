"""The routes of scatters: start one, see how far it is, reply, and read the replies."""

from __future__ import annotations

from typing import Final

from fanin import names
from fanin.app.api import Scatters
from fanin.domain import limits
from fanin.domain.access import AccessGroup
from fanin.entry.http.calls import Call
from fanin.entry.http.route import HttpRoute
from fanin.entry.http.v1.parameters import KEY, paged
from fanin.errors import (
    GONE,
    BatchGone,
    ChannelRefused,
    CorrelationIdAlive,
    IdempotencyKeyReused,
    NotRegistered,
)
from fanin.wire import scatters as wire

_ROOT: Final = f"{names.API_ROOT}/scatters"
_SCATTER: Final = _ROOT + "/{batch_id}"
_PAGE: Final = paged(limits.MAX_REPLIES, limits.MAX_REPLIES)


# fmt: off
ROUTES: Final = (
    HttpRoute(
        "POST", _ROOT, "startScatter", "Send a message to many, and gather their replies",
        Call(Scatters.start, "scatter"), wire.SCATTERED, 201, body=wire.SCATTER, headers=KEY,
        errors=(BatchGone, ChannelRefused, CorrelationIdAlive, IdempotencyKeyReused, NotRegistered),
        data_path=True,
        group=AccessGroup.PRODUCE,
        location=lambda _, scattered: f"{_ROOT}/{scattered.batch.batch_id}",
    ),
    HttpRoute(
        "GET", _SCATTER, "getScatter", "A scatter and how many replied, exactly",
        Call(Scatters.status), wire.SCATTERED,
        errors=GONE,
        group=AccessGroup.READ,
    ),
    HttpRoute(
        "GET", f"{_SCATTER}/replies", "listReplies", "The replies, in the order of the recipients",
        Call(Scatters.replies), wire.GATHERED, optional=_PAGE, errors=GONE,
        group=AccessGroup.READ,
    ),
    HttpRoute(
        "GET", f"{_SCATTER}/missing", "listMissingRecipients", "Recipients that neither replied nor failed",
        Call(Scatters.missing_recipients), wire.MISSING_RECIPIENTS, optional=_PAGE, errors=GONE,
        group=AccessGroup.READ,
    ),
    HttpRoute(
        "GET", f"{_SCATTER}/failed", "listFailedRecipients", "Recipients that failed, and why",
        Call(Scatters.failed_recipients), wire.FAILED_RECIPIENTS, optional=_PAGE, errors=GONE,
        group=AccessGroup.READ,
    ),
    HttpRoute(
        "POST", f"{names.API_ROOT}/replies", "reply", "Reply to scatters; of each recipient the first counts",
        Call(Scatters.reply, "replies"), wire.REPLY_RECEIPTS, body=wire.REPLIES, errors=GONE,
        data_path=True,
        group=AccessGroup.CONSUME,
    ),
    HttpRoute(
        "POST", f"{names.API_ROOT}/claim-checks", "claimPayload", "Where to upload a large payload",
        Call(Scatters.claim, "request"), wire.CLAIM_CHECK, 201, body=wire.CLAIM_CHECK_REQUEST, errors=GONE,
        data_path=True,
        group=AccessGroup.CONSUME,
    ),
)
# fmt: on
