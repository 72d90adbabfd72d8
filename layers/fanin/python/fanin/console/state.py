"""What all pages of one console share, and what they read in an address."""

import secrets
import threading
import time
from collections.abc import Callable, Hashable, Iterable
from concurrent.futures import Executor, ThreadPoolExecutor
from functools import partial
from http import HTTPStatus
from typing import Any, Final, NamedTuple, TypeVar
from urllib.parse import quote

from starlette.requests import Request
from starlette.responses import HTMLResponse, Response
from starlette.routing import Route

from fanin.app.api import Fanin
from fanin.console.actions.log import Log
from fanin.console.feeds import ID, View, events
from fanin.console.options import Options
from fanin.console.rendering import Templates
from fanin.console.samples import Samples
from fanin.console.sessions import Sessions, form_token, keep
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


def _now() -> int:
    return time.time_ns() // 1_000_000


class Unreadable(NamedTuple):
    """What is shown in place of something that cannot be read."""

    why: str


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

    def __init__(self, fanin: Fanin, options: Options, *, now: Callable[[], int] = _now) -> None:
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

    def each(self, read: Callable[[A], T], things: Iterable[A]) -> list[T | Unreadable]:
        """Read each of some things, several at a time. One that cannot be read hides none of the others.

        Raises:
            FaninError: the service is overloaded or cannot be reached; that says nothing about a thing.
        """
        return list(self.calls.map(partial(_readable, read), things))

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
        self,
        request: Request,
        template: str,
        *,
        status: int = HTTPStatus.OK,
        live: bool = False,
        **values: Any,
    ) -> Response:
        """Answer with a page.

        Args:
            request: what is answered.
            template: file name.
            status: of HTTP.
            live: whether something of it is live, at the same address below ``/live``.
            values: what the template shows; ``here`` names the part of the navigation that it belongs to.
        """
        session, path = self.session(request), request.url.path
        if live:
            below = quote(path.removeprefix(self.options.root).rstrip("/") or "/overview")
            values["live"] = f"{self.options.root}/live{below}?{request.url.query}".removesuffix("?")
        html = self.templates.render(template, path=path, form_token=form_token(session), **values)
        answer = HTMLResponse(html, status)
        # Where launch links open sessions, a page opens none: it would take the place of one that is known.
        if not self.options.sessions and self.options.cookie not in request.cookies:
            keep(answer, session, self.options)
        return answer


def _readable(read: Callable[[A], T], thing: A) -> T | Unreadable:
    try:
        return read(thing)
    except Exception as error:  # whatever is wrong with one, the others are shown
        if isinstance(error, FaninError) and error.retryable:
            raise
        return Unreadable(f"{type(error).__name__}: {error}")


def console_of(request: Request) -> Console:
    """The console that serves a request."""
    found: Console = request.app.state.console
    return found


def live_of(path: str, view: Callable[[Request], View]) -> Route:
    """The route of what is live of a page.

    Args:
        path: of the page.
        view: reads what a request is for; blocking.
    """

    def live(request: Request) -> Response:
        soonest = console_of(request).options.every
        return events(partial(view, request), last=request.headers.get(ID, ""), soonest=soonest)

    return Route(f"/live{path}", live)


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
