"""The JSON form of the directory, of routes and of events, for both ends."""

from __future__ import annotations

from collections.abc import Mapping

from fanin.domain.directory import Left, Register, Registration, Registrations
from fanin.domain.routing import Policy, PutEvent, PutRoute, Route, Routes, Sent
from fanin.errors import InvalidRequest
from fanin.wire.ledger import Json, decode_time, encode_time


def encode_register(request: Register) -> Json:
    return {"channel": request.channel, "attributes": dict(request.attributes), "lease": request.lease}


def decode_register(topic: str, name: str, body: Json) -> Register:
    given = {field: body[field] for field in ("attributes", "lease") if body.get(field) is not None}
    return Register(topic, name, body["channel"], **given)


def encode_registration(registration: Registration) -> Json:
    body: Json = {
        "topic": registration.topic,
        "name": registration.name,
        "channel": registration.channel,
        "attributes": dict(registration.attributes),
        "lease": registration.lease,
        "since": encode_time(registration.since),
        "until": encode_time(registration.until),
    }
    return body if registration.left is None else body | {"reason": registration.left.value}


def decode_registration(body: Json) -> Registration:
    return Registration(
        topic=body["topic"],
        name=body["name"],
        channel=body["channel"],
        attributes=body["attributes"],
        lease=body["lease"],
        since=decode_time(body["since"]),
        until=decode_time(body["until"]),
        left=Left(body["reason"]) if "reason" in body else None,
    )


def encode_registrations(page: Registrations) -> Json:
    return {"registrations": [encode_registration(one) for one in page.registrations], "cursor": page.cursor}


def decode_registrations(body: Json) -> Registrations:
    return Registrations(tuple(decode_registration(one) for one in body["registrations"]), body["cursor"])


def decode_deleted(body: Json) -> bool:
    return bool(body["deleted"])


def encode_attributes(attributes: Mapping[str, str]) -> str | None:
    """Write an attribute filter as a query parameter; None if it asks for nothing."""
    return ",".join(f"{name}={value}" for name, value in attributes.items()) or None


def decode_attributes(text: str | None) -> dict[str, str]:
    """Read an attribute filter: ``colour=red,region=eu``.

    Raises:
        InvalidRequest: it is none.
    """
    pairs = [pair.partition("=") for pair in (text or "").split(",") if pair]
    if not all(name and equals for name, equals, _ in pairs):
        raise InvalidRequest("attributes must be written as name=value,name=value")
    return {name: value for name, _, value in pairs}


def encode_put_route(request: PutRoute) -> Json:
    return {
        "pattern": dict(request.pattern),
        "topic": request.topic,
        "policy": request.policy.value,
        "attributes": dict(request.attributes),
    }


def decode_put_route(name: str, body: Json) -> PutRoute:
    return PutRoute(
        name=name,
        pattern=body["pattern"],
        topic=body["topic"],
        policy=Policy(body.get("policy", Policy.ALL)),
        attributes=body.get("attributes", {}),
    )


def encode_route(route: Route) -> Json:
    return {
        "name": route.name,
        "pattern": dict(route.pattern),
        "topic": route.topic,
        "policy": route.policy.value,
        "attributes": dict(route.attributes),
        "since": encode_time(route.since),
    }


def decode_route(body: Json) -> Route:
    return Route(
        name=body["name"],
        pattern=body["pattern"],
        topic=body["topic"],
        policy=Policy(body["policy"]),
        attributes=body["attributes"],
        since=decode_time(body["since"]),
    )


def encode_routes(page: Routes) -> Json:
    return {"routes": [encode_route(route) for route in page.routes], "cursor": page.cursor}


def decode_routes(body: Json) -> Routes:
    return Routes(tuple(decode_route(route) for route in body["routes"]), body["cursor"])


def encode_event(event: PutEvent) -> Json:
    return {"source": event.source, "detail_type": event.detail_type, "detail": dict(event.detail)}


def decode_event(body: Json) -> PutEvent:
    return PutEvent(body["source"], body["detail_type"], body.get("detail", {}))


def encode_sent(sent: Sent) -> Json:
    return {"event_id": sent.event_id, "correlation_id": sent.correlation_id}


def decode_sent(body: Json) -> Sent:
    return Sent(body["event_id"], body["correlation_id"])
