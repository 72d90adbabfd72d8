"""The routes of the directory, of content-based routing, and of events."""

from __future__ import annotations

from typing import Final

from fanin import names
from fanin.app.api import Fanin
from fanin.domain import limits
from fanin.domain import routing as domain
from fanin.domain.access import AccessGroup
from fanin.domain.directory import Registration, Registrations
from fanin.entry.http.results import of_deletion
from fanin.entry.http.route import LoggedAction, Request, Route
from fanin.entry.http.v1.parameters import page_of, paged
from fanin.errors import ChannelRefused, LimitReached, NotRegistered, RouteNotFound
from fanin.wire import directory as wire
from fanin.wire.json_types import TEXT

_TOPIC: Final = f"{names.API_ROOT}/directory/{{topic}}"
_REGISTRATION: Final = _TOPIC + "/{name}"
_ROUTES: Final = f"{names.API_ROOT}/routes"
_ROUTE: Final = _ROUTES + "/{name}"

_TOPIC_NAME: Final = {"topic": wire.NAME}
_NAMES: Final = {**_TOPIC_NAME, "name": wire.NAME}
_ROUTE_NAME: Final = {"name": wire.NAME.with_keywords(maxLength=limits.MAX_ROUTE)}
_ATTRIBUTES: Final = TEXT.with_keywords(
    description="only those that have all of these: name=value,name=value"
)


def _register(fanin: Fanin, request: Request) -> Registration:
    return fanin.directory.register(request.read(**request.path))


def _registration(fanin: Fanin, request: Request) -> Registration:
    return fanin.directory.get(**request.path)


def _deregister(fanin: Fanin, request: Request) -> bool:
    return fanin.directory.deregister(**request.path)


def _registrations(fanin: Fanin, request: Request) -> Registrations:
    attributes = wire.decode_attributes(request.query.get("attributes"))
    return fanin.directory.page(request.path["topic"], attributes=attributes, **page_of(request))


def _put_route(fanin: Fanin, request: Request) -> domain.Route:
    return fanin.routing.put(request.read(**request.path))


def _route(fanin: Fanin, request: Request) -> domain.Route:
    return fanin.routing.get(request.path["name"])


def _delete_route(fanin: Fanin, request: Request) -> bool:
    return fanin.routing.delete(request.path["name"])


def _routes(fanin: Fanin, request: Request) -> domain.Routes:
    return fanin.routing.page(**page_of(request))


def _event(fanin: Fanin, request: Request) -> domain.Sent:
    return fanin.routing.publish(request.read())


# fmt: off
ROUTES: Final = (
    Route(
        "PUT", _REGISTRATION, "register", "Register an instance, renew its lease, or move it", _register,
        wire.REGISTRATION, body=wire.REGISTER, named=_NAMES, errors=(ChannelRefused,),
        data_path=True,
        group=AccessGroup.CONSUME,
    ),
    Route(
        "GET", _REGISTRATION, "getRegistration", "A registration whose lease is not over", _registration,
        wire.REGISTRATION, named=_NAMES, errors=(NotRegistered,),
        group=AccessGroup.READ,
    ),
    Route(
        "DELETE", _REGISTRATION, "deregister", "End a registration, if there is one",
        _deregister, wire.DELETED, named=_NAMES,
        action=LoggedAction(of_deletion),
        group=AccessGroup.CONSUME, also=(AccessGroup.OPERATE,),
    ),
    Route(
        "GET", _TOPIC, "listTopic", "The registrations of a topic, by name", _registrations,
        wire.REGISTRATIONS, named=_TOPIC_NAME, optional={"attributes": _ATTRIBUTES, **paged()},
        group=AccessGroup.READ,
    ),
    Route(
        "PUT", _ROUTE, "putRoute", "Make or change a route", _put_route, wire.ROUTE, body=wire.PUT_ROUTE,
        named={"name": wire.ROUTE_NAME}, errors=(LimitReached,),
        action=LoggedAction(),
        group=AccessGroup.ADMINISTER,
    ),
    Route(
        "GET", _ROUTE, "getRoute", "A route", _route, wire.ROUTE, named=_ROUTE_NAME, errors=(RouteNotFound,),
        group=AccessGroup.READ,
    ),
    Route(
        "DELETE", _ROUTE, "deleteRoute", "Delete a route, if there is one", _delete_route,
        wire.DELETED, named=_ROUTE_NAME,
        action=LoggedAction(of_deletion),
        group=AccessGroup.ADMINISTER,
    ),
    Route(
        "GET", _ROUTES, "listRoutes", "The routes, by name", _routes, wire.ROUTES, optional=paged(),
        group=AccessGroup.READ,
    ),
    Route(
        "POST", f"{names.API_ROOT}/events", "putEvent", "Put an event on the bus, to be routed", _event,
        wire.SENT, 202, body=wire.PUT_EVENT,
        data_path=True,
        group=AccessGroup.PRODUCE,
    ),
)
# fmt: on
