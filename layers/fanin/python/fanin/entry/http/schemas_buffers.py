"""JSON Schemas of the routes of buffers."""

from __future__ import annotations

from typing import Final

from fanin.domain import limits
from fanin.domain.buffer import Outcome
from fanin.entry.http.schemas import (
    BATCH_ID,
    BOOLEAN,
    CURSOR,
    ITEM_ID,
    NUMBER,
    Schema,
    many,
    or_null,
    record,
    text,
    whole,
)

_BUFFER: Final[dict[str, Schema]] = {
    "name": text(),
    "limit": whole(1, limits.MAX_LIMIT),
    "queue": text() | {"description": "URL"},
    "owned": BOOLEAN | {"description": "whether the service made the queue"},
    "batch_id": BATCH_ID,
}
_OUTCOME: Final[Schema] = {"type": "string", "enum": [outcome.value for outcome in Outcome]}
_PAYLOAD: Final = text(limits.MAX_PAYLOAD, least=1)
_WORK: Final = record({"payload": text(), "receipt": text(), "waited_ms": NUMBER})

SCHEMAS: Final[dict[str, Schema]] = {
    "DefineBuffer": record(
        {"limit": whole(1, limits.MAX_LIMIT)},
        {
            "queue": or_null(text(limits.MAX_CHANNEL, least=1))
            | {"description": "URL or ARN; without one the service makes a queue"}
        },
    ),
    "Buffer": record(_BUFFER),
    "Buffers": record({"buffers": many(record(_BUFFER)), "cursor": CURSOR}),
    "Level": record(
        {
            **_BUFFER,
            "count": {"type": "integer", "description": "work that waits; below zero, consumers that do"},
            "pending": NUMBER,
            "taken": NUMBER | {"description": "approximately"},
            "draining": BOOLEAN,
        }
    ),
    "Put": record({"payloads": many(_PAYLOAD, limits.MAX_WORK) | {"minItems": 1}}),
    "Accepted": record({"outcome": _OUTCOME, "items": many(ITEM_ID)}),
    "Take": record(
        {},
        {
            "most": whole(1, limits.MAX_WORK) | {"default": 1},
            "wait": whole(0, limits.MAX_WAIT) | {"default": limits.MAX_WAIT, "description": "seconds"},
            "visibility_timeout": or_null(whole(1, limits.MAX_VISIBILITY_TIMEOUT))
            | {"description": "seconds until it comes again"},
        },
    ),
    "Taken": record({"work": many(_WORK)}),
    "Done": record({"receipts": many(text(), limits.MAX_RECEIPTS)}),
    "Released": record({"done": NUMBER, "late": NUMBER}),
}
