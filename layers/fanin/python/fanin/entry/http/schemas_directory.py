"""JSON Schemas of the directory, of routes and of events."""

from __future__ import annotations

from typing import Final

from fanin.domain import limits
from fanin.domain.routing import Policy
from fanin.entry.http.schemas import (
    BOOLEAN,
    CURSOR,
    METADATA,
    NUMBER,
    TIME,
    Schema,
    many,
    record,
    ref,
    text,
    whole,
)

NAME: Final = text(limits.MAX_NAME, least=1) | {"pattern": f"^{limits.NAME}$"}
OBJECT: Final[Schema] = {"type": "object"}
STRINGS: Final[Schema] = {"type": "object", "additionalProperties": text()}
POLICY: Final[Schema] = {"type": "string", "enum": [policy.value for policy in Policy]}
PATTERN: Final[Schema] = OBJECT | {
    "description": "event pattern of EventBridge",
    "minProperties": 1,
    "examples": [{"source": ["shop"], "detail": {"total": [{"numeric": [">", 100]}]}}],
}
CHANNEL: Final = text(limits.MAX_CHANNEL, least=1) | {"description": "URL or ARN of an SQS queue"}

SCHEMAS: Final[dict[str, Schema]] = {
    "Register": record(
        {"channel": CHANNEL},
        {"attributes": METADATA, "lease": whole(limits.MIN_LEASE, limits.MAX_LEASE)},
    ),
    "Registration": record(
        {
            "topic": text(),
            "name": text(),
            "channel": text(),
            "attributes": STRINGS,
            "lease": NUMBER,
            "since": TIME,
            "until": TIME,
        }
    ),
    "Registrations": record({"registrations": many(ref("Registration")), "cursor": CURSOR}),
    "Deleted": record({"deleted": BOOLEAN}),
    "PutRoute": record(
        {"pattern": PATTERN, "topic": NAME},
        {"policy": POLICY, "attributes": METADATA},
    ),
    "Route": record(
        {
            "name": text(),
            "pattern": OBJECT,
            "topic": text(),
            "policy": POLICY,
            "attributes": STRINGS,
            "since": TIME,
        }
    ),
    "Routes": record({"routes": many(ref("Route")), "cursor": CURSOR}),
    "PutEvent": record(
        {
            "source": text(limits.MAX_SOURCE, least=1),
            "detail_type": text(limits.MAX_DETAIL_TYPE, least=1),
        },
        {"detail": OBJECT},
    ),
    "EventSent": record({"event_id": text(), "correlation_id": text()}),
}
