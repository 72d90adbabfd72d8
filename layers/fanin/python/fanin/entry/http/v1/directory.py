"""The routes of the directory, of content-based routing, and of events."""

from __future__ import annotations

from typing import Final

from fanin import names
from fanin.app.api import Directory, Routing
from fanin.domain import limits
from fanin.domain.access import AccessGroup
from fanin.entry.http.calls import Call
from fanin.entry.http.results import of_deletion
from fanin.entry.http.route import HttpRoute, LoggedAction, Repeat
from fanin.entry.http.v1.parameters import paged
from fanin.errors import ChannelRefused, LimitReached, NotRegistered, RouteNotFound
from fanin.wire import directory as wire

_TOPIC: Final = f"{names.API_ROOT}/directory/{{topic}}"
_REGISTRATION: Final = _TOPIC + "/{name}"
_ROUTES: Final = f"{names.API_ROOT}/routes"
_ROUTE: Final = _ROUTES + "/{name}"

_TOPIC_NAME: Final = {"topic": wire.NAME}
_NAMES: Final = {**_TOPIC_NAME, "name": wire.NAME}
_ROUTE_NAME: Final = {"name": wire.NAME.with_keywords(maxLength=limits.MAX_ROUTE)}


# fmt: off
ROUTES: Final = (
    HttpRoute(
        "PUT", _REGISTRATION, "register", "Register an instance, renew its lease, or move it",
        Call(Directory.register, "request"),
        wire.REGISTRATION, body=wire.REGISTER, named=_NAMES, errors=(ChannelRefused,),
        data_path=True,
        group=AccessGroup.CONSUME,
    ),
    HttpRoute(
        "GET", _REGISTRATION, "getRegistration", "A registration whose lease is not over",
        Call(Directory.get),
        wire.REGISTRATION, named=_NAMES, errors=(NotRegistered,),
        group=AccessGroup.READ,
    ),
    HttpRoute(
        "DELETE", _REGISTRATION, "deregister", "End a registration, if there is one",
        Call(Directory.deregister), wire.DELETED, named=_NAMES,
        action=LoggedAction(of_deletion),
        group=AccessGroup.CONSUME, also=(AccessGroup.OPERATE,),
    ),
    HttpRoute(
        "GET", _TOPIC, "listTopic", "The registrations of a topic, by name", Call(Directory.page),
        wire.REGISTRATIONS, named=_TOPIC_NAME, optional={"attributes": wire.ATTRIBUTES, **paged()},
        group=AccessGroup.READ,
    ),
    HttpRoute(
        "PUT", _ROUTE, "putRoute", "Make or change a route",
        Call(Routing.put, "request"), wire.ROUTE, body=wire.PUT_ROUTE,
        named={"name": wire.ROUTE_NAME}, errors=(LimitReached,),
        action=LoggedAction(),
        group=AccessGroup.ADMINISTER,
    ),
    HttpRoute(
        "GET", _ROUTE, "getRoute", "A route",
        Call(Routing.get), wire.ROUTE, named=_ROUTE_NAME, errors=(RouteNotFound,),
        group=AccessGroup.READ,
    ),
    HttpRoute(
        "DELETE", _ROUTE, "deleteRoute", "Delete a route, if there is one", Call(Routing.delete),
        wire.DELETED, named=_ROUTE_NAME,
        action=LoggedAction(of_deletion),
        group=AccessGroup.ADMINISTER,
    ),
    HttpRoute(
        "GET", _ROUTES, "listRoutes", "The routes, by name",
        Call(Routing.page), wire.ROUTES, optional=paged(),
        group=AccessGroup.READ,
    ),
    HttpRoute(
        "POST", f"{names.API_ROOT}/events", "putEvent", "Put an event on the bus, to be routed",
        Call(Routing.publish, "event"),
        wire.SENT, 202, body=wire.PUT_EVENT, repeat=Repeat.NEVER,
        data_path=True,
        group=AccessGroup.PRODUCE,
    ),
)
# fmt: on
