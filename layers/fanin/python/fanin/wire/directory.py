"""Shapes of the directory, of routes and of events."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from fanin.domain import directory as domain
from fanin.domain import limits
from fanin.domain.directory import (
    Left,
    Policy,
    PutEvent,
    PutRoute,
    Register,
    Registration,
    Registrations,
    Route,
    Routes,
    Sent,
)
from fanin.errors import InvalidRequest
from fanin.wire.json_types import (
    BOOLEAN,
    CURSOR,
    METADATA,
    NATURAL,
    OBJECT,
    TEXT,
    TIME,
    JsonType,
    many,
    one_of,
    or_null,
    string_map,
    text,
    whole,
)
from fanin.wire.shapes import answer, request, wrapped

NAME: Final = text(limits.MAX_NAME, least=1).with_keywords(pattern=f"^{limits.NAME}$")

ROUTE_NAME: Final = text(limits.MAX_ROUTE, least=1).with_keywords(pattern=f"^{domain.ROUTE_NAME}$")

REGISTER: Final = request(
    "Register",
    Register,
    channel=text(limits.MAX_CHANNEL, least=1).with_keywords(description="URL or ARN of an SQS queue"),
    attributes=METADATA,
    lease=whole(limits.MIN_LEASE, limits.MAX_LEASE),
)
"""What an instance registers with; ``topic`` and ``name`` are given to ``decode``."""
REGISTRATION: Final = answer(
    "Registration",
    Registration,
    topic=TEXT,
    name=TEXT,
    channel=TEXT,
    attributes=string_map(),
    lease=NATURAL,
    since=TIME,
    until=TIME,
    left=or_null(one_of(Left)).called("reason"),
)
REGISTRATIONS: Final = answer(
    "RegistrationPage", Registrations, registrations=many(REGISTRATION), cursor=CURSOR
)
DELETED: Final = wrapped("Deletion", "deleted", BOOLEAN)
PUT_ROUTE: Final = request(
    "PutRoute",
    PutRoute,
    pattern=OBJECT.with_keywords(
        description="event pattern of EventBridge",
        minProperties=1,
        examples=[{"source": ["shop"], "detail": {"total": [{"numeric": [">", 100]}]}}],
    ),
    topic=NAME,
    policy=one_of(Policy),
    attributes=METADATA,
)
"""What a route is made of; ``name`` is given to ``decode``."""
ROUTE: Final = answer(
    "Route",
    Route,
    name=TEXT,
    pattern=OBJECT,
    topic=TEXT,
    policy=one_of(Policy),
    attributes=string_map(),
    since=TIME,
)
ROUTES: Final = answer("RoutePage", Routes, routes=many(ROUTE), cursor=CURSOR)
PUT_EVENT: Final = request(
    "PutEvent",
    PutEvent,
    source=text(limits.MAX_SOURCE, least=1),
    detail_type=text(limits.MAX_DETAIL_TYPE, least=1),
    detail=OBJECT,
)
SENT: Final = answer("EventSent", Sent, event_id=TEXT, correlation_id=TEXT)


def encode_attributes(attributes: Mapping[str, str]) -> str | None:
    """Write an attribute filter as a query parameter; None if it asks for nothing."""
    return ",".join(f"{name}={value}" for name, value in attributes.items()) or None


def decode_attributes(text: str | None) -> dict[str, str]:
    """Read an attribute filter: ``colour=red,region=eu``.

    Raises:
        InvalidRequest: a part of it is not ``name=value``.
    """
    pairs = [pair.partition("=") for pair in (text or "").split(",") if pair]
    if not all(name and equals for name, equals, _ in pairs):
        raise InvalidRequest("attributes must be written as name=value,name=value")
    return {name: value for name, _, value in pairs}


ATTRIBUTES: Final[JsonType[Any]] = JsonType(
    {"type": "string", "description": "only those that have all of these: name=value,name=value"},
    encode_attributes,
    decode_attributes,
)
"""An attribute filter, in a query."""
