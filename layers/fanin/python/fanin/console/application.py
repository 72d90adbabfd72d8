"""The application: its routes, and the guard in front of them."""

import re
from collections.abc import Callable
from http import HTTPStatus
from itertools import chain
from typing import Final

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Mount, Route
from starlette.staticfiles import StaticFiles

from fanin.adapters.system import SystemClock
from fanin.app.api import Fanin
from fanin.console.guard import HEADERS, NEVER_STORED, STORED_FOR_A_YEAR, Guard
from fanin.console.options import Options
from fanin.console.pages import (
    actions,
    batch,
    batches,
    bulk,
    directory,
    events,
    failures,
    overview,
    patterns,
    picture,
    tabs,
)
from fanin.console.rendering import HERE
from fanin.console.state import Console, console_of, status_of
from fanin.errors import FaninError

_PAGES: Final = (
    overview,
    batches,
    bulk,
    actions,
    patterns,
    directory,
    batch,
    failures,
    tabs,
    events,
    picture,
)
ROUTES: Final[tuple[Route, ...]] = tuple(chain.from_iterable(page.ROUTES for page in _PAGES))
_INSIDE: Final = re.compile(r"/batches/(\d{1,16})/.", re.ASCII)
"""An address below that of a batch."""


def console(
    fanin: Fanin, options: Options | None = None, *, now: Callable[[], int] | None = None
) -> Starlette:
    """Make a console.

    Args:
        fanin: the eight services that it shows.
        options: what it may do, and where it is served.
        now: tells the time, ms since the epoch; the machine's by default.

    Returns:
        The application; ``state.console`` has what its pages share.
    """
    options = options or Options()
    root = options.root
    shared = Console(fanin, options, now=now or SystemClock().now)
    served: list[BaseRoute] = [*ROUTES, Mount("/static", _Static(directory=HERE / "static"))]
    app = Starlette(
        # The path is the first page itself: API Gateway has no route with a slash.
        routes=[Route(root, overview.home), Mount(root, routes=served)] if root else served,
        middleware=[Middleware(Guard, options=options, sessions=shared.sessions)],
        exception_handlers=dict.fromkeys((FaninError, HTTPException, Exception), _not_shown),
    )
    app.state.console = shared
    return app


class _Static(StaticFiles):
    def file_response(self, *given: object, **more: object) -> Response:
        answer = super().file_response(*given, **more)  # type: ignore[arg-type]
        answer.headers["Cache-Control"] = STORED_FOR_A_YEAR
        return answer


def _not_shown(request: Request, error: Exception) -> Response:
    """Show what the service said instead of an answer, or that the console has failed."""
    if isinstance(error, FaninError):
        return _error(request, status_of(error), str(error))
    if isinstance(error, HTTPException):
        absent = error.status_code == HTTPStatus.NOT_FOUND
        return _error(request, error.status_code, "There is no such page." if absent else error.detail)
    # Whoever serves the console logs why. The guard does not see this answer.
    text = "The console has failed. It says more where it runs."
    answer = _error(request, HTTPStatus.INTERNAL_SERVER_ERROR, text)
    answer.headers.update({**HEADERS, "Cache-Control": NEVER_STORED})
    return answer


def _error(request: Request, status: int, text: str) -> Response:
    """A page that says why there is no other, and leads on; from a part of a batch, to the batch."""
    inside = _INSIDE.search(request.url.path)
    return console_of(request).page(
        request,
        "error.html",
        status=status,
        text=text,
        again=status >= HTTPStatus.INTERNAL_SERVER_ERROR,
        batch_id=inside[1] if inside else None,
    )
