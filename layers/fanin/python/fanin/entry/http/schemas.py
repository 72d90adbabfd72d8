"""JSON Schemas of every request and answer: they check requests, and are the components of the document."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, TypeAlias

from fanin import names
from fanin.domain import limits
from fanin.domain.batch import Kind, Mode, OnDeadline, State
from fanin.domain.ids import MAX_BATCH_ID, MAX_COUNT, MAX_ITEMS

Schema: TypeAlias = dict[str, Any]

STATES: Final = [state.value for state in State]


def ref(name: str) -> Schema:
    return {"$ref": f"#/components/schemas/{name}"}


def record(required: Mapping[str, Schema], optional: Mapping[str, Schema] | None = None) -> Schema:
    """An object that has no other fields than these."""
    return {
        "type": "object",
        "required": list(required),
        "properties": {**required, **(optional or {})},
        "additionalProperties": False,
    }


def lenient(required: Mapping[str, Schema], optional: Mapping[str, Schema] | None = None) -> Schema:
    """An object that may have other fields too, which are ignored."""
    return record(required, optional) | {"additionalProperties": True}


def many(items: Schema, most: int | None = None) -> Schema:
    return {"type": "array", "items": items} | ({"maxItems": most} if most else {})


def whole(low: int, high: int | None = None) -> Schema:
    return {"type": "integer", "minimum": low} | ({"maximum": high} if high is not None else {})


def text(most: int | None = None, *, least: int = 0) -> Schema:
    bounds = {"minLength": least, "maxLength": most}
    return {"type": "string"} | {name: bound for name, bound in bounds.items() if bound}


def or_null(schema: Schema) -> Schema:
    return schema | {"type": [schema["type"], "null"]}


BOOLEAN: Final[Schema] = {"type": "boolean"}
TIME: Final[Schema] = {"type": "string", "format": "date-time"}
UUID: Final[Schema] = {"type": "string", "format": "uuid"}
NUMBER: Final = whole(0)
BATCH_ID: Final = whole(0, MAX_BATCH_ID)
IDEMPOTENCY_KEY: Final = text(limits.MAX_IDEMPOTENCY_KEY, least=1) | {
    "description": "a repeat with the same key returns the first answer"
}
STATE: Final[Schema] = {"type": "string", "enum": STATES}
MODE: Final[Schema] = {"type": "string", "enum": [mode.value for mode in Mode]}
KIND: Final[Schema] = {"type": "string", "enum": [kind.value for kind in Kind]}
ON_DEADLINE: Final[Schema] = {"type": "string", "enum": [choice.value for choice in OnDeadline]}
CURSOR: Final = or_null(text())
ITEM_ID: Final = text() | {
    "description": "<batch id>:<group id>:<index>",
    "examples": ["7823146098425856:00000000-0000-8010-8000-000000000000:0"],
}
METADATA: Final[Schema] = {
    "type": "object",
    "maxProperties": limits.MAX_METADATA,
    "propertyNames": {"maxLength": limits.MAX_METADATA_KEY},
    "additionalProperties": text(limits.MAX_METADATA_VALUE),
}
RANGE: Final = record(
    {"group": text() | {"description": "<batch id>:<group id>"}},
    {"from": whole(0, MAX_COUNT), "to": or_null(whole(0, MAX_COUNT))},
)
COUNT: Final = record({"batch_id": BATCH_ID, "n": whole(1, MAX_ITEMS)})
FAILURE: Final = record({"item": ITEM_ID}, {"reason": text(limits.MAX_REASON)})
ACKS: Final = {
    "items": many(ITEM_ID, limits.MAX_IDS),
    "ranges": many(RANGE, limits.MAX_RANGES),
    "counts": many(COUNT, limits.MAX_COUNTS),
}
FAILURES: Final = many(FAILURE, limits.MAX_FAILURES)
BATCH: Final = {
    "batch_id": BATCH_ID,
    "state": STATE,
    "mode": MODE,
    "kind": KIND,
    "user_key": text(),
    "items": NUMBER,
    "acked": NUMBER,
    "partial": BOOLEAN,
    "created_at": TIME,
    "touched_at": TIME,
    "closed_at": or_null(TIME),
    "ended_at": or_null(TIME),
    "expires_at": TIME,
    "open_idle_ttl": NUMBER,
    "closed_idle_ttl": NUMBER,
    "deadline": or_null(TIME),
    "on_deadline": ON_DEADLINE,
    "limit": or_null(NUMBER),
    "parent_item": or_null(text()),
    "metadata": {"type": "object", "additionalProperties": text()},
}

# Of the original Carlyle: its names, and lenient as it was about fields it did not know.
CARLYLE_ID: Final[Schema] = whole(0, MAX_BATCH_ID) | {
    "type": ["integer", "string"],
    "pattern": "^[0-9]{1,16}$",
}
CARLYLE_KEY: Final[dict[str, Schema]] = {"userKey": or_null(text())}
CARLYLE_STANDING: Final = {"isComplete": BOOLEAN, "isClosed": BOOLEAN, **CARLYLE_KEY}
CARLYLE_COMPLETION: Final = {"batchId": UUID, **CARLYLE_KEY, "isComplete": BOOLEAN}
CARLYLE: Final[dict[str, Schema]] = {
    "CarlyleCreate": lenient({}, {"userKey": or_null(text(limits.MAX_USER_KEY))}),
    "CarlyleItems": lenient({"batchId": CARLYLE_ID, "items": whole(1, MAX_COUNT)}),
    "CarlyleAcks": lenient({"batchItemIds": many(ITEM_ID, limits.MAX_IDS)}),
    "CarlyleDecrements": lenient(
        {"acks": many(lenient({"batchId": UUID}, {"by": whole(1, MAX_ITEMS)}), limits.MAX_COUNTS)}
    ),
    "CarlyleCreated": record({"batchId": BATCH_ID}),
    "CarlyleEstimatedCreated": record({"batchId": UUID}),
    "CarlyleBatch": record({"batchId": BATCH_ID, **CARLYLE_STANDING}),
    "CarlyleEstimatedBatch": record(CARLYLE_STANDING),
    "CarlyleClosed": record({"isComplete": BOOLEAN}),
    "CarlyleGroups": record({"batchItemGroupIds": many(record({"id": UUID, "upto": whole(1, MAX_COUNT)}))}),
    "CarlyleCompletions": record({"batchCompletions": many(record({"batchId": BATCH_ID, **CARLYLE_KEY}))}),
    "CarlyleCompletion": record(CARLYLE_COMPLETION),
    "CarlyleResults": record({"results": many(record(CARLYLE_COMPLETION))}),
    "CarlyleRemoved": record({"batchesRemoved": NUMBER, "itemsRemoved": NUMBER}),
}

SCHEMAS: Final[dict[str, Schema]] = {
    "OpenBatch": record(
        {},
        {
            "user_key": text(limits.MAX_USER_KEY),
            "mode": MODE,
            "idle_ttl": or_null(whole(limits.MIN_IDLE_TTL, limits.MAX_LIFETIME)),
            "lifetime": or_null(whole(limits.MIN_LIFETIME, limits.MAX_LIFETIME)),
            "deadline": or_null(TIME),
            "on_deadline": ON_DEADLINE,
            "limit": or_null(whole(1, limits.MAX_LIMIT)),
            "parent_item": or_null(ITEM_ID),
            "metadata": METADATA,
        },
    ),
    "AddItems": record({"count": whole(1, MAX_COUNT)}),
    "Acks": record({}, ACKS),
    "Failures": record({"failures": FAILURES}),
    "QueuedAcks": record({}, {**ACKS, "failures": FAILURES}),
    "Batch": record(BATCH),
    "Progress": record({**BATCH, "done_min": NUMBER, "done_max": NUMBER}),
    "Batches": record({"batches": many(ref("Batch")), "cursor": CURSOR}),
    "Group": record({"batch_id": BATCH_ID, "id": UUID, "upto": whole(1, MAX_COUNT)}),
    "Receipts": record({"batches": many(ref("Receipt"))}),
    "Receipt": record(
        {
            "batch_id": BATCH_ID,
            "user_key": text(),
            "state": STATE,
            "complete": BOOLEAN,
            "first": NUMBER,
            "duplicates": many(ITEM_ID),
            "ranged": NUMBER,
            "late": NUMBER,
        }
    ),
    "Missing": record(
        {
            "ranges": many(record({"from": NUMBER, "to": NUMBER, "id": UUID})),
            "cursor": CURSOR,
        }
    ),
    "FailedItems": record(
        {
            "failures": many(record({"ordinal": NUMBER, "item": text(), "reason": text()})),
            "cursor": CURSOR,
        }
    ),
    "Verdict": record(
        {
            "batch": ref("Batch"),
            "pending": NUMBER,
            "disagreements": many(text()),
            "repaired": BOOLEAN,
            "cursor": CURSOR,
        }
    ),
    "Expired": record({"batches": NUMBER, "items": NUMBER}),
    **CARLYLE,
    "Document": {"type": "object", "required": ["openapi", "info", "paths"]},
    "Problem": {
        "type": "object",
        "description": "RFC 9457",
        "required": ["type", "title", "status", "detail", "request_id"],
        "properties": {
            "type": text() | {"description": f"{names.PROBLEM_ROOT}<code>, stable"},
            "title": text(),
            "status": whole(400, 599),
            "detail": text(),
            "request_id": text(),
            "retry_after": whole(0) | {"description": "seconds"},
        },
    },
}
