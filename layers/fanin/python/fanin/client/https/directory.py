"""The directory and content-based routing over HTTPS."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from urllib.parse import quote

from fanin.client.https.api import HttpsApi
from fanin.client.paging import follow_cursor
from fanin.domain.directory import Register, Registration, Registrations
from fanin.domain.limits import MAX_PAGE
from fanin.domain.routing import PutEvent, PutRoute, Route, Routes, Sent
from fanin.wire import directory as wire


class HttpsDirectory:
    """Implements ``fanin.app.api.Directory`` against a deployed API.

    Args:
        api: the API.
    """

    def __init__(self, api: HttpsApi) -> None:
        self._api = api

    def register(self, request: Register) -> Registration:
        path = _path("directory", request.topic, request.name)
        return self._api.call(wire.REGISTRATION, "PUT", path, wire.REGISTER.encode(request))

    def deregister(self, topic: str, name: str) -> bool:
        return self._api.call(wire.DELETED, "DELETE", _path("directory", topic, name))

    def get(self, topic: str, name: str) -> Registration:
        return self._api.call(wire.REGISTRATION, "GET", _path("directory", topic, name))

    def page(
        self,
        topic: str,
        *,
        attributes: Mapping[str, str] | None = None,
        cursor: str | None = None,
        limit: int = 100,
    ) -> Registrations:
        query = {"attributes": wire.encode_attributes(attributes or {}), "cursor": cursor, "limit": limit}
        return self._api.call(wire.REGISTRATIONS, "GET", _path("directory", topic), query=query)

    def members(self, topic: str, attributes: Mapping[str, str] | None = None) -> Iterator[Registration]:
        """All registrations of a topic that have all the attributes, read a page at a time."""
        for page in follow_cursor(
            lambda cursor: self.page(topic, attributes=attributes, cursor=cursor, limit=MAX_PAGE)
        ):
            yield from page.registrations


class HttpsRouting:
    """Implements ``fanin.app.api.Routing`` against a deployed API.

    Args:
        api: the API.
    """

    def __init__(self, api: HttpsApi) -> None:
        self._api = api

    def put(self, request: PutRoute) -> Route:
        path = _path("routes", request.name)
        return self._api.call(wire.ROUTE, "PUT", path, wire.PUT_ROUTE.encode(request))

    def delete(self, name: str) -> bool:
        return self._api.call(wire.DELETED, "DELETE", _path("routes", name))

    def get(self, name: str) -> Route:
        return self._api.call(wire.ROUTE, "GET", _path("routes", name))

    def page(self, *, cursor: str | None = None, limit: int = 100) -> Routes:
        return self._api.call(wire.ROUTES, "GET", "/routes", query={"cursor": cursor, "limit": limit})

    def publish(self, event: PutEvent) -> Sent:
        """Put an event on the bus; it is not sent again when the answer was lost, because it may be there."""
        body = wire.PUT_EVENT.encode(event)
        return self._api.call(wire.SENT, "POST", "/events", body, repeatable=False)


def _path(*parts: str) -> str:
    return "".join(f"/{quote(part, safe='')}" for part in parts)
