"""Shapes of scatters, replies and claim checks."""

from __future__ import annotations

from typing import Final

from fanin.domain import limits
from fanin.domain.claim_checks import ClaimCheck, ClaimCheckRequest
from fanin.domain.scatter import (
    FailedRecipient,
    FailedRecipients,
    Gathered,
    GatheredReply,
    MissingRecipient,
    MissingRecipients,
    Recipient,
    Reply,
    ReplyReceipt,
    Scatter,
    Scattered,
)
from fanin.wire.batches import BATCH, ON_END, STATE, TOTAL_NAMES
from fanin.wire.json_types import (
    ANYTHING,
    BATCH_ID,
    BOOLEAN,
    CURSOR,
    ITEM_ID,
    METADATA,
    NATURAL,
    TEXT,
    TIME,
    Json,
    JsonType,
    many,
    or_null,
    string_map,
    text,
    whole,
)
from fanin.wire.marks import VALUES
from fanin.wire.shapes import Shape, answer, request, wrapped

_PAYLOAD: Final = ANYTHING.with_keywords(description="any JSON value of up to 200 KB")
_CLAIM: Final = text(limits.MAX_CHANNEL, least=1).with_keywords(description="key of a claim")

RECIPIENT: Final = request(
    "Recipient",
    Recipient,
    channel=text(limits.MAX_CHANNEL, least=1).with_keywords(
        description="URL or ARN of an SQS queue, or topic/name of a registration"
    ),
    name=text(limits.MAX_USER_KEY).or_else(""),
)
SCATTER: Final = request(
    "Scatter",
    Scatter,
    body=text(limits.MAX_REPLY, least=1),
    recipients=many(RECIPIENT, limits.MAX_RECIPIENTS).left_out_if_empty(),
    topic=or_null(text(limits.MAX_NAME, least=1)),
    where=METADATA.with_keywords(
        description="attributes that a registration of the topic must have"
    ).left_out_if_empty(),
    type=text(limits.MAX_USER_KEY),
    attributes=string_map(text(limits.MAX_USER_KEY, least=1)).with_keywords(
        maxProperties=limits.MAX_ATTRIBUTES
    ),
    correlation_id=or_null(text(limits.MAX_CORRELATION_ID, least=1)),
    timeout=whole(limits.MIN_TIMEOUT, limits.MAX_TIMEOUT),
    max_retries=whole(0, limits.MAX_RETRIES),
    quorum=JsonType[int | float | None](
        {
            "type": ["integer", "number", "null"],
            "description": "enough replies: a number of them, or a share between 0 and 1",
            "exclusiveMinimum": 0,
            "maximum": limits.MAX_RECIPIENTS,
        }
    ),
    user_key=text(limits.MAX_USER_KEY),
    metadata=METADATA,
    on_end=ON_END,
    totals=TOTAL_NAMES,
)
SCATTERED: Final = answer(
    "Scattered",
    Scattered,
    batch=BATCH,
    correlation_id=TEXT,
    starting=BOOLEAN.with_keywords(description="a large topic is being listed: recipients is 0 until then"),
    ready=BOOLEAN,
    recipients=NATURAL,
    received=NATURAL,
    failed=NATURAL,
    missing=NATURAL,
    retries=NATURAL,
    max_retries=NATURAL,
    quorum=or_null(NATURAL),
)


def _encode_reply(reply: Reply) -> Json:
    said = {"payload": reply.payload} if reply.claim is None else {"claim": reply.claim}
    totals = {"totals": VALUES.encode(reply.totals)} if reply.totals else {}
    return {"item": reply.item, **said, **totals}


def _decode_reply(body: Json) -> Reply:
    return Reply(body["item"], body.get("payload"), body.get("claim"), body.get("totals", {}))


REPLY: Final = Shape(
    "Reply",
    {"item": ITEM_ID, "payload": _PAYLOAD, "claim": _CLAIM, "totals": VALUES},
    _encode_reply,
    _decode_reply,
    required=["item"],
)
"""A payload, which may be null, or the claim of one: the two are told apart by which is there."""
REPLIES: Final = wrapped("ReplyList", "replies", many(REPLY, limits.MAX_REPLIES))
REPLY_RECEIPT: Final = answer(
    "ReplyReceipt",
    ReplyReceipt,
    item=ITEM_ID,
    batch_id=BATCH_ID,
    state=STATE,
    first=BOOLEAN,
    duplicate=BOOLEAN,
    different=BOOLEAN,
    late=BOOLEAN,
)
REPLY_RECEIPTS: Final = wrapped("ReplyReceipts", "replies", many(REPLY_RECEIPT))
GATHERED_REPLY: Final = answer(
    "GatheredReply",
    GatheredReply,
    ordinal=NATURAL,
    name=TEXT,
    replied_at=TIME,
    payload=_PAYLOAD,
    claim=or_null(TEXT),
    url=or_null(TEXT),
)
GATHERED: Final = answer("Gathered", Gathered, replies=many(GATHERED_REPLY), cursor=CURSOR)
MISSING_RECIPIENT: Final = answer("MissingRecipient", MissingRecipient, ordinal=NATURAL, name=TEXT)
MISSING_RECIPIENTS: Final = answer(
    "MissingRecipients", MissingRecipients, recipients=many(MISSING_RECIPIENT), cursor=CURSOR
)
FAILED_RECIPIENT: Final = answer("FailedRecipient", FailedRecipient, ordinal=NATURAL, name=TEXT, reason=TEXT)
FAILED_RECIPIENTS: Final = answer(
    "FailedRecipients", FailedRecipients, recipients=many(FAILED_RECIPIENT), cursor=CURSOR
)
CLAIM_CHECK_REQUEST: Final = request(
    "ClaimCheckRequest",
    ClaimCheckRequest,
    item=ITEM_ID,
    size=whole(1, limits.MAX_CLAIM),
    content_type=text(limits.MAX_USER_KEY, least=1),
)
CLAIM_CHECK: Final = answer(
    "ClaimCheck", ClaimCheck, key=TEXT, url=TEXT, headers=string_map(), expires_at=TIME
)
