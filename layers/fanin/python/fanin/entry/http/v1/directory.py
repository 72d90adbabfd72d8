"""The routes of the directory, of content-based routing, and of events."""

from __future__ import annotations

from typing import Final

from fanin import names
from fanin.app.services import Services
from fanin.domain import limits
from fanin.entry.http.route import Request, Route
from fanin.entry.http.schemas import Schema, text, whole
from fanin.entry.http.schemas_directory import NAME
from fanin.errors import ChannelRefused, LimitReached, NotRegistered, RouteNotFound
from fanin.wire import directory as wire
from fanin.wire.ledger import Json

_TOPIC: Final = f"{names.API_ROOT}/directory/{{topic}}"
_REGISTRATION: Final = _TOPIC + "/{name}"
_ROUTES: Final = f"{names.API_ROOT}/routes"
_ROUTE: Final = _ROUTES + "/{name}"

_PAGE: Final[dict[str, Schema]] = {
    "cursor": text(least=1) | {"description": "from the page before"},
    "limit": whole(1, limits.MAX_PAGE) | {"default": 100},
}
_NAMES: Final = {"topic": NAME, "name": NAME}
_ROUTE_NAME: Final = {"name": NAME | {"maxLength": limits.MAX_ROUTE}}
_ATTRIBUTES: Final = text() | {"description": "only those that have all of these: name=value,name=value"}


def _register(services: Services, request: Request) -> Json:
    wanted = wire.decode_register(request.path["topic"], request.path["name"], request.body)
    return wire.encode_registration(services.directory.register(wanted))


def _registration(services: Services, request: Request) -> Json:
    return wire.encode_registration(services.directory.get(**request.path))


def _deregister(services: Services, request: Request) -> Json:
    return {"deleted": services.directory.deregister(**request.path)}


def _registrations(services: Services, request: Request) -> Json:
    attributes = wire.decode_attributes(request.query.get("attributes"))
    page = services.directory.page(request.path["topic"], attributes=attributes, **_page(request))
    return wire.encode_registrations(page)


def _put_route(services: Services, request: Request) -> Json:
    wanted = wire.decode_put_route(request.path["name"], request.body)
    return wire.encode_route(services.routing.put(wanted))


def _route(services: Services, request: Request) -> Json:
    return wire.encode_route(services.routing.get(request.path["name"]))


def _delete_route(services: Services, request: Request) -> Json:
    return {"deleted": services.routing.delete(request.path["name"])}


def _routes(services: Services, request: Request) -> Json:
    return wire.encode_routes(services.routing.page(**_page(request)))


def _event(services: Services, request: Request) -> Json:
    return wire.encode_sent(services.routing.publish(wire.decode_event(request.body)))


def _page(request: Request) -> Json:
    return {"cursor": request.query.get("cursor"), "limit": request.query.get("limit", 100)}


# fmt: off
ROUTES: Final = (
    Route(
        "PUT", _REGISTRATION, "register", "Register an instance, renew its lease, or move it", _register,
        "Registration", body="Register", named=_NAMES, errors=(ChannelRefused,),
    ),
    Route(
        "GET", _REGISTRATION, "getRegistration", "A registration whose lease is not over", _registration,
        "Registration", named=_NAMES, errors=(NotRegistered,),
    ),
    Route(
        "DELETE", _REGISTRATION, "deregister", "End a registration; none being there is no error",
        _deregister, "Deleted", named=_NAMES,
    ),
    Route(
        "GET", _TOPIC, "listTopic", "The registrations of a topic, by name", _registrations,
        "Registrations", named=_NAMES, optional={"attributes": _ATTRIBUTES, **_PAGE},
    ),
    Route(
        "PUT", _ROUTE, "putRoute", "Make or change a route", _put_route, "Route", body="PutRoute",
        named=_ROUTE_NAME, errors=(LimitReached,),
    ),
    Route(
        "GET", _ROUTE, "getRoute", "A route", _route, "Route", named=_ROUTE_NAME, errors=(RouteNotFound,),
    ),
    Route(
        "DELETE", _ROUTE, "deleteRoute", "Delete a route; none being there is no error", _delete_route,
        "Deleted", named=_ROUTE_NAME,
    ),
    Route("GET", _ROUTES, "listRoutes", "The routes, by name", _routes, "Routes", optional=_PAGE),
    Route(
        "POST", f"{names.API_ROOT}/events", "putEvent", "Put an event on the bus, to be routed", _event,
        "EventSent", 202, body="PutEvent",
    ),
)
# fmt: on
