"""Routes: which events go to which topic, and who would get them now."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from fanin.console.pages.addresses import cursor_in
from fanin.console.pages.directory import DirectoryQuery, registrations
from fanin.console.state import console_of
from fanin.domain.routing import Policy
from fanin.names import ROUTE_RULE

SHOWN: Final = 50
"""Routes of a page."""
POLICIES: Final[Mapping[Policy, str]] = {
    Policy.ALL: "all of them",
    Policy.FIRST: "the first by name whose queue takes it",
    Policy.SENDER: "the one that the event names as reply_to or sender; without one, the first",
}
"""Who of those who match gets an event."""


def routes(request: Request) -> Response:
    console = console_of(request)
    page = console.fanin.routing.page(cursor=cursor_in(request), limit=SHOWN)
    return console.page(
        request, "routes.html", here="routes", page=page, patterns=[_line(one.pattern) for one in page.routes]
    )


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


def _line(pattern: Mapping[str, Any]) -> str:
    return json.dumps(pattern, ensure_ascii=False)


ROUTES: Final = (
    Route("/routes", routes),
    Route("/routes/{name}", route),
)
