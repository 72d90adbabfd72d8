"""What all pages of one console share: what they read in an address, and how they keep up to date."""

import json
import re
import secrets
import threading
from collections.abc import Callable, Hashable, Iterable, Mapping
from concurrent.futures import Executor, ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from hashlib import sha256
from http import HTTPStatus
from typing import Any, Final, TypeAlias, TypeVar
from urllib.parse import quote

from markupsafe import Markup
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response
from starlette.routing import Route

from fanin.app.api import Fanin
from fanin.console.actions.log import Log
from fanin.console.guard import Sessions, form_token, keep
from fanin.console.options import Options
from fanin.console.rendering import Templates
from fanin.console.samples import Samples
from fanin.domain.access import AccessGroup
from fanin.domain.latest import Latest
from fanin.entry.http.table import route_of
from fanin.errors import BatchNotFound, FaninError, InvalidRequest
from fanin.wire.actions import Caller, CallerKind

ENTRIES: Final = 64
"""How many things a console remembers at most."""
A = TypeVar("A")
T = TypeVar("T")
CALLS: Final = 8
"""Calls of fanin that one console makes at a time for pages that need several."""


Part: TypeAlias = tuple[str, str, *tuple[Any, ...]]
"""A template, the name of a macro in it, and what the macro takes."""


@dataclass(frozen=True, slots=True)
class LivePage:
    """A page of which parts change while somebody looks at it.

    Attributes:
        template: file name. ``part`` in it is the inner HTML of a part.
        parts: id of an element → what makes its inner HTML.
        facts: what the parts show, without what passes with time alone. While it stays equal, the page asks
            less and less often.
        over: whether nothing of it will ever change again.
        values: what else the template shows.
    """

    template: str
    parts: Mapping[str, Part]
    facts: Hashable
    over: bool = False
    values: Mapping[str, Any] = field(default_factory=dict)


class Console:
    """One console.

    Args:
        fanin: the eight services that it shows.
        options: what it may do, and where it is served.
        now: tells the time, ms since the epoch.

    Attributes:
        samples: progress of the batches that were looked at.
        log: what its buttons did.
        sessions: the browsers that may look.
        calls: makes calls of fanin at the same time.
    """

    def __init__(self, fanin: Fanin, options: Options, *, now: Callable[[], int]) -> None:
        self.fanin = fanin
        self.options = options
        self.now = now
        self.samples = Samples()
        self.log = Log()
        self._remembered: Latest[Hashable, Any] = Latest(ENTRIES)
        self._lock = threading.Lock()
        self.sessions = Sessions(lambda: secrets.token_urlsafe(32))
        self.calls: Executor = ThreadPoolExecutor(CALLS, thread_name_prefix="fanin-console")
        self.templates = Templates(options, now)

    def each(self, read: Callable[[A], T], things: Iterable[A]) -> list[tuple[A, T]]:
        """Read each of some things, several at a time. One that cannot be read is left out, and no other.

        Raises:
            FaninError: the service is overloaded or cannot be reached; that says nothing about a thing.
        """
        return [one for one in self.calls.map(partial(_readable, read), things) if one is not None]

    def remembered(self, key: Hashable, make: Callable[[], T]) -> T:
        """What pages keep from one read to the next; made now if there is none."""
        with self._lock:
            found: T = self._remembered[key] if key in self._remembered else make()
            self._remembered[key] = found
            return found

    def session(self, request: Request) -> str:
        """The session of a request that the guard has let through; a new one where none is needed."""
        found = request.cookies.get(self.options.cookie)
        if found is None:
            found = request.scope.setdefault("fanin.session", secrets.token_urlsafe(32))
        return found

    def caller(self, request: Request) -> Caller:
        """Who sent a request, for the action log."""
        found: Caller | None = request.scope.get("fanin.caller")
        return found or Caller(CallerKind.LOCAL, self.options.caller)

    def may(self, request: Request, operation: str) -> bool:
        """Whether the caller may do something; where no tokens are checked, whoever gets here may.

        Args:
            request: the caller's.
            operation: id of the same call in the OpenAPI document.
        """
        groups: frozenset[AccessGroup] | None = request.scope.get("fanin.groups")
        return groups is None or not groups.isdisjoint(route_of(operation).groups)

    def page(
        self, request: Request, template: str, *, status: int = HTTPStatus.OK, **values: Any
    ) -> Response:
        """Answer with a page.

        Args:
            request: what is answered.
            template: file name.
            status: of HTTP.
            values: what the template shows; ``here`` names the part of the navigation that it belongs to.
        """
        session = self.session(request)
        html = self.templates.render(
            template, path=request.url.path, form_token=form_token(session), **values
        )
        answer = HTMLResponse(html, status)
        # Where launch links open sessions, a page opens none: it would take the place of one that is known.
        if not self.options.sessions and self.options.cookie not in request.cookies:
            keep(answer, session, self.options)
        return answer

    def live_page(self, request: Request, shown: LivePage) -> Response:
        """Answer with a page whose parts are live, at the same address below ``/live``."""
        below = quote(request.url.path.removeprefix(self.options.root).rstrip("/") or "/overview")
        live = f"{self.options.root}/live{below}?{request.url.query}".removesuffix("?")

        def part(name: str) -> Markup:
            return self.templates.macro(*shown.parts[name])

        values = {"live": "" if shown.over else live, "part": part, **shown.values}
        return self.page(request, shown.template, **values)


def _readable(read: Callable[[A], T], thing: A) -> tuple[A, T] | None:
    try:
        return thing, read(thing)
    except Exception as error:  # whatever is wrong with one, the others are shown
        if isinstance(error, FaninError) and error.retryable:
            raise
        return None


def console_of(request: Request) -> Console:
    """The console that serves a request."""
    found: Console = request.app.state.console
    return found


LATEST: Final = 30.0
"""Seconds until a page asks again if nothing has changed for long."""
LATEST_AFTER_ERRORS: Final = 60.0
SLOWER: Final = 1.5
TYPE: Final = "text/event-stream"
ID: Final = "Last-Event-ID"
"""Header in which a browser that asks again repeats the id of the last event (HTML Standard, 9.2.4)."""
_MOST_SAME: Final = 99
_MEMORY: Final = re.compile(r"([0-9a-f]{16})\.([0-9]{1,3})")


def events(read: Callable[[], LivePage], macro: Callable[..., str], *, last: str, soonest: float) -> Response:
    """Answer with the parts of a page as an event, ``view`` or ``trouble``, and ``over`` if it was the last.

    A page asks again for what it shows, later and later while nothing changes. Nothing here remembers what a
    browser has seen. So the id of the event says it: a digest of the facts, and how often they were the same.

    Args:
        read: reads the page; blocking.
        macro: makes the inner HTML of a part.
        last: id of the last event that the browser has; empty if it has none.
        soonest: seconds until it asks again while something changes.
    """
    try:
        shown = read()
        html = {name: macro(*part) for name, part in shown.parts.items()}
    except FaninError as error:  # a browser gives up after an answer that is not 200
        seen, same = _seen("trouble", last)
        again = min(LATEST_AFTER_ERRORS, max(error.retry_after or 0, soonest * SLOWER**same))
        told = _event("trouble", {"text": str(error), "seconds": again})
    else:
        seen, same = _seen(shown.facts, last)
        again = min(LATEST, soonest * SLOWER**same)
        told = _event("view", html) + (_event("over", {}) if shown.over else "")
    return Response(f"retry: {again * 1000:.0f}\nid: {seen}.{same}\n\n{told}", media_type=TYPE)


def _seen(facts: Hashable, last: str) -> tuple[str, int]:
    """A digest of the facts, and how often in a row a browser has had them before."""
    digest = sha256(repr(facts).encode(errors="surrogatepass")).hexdigest()[:16]
    before = _MEMORY.fullmatch(last)
    return digest, min(int(before[2]) + 1, _MOST_SAME) if before and before[1] == digest else 0


def _event(name: str, data: dict[str, Any]) -> str:
    # JSON has no line ends outside of its strings, and in them they are escaped.
    return f"event: {name}\ndata: {json.dumps(data)}\n\n"


def live_route(path: str, read: Callable[[Request], LivePage]) -> Route:
    """The route of the parts of a page.

    Args:
        path: of the page.
        read: reads what a request is for; blocking.
    """

    def live(request: Request) -> Response:
        console, last = console_of(request), request.headers.get(ID, "")
        macro, soonest = console.templates.macro, console.options.every
        return events(partial(read, request), macro, last=last, soonest=soonest)

    return Route(f"/live{path}", live)


def live_routes(
    path: str, read: Callable[[Request], LivePage], again: Callable[[Request], LivePage] | None = None
) -> tuple[Route, Route]:
    """The routes of a page and of its parts.

    Args:
        path: of the page.
        read: reads what a request is for; blocking.
        again: the same, while somebody looks at the page; ``read`` by default.
    """

    def page(request: Request) -> Response:
        return console_of(request).live_page(request, read(request))

    return Route(path, page), live_route(path, again or read)


def status_of(error: FaninError) -> int:
    """The status of HTTP that a page about an error has."""
    return error.status or HTTPStatus.INTERNAL_SERVER_ERROR


_DIGITS: Final = 16
"""Of the largest batch id, which is below 2^53; ordinals and numbers of words have no more."""


def id_in(request: Request, name: str = "batch_id") -> int:
    """The id, or ordinal, that a segment of the path names.

    Raises:
        BatchNotFound: it is not a number that an id can be.
    """
    text: str = request.path_params[name]
    if not _is_number(text):
        raise BatchNotFound(f"{text[:32]!r} is not an id; ids are numbers of up to {_DIGITS} digits")
    return int(text)


def natural(what: str, text: str | None) -> int | None:
    """The whole number that a text is; None if there is none.

    Args:
        what: the number, as an error names it.
        text: a parameter, or a segment of the path.

    Raises:
        InvalidRequest: it is not a whole number from 0 on.
    """
    if not text:
        return None
    if not _is_number(text):
        raise InvalidRequest(f"{what} is a whole number, not {text[:32]!r}")
    return int(text)


def cursor_in(request: Request) -> str | None:
    """Where the page of a listing begins; None at its beginning."""
    return request.query_params.get("cursor") or None


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) <= _DIGITS
