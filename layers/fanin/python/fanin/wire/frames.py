"""Shapes of frames, and of the claims on their envelopes."""

from __future__ import annotations

from typing import Final

from fanin.domain import limits
from fanin.domain.frames import (
    DEFAULT_TTL,
    Claim,
    ClaimEnvelopes,
    Frame,
    Hold,
    OpenFrame,
    Ticket,
)
from fanin.domain.ids import MAX_COUNT
from fanin.wire.batches import STATE, TOTAL_NAMES, TOTALS
from fanin.wire.json_types import (
    BATCH_ID,
    BOOLEAN,
    CURSOR,
    ITEM_ID,
    NATURAL,
    TEXT,
    many,
    one_of,
    string_map,
    text,
    whole,
)
from fanin.wire.shapes import Inline, answer, request, wrapped

OPEN_FRAME: Final = request(
    "OpenFrame",
    OpenFrame,
    size=whole(1, MAX_COUNT),
    source=text(limits.MAX_METADATA_VALUE).left_out_if_empty(),
    destination=text(limits.MAX_METADATA_VALUE).left_out_if_empty(),
    reply_to=text(limits.MAX_METADATA_VALUE)
    .with_keywords(description="URL or ARN of an SQS queue")
    .left_out_if_empty(),
    ttl=whole(limits.MIN_IDLE_TTL, limits.MAX_LIFETIME).with_keywords(default=DEFAULT_TTL),
    user_key=text(limits.MAX_USER_KEY).left_out_if_empty(),
    totals=TOTAL_NAMES,
)
FRAME: Final = answer(
    "Frame",
    Frame,
    frame_id=BATCH_ID,
    state=STATE,
    size=NATURAL,
    ttl=NATURAL,
    about=string_map(),
    user_key=TEXT,
    missing=many(many(NATURAL, 2).with_keywords(description="half-open range of indices")),
    cursor=CURSOR,
    totals=TOTALS,
    totals_exact=BOOLEAN.with_keywords(
        description="whether the totals are the sums of all envelopes that were handled"
    ),
)
TICKET: Final = request("Ticket", Ticket, frame_id=BATCH_ID, index=whole(0, MAX_COUNT))
CLAIM_ENVELOPES: Final = request(
    "ClaimEnvelopes",
    ClaimEnvelopes,
    tickets=many(TICKET, limits.MAX_CLAIMS).called("claims"),
    lease=whole(1, limits.MAX_ENVELOPE_LEASE).with_keywords(
        default=limits.DEFAULT_ENVELOPE_LEASE, description="seconds"
    ),
)
CLAIM: Final = answer(
    "EnvelopeClaim", Claim, ticket=Inline(TICKET), hold=one_of(Hold), item=ITEM_ID, until=NATURAL
)
CLAIMS: Final = wrapped("EnvelopeClaims", "claims", many(CLAIM))
