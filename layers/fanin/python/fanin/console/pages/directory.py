"""The directory: who listens to a topic, and until when; and the routes: which events go to which topic."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Self

from starlette.datastructures import QueryParams
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from fanin.console.state import Console, LivePage, console_of, cursor_in, live_routes
from fanin.domain import limits
from fanin.domain.directory import Policy, Registration
from fanin.domain.directory import Route as EventRoute
from fanin.errors import InvalidRequest
from fanin.names import ROUTE_RULE

SHOWN: Final = 50
"""Registrations of a page."""
PAGES: Final = 10
"""Pages of the service that one page goes through for registrations with the attributes that it shows."""
ROUTES_READ: Final = 100
"""Routes that are looked at for the topics that they name."""


@dataclass(frozen=True, slots=True)
class DirectoryQuery:
    """What a page of a topic shows.

    Attributes:
        topic: its name.
        attributes: only registrations that have all of these, as ``name=value``.
        cursor: of the page.
    """

    topic: str
    attributes: tuple[str, ...] = ()
    cursor: str | None = None

    @classmethod
    def of(cls, topic: str, asked: QueryParams) -> Self:
        """Read the query of an address.

        Raises:
            InvalidRequest: the topic is not a name, or an attribute is not ``name=value``.
        """
        limits.name("topic", topic, limits.MAX_NAME)
        texts = [text.strip() for text in asked.getlist("attribute")]
        found = cls(topic, tuple(text for text in texts if text), asked.get("cursor") or None)
        limits.pairs("attributes", found.wanted)
        return found

    @property
    def wanted(self) -> Mapping[str, str]:
        """The attributes by name.

        Raises:
            InvalidRequest: one is not ``name=value``.
        """
        pairs = [text.partition("=") for text in self.attributes]
        if not all(name and separator for name, separator, _ in pairs):
            raise InvalidRequest("an attribute is name=value, such as region=eu")
        return {name: value for name, _, value in pairs}


def registrations(console: Console, query: DirectoryQuery) -> tuple[list[Registration], str | None]:
    """Read one page of a topic, and the cursor of the next.

    The service gives short pages where few have the attributes.
    """
    found: list[Registration] = []
    cursor = query.cursor
    for _ in range(PAGES):
        page = console.fanin.directory.page(
            query.topic, attributes=query.wanted, cursor=cursor, limit=SHOWN - len(found)
        )
        found += page.registrations
        cursor = page.cursor
        if cursor is None or len(found) >= SHOWN:
            break
    return found, cursor


def _routes(console: Console) -> Sequence[EventRoute]:
    return console.fanin.routing.page(limit=ROUTES_READ).routes


def directory(request: Request) -> Response:
    """Ask for a topic, and go to the page of one that was asked for."""
    console = console_of(request)
    if name := request.query_params.get("topic", "").strip():
        query = DirectoryQuery.of(name, request.query_params)
        address = console.templates.url("directory", query.topic, attribute=query.attributes or None)
        return RedirectResponse(address, 303)
    topics = sorted({route.topic for route in _routes(console)})
    return console.page(request, "directory.html", here="directory", topics=topics)


def topic(request: Request) -> LivePage:
    """Read one page of a topic, and which of the first routes send to it."""
    console = console_of(request)
    query = DirectoryQuery.of(request.path_params["topic"], request.query_params)
    routes = console.calls.submit(_routes, console)
    found, cursor = registrations(console, query)
    senders = tuple(route.name for route in routes.result() if route.topic == query.topic)
    return LivePage(
        "topic.html",
        {"topic": ("directory_parts.html", "topic", query, found, cursor, senders)},
        (tuple((one.name, one.until) for one in found), senders),
        values={"here": "directory", "query": query},
    )


def registration(request: Request) -> Response:
    console = console_of(request)
    found = console.fanin.directory.get(request.path_params["topic"], request.path_params["name"])
    return console.page(request, "registration.html", here="directory", registration=found)


SHOWN_ROUTES: Final = 50
"""Routes of a page."""
POLICIES: Final[Mapping[Policy, str]] = {
    Policy.ALL: "all of them",
    Policy.FIRST: "the first by name whose queue takes it",
    Policy.SENDER: "the one that the event names as reply_to or sender; without one, the first",
}
"""Who of those who match gets an event."""


def routes(request: Request) -> Response:
    console = console_of(request)
    page = console.fanin.routing.page(cursor=cursor_in(request), limit=SHOWN_ROUTES)
    patterns = [json.dumps(one.pattern, ensure_ascii=False) for one in page.routes]
    return console.page(request, "routes.html", here="routes", page=page, patterns=patterns)


def route(request: Request) -> Response:
    """Show a route, and who gets its events: two calls, and more where few have the attributes."""
    console = console_of(request)
    found = console.fanin.routing.get(request.path_params["name"])
    query = DirectoryQuery(found.topic, tuple(f"{name}={value}" for name, value in found.attributes.items()))
    receivers, cursor = registrations(console, query)
    return console.page(
        request,
        "route.html",
        here="routes",
        route=found,
        pattern=json.dumps(found.pattern, indent=2, ensure_ascii=False),
        policy=POLICIES[found.policy],
        rule=ROUTE_RULE + found.name,
        query=query,
        receivers=receivers,
        more=cursor is not None,
    )


ROUTES: Final = (
    Route("/directory", directory),
    *live_routes("/directory/{topic}", topic),
    Route("/directory/{topic}/{name}", registration),
    Route("/routes", routes),
    Route("/routes/{name}", route),
)
