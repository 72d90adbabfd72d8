"""JSON Schemas of scatters, replies and claims."""

from __future__ import annotations

from typing import Final

from fanin.domain import limits
from fanin.entry.http.schemas import (
    BATCH_ID,
    BOOLEAN,
    CURSOR,
    ITEM_ID,
    METADATA,
    NUMBER,
    STATE,
    TIME,
    Schema,
    many,
    or_null,
    record,
    ref,
    text,
    whole,
)

CHANNEL: Final = text(limits.MAX_CHANNEL, least=1) | {
    "description": "URL or ARN of an SQS queue, or topic/name of a registration"
}
QUORUM: Final[Schema] = {
    "type": ["integer", "number", "null"],
    "description": "enough replies: a number of them, or a share between 0 and 1",
    "exclusiveMinimum": 0,
    "maximum": limits.MAX_RECIPIENTS,
}
PAYLOAD: Final[Schema] = {"description": "any JSON value of up to 200 KB"}
KEY: Final = text(limits.MAX_CHANNEL, least=1) | {"description": "key of a claim"}

SCHEMAS: Final[dict[str, Schema]] = {
    "Scatter": record(
        {"body": text(limits.MAX_REPLY, least=1)},
        {
            "recipients": many(
                record({"channel": CHANNEL}, {"name": text(limits.MAX_USER_KEY)}), limits.MAX_RECIPIENTS
            ),
            "topic": or_null(text(limits.MAX_NAME, least=1)),
            "where": METADATA | {"description": "attributes that a registration of the topic must have"},
            "type": text(limits.MAX_USER_KEY),
            "attributes": {
                "type": "object",
                "maxProperties": limits.MAX_ATTRIBUTES,
                "additionalProperties": text(limits.MAX_USER_KEY, least=1),
            },
            "correlation_id": or_null(text(limits.MAX_IDEMPOTENCY_KEY, least=1)),
            "timeout": whole(limits.MIN_TIMEOUT, limits.MAX_TIMEOUT),
            "max_retries": whole(0, limits.MAX_RETRIES),
            "quorum": QUORUM,
            "user_key": text(limits.MAX_USER_KEY),
            "metadata": METADATA,
        },
    ),
    "Scattered": record(
        {
            "batch": ref("Batch"),
            "correlation_id": text(),
            "starting": BOOLEAN
            | {"description": "a large topic is being listed: recipients is 0 until then"},
            "ready": BOOLEAN,
            "recipients": NUMBER,
            "received": NUMBER,
            "failed": NUMBER,
            "missing": NUMBER,
            "retries": NUMBER,
            "max_retries": NUMBER,
            "quorum": or_null(NUMBER),
        }
    ),
    "Replies": record({"replies": many(ref("Reply"), limits.MAX_REPLIES)}),
    "Reply": record({"item": ITEM_ID}, {"payload": PAYLOAD, "claim": KEY}),
    "ReplyReceipts": record({"replies": many(ref("ReplyReceipt"))}),
    "ReplyReceipt": record(
        {
            "item": ITEM_ID,
            "batch_id": BATCH_ID,
            "state": STATE,
            "first": BOOLEAN,
            "duplicate": BOOLEAN,
            "different": BOOLEAN,
            "late": BOOLEAN,
        }
    ),
    "Gathered": record({"replies": many(ref("GatheredReply")), "cursor": CURSOR}),
    "GatheredReply": record(
        {
            "ordinal": NUMBER,
            "name": text(),
            "replied_at": TIME,
            "payload": PAYLOAD,
            "claim": or_null(text()),
            "url": or_null(text()),
        }
    ),
    "ClaimCheckRequest": record(
        {"item": ITEM_ID, "size": whole(1, limits.MAX_CLAIM)},
        {"content_type": text(limits.MAX_USER_KEY, least=1)},
    ),
    "ClaimCheck": record(
        {
            "key": text(),
            "url": text(),
            "headers": {"type": "object", "additionalProperties": text()},
            "expires_at": TIME,
        }
    ),
}
