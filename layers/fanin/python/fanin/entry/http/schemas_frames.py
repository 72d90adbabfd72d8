"""JSON Schemas of the routes of frames."""

from __future__ import annotations

from typing import Final

from fanin.domain import limits
from fanin.domain.batch import State
from fanin.domain.frames import DEFAULT_LEASE, DEFAULT_TTL, Hold
from fanin.domain.ids import MAX_COUNT
from fanin.domain.limits import MAX_CLAIMS, MAX_ENVELOPE_LEASE
from fanin.entry.http.schemas import BATCH_ID, CURSOR, ITEM_ID, NUMBER, Schema, many, record, text, whole

_STATE: Final[Schema] = {"type": "string", "enum": [state.value for state in State]}
_HOLD: Final[Schema] = {"type": "string", "enum": [hold.value for hold in Hold]}
_SPAN: Final = many(NUMBER, 2) | {"description": "half-open range of indices"}
_TICKET: Final = {"frame_id": BATCH_ID, "index": whole(0, MAX_COUNT)}

SCHEMAS: Final[dict[str, Schema]] = {
    "OpenFrame": record(
        {"size": whole(1, MAX_COUNT)},
        {
            "source": text(limits.MAX_METADATA_VALUE),
            "destination": text(limits.MAX_METADATA_VALUE),
            "reply_to": text(limits.MAX_METADATA_VALUE) | {"description": "URL or ARN of an SQS queue"},
            "ttl": whole(limits.MIN_IDLE_TTL, limits.MAX_LIFETIME) | {"default": DEFAULT_TTL},
            "user_key": text(limits.MAX_USER_KEY),
        },
    ),
    "Frame": record(
        {
            "frame_id": BATCH_ID,
            "state": _STATE,
            "size": NUMBER,
            "ttl": NUMBER,
            "about": {"type": "object", "additionalProperties": text()},
            "user_key": text(),
            "missing": many(_SPAN),
            "cursor": CURSOR,
        }
    ),
    "Claims": record(
        {"claims": many(record(_TICKET), MAX_CLAIMS)},
        {"lease": whole(1, MAX_ENVELOPE_LEASE) | {"default": DEFAULT_LEASE, "description": "seconds"}},
    ),
    "Claimed": record({"claims": many(record({**_TICKET, "hold": _HOLD, "item": ITEM_ID, "until": NUMBER}))}),
}
