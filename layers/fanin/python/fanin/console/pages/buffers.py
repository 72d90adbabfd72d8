"""Buffers: how full each is, drawn as a gauge, and one of them with its queue and its batch."""

from functools import partial
from typing import Final

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from fanin import names
from fanin.console.feeds import View
from fanin.console.state import Console, Unreadable, console_of, cursor_in, live_of
from fanin.domain.batch import Batch
from fanin.domain.buffer import BufferPage, Level
from fanin.errors import GONE, BufferNotFound

REJECTS: Final = (names.METRIC_BUFFER_REJECTS, names.METRICS_NAMESPACE)
"""The metric that counts refused puts, and its namespace: no call of the service says how many there were."""
SHOWN: Final = 24
"""Buffers of a page; each is asked how full it is."""


def levels_of(console: Console, page: BufferPage) -> tuple[tuple[Level, ...], tuple[str, ...]]:
    """How full the buffers of a page are, without those that were deleted meanwhile.

    Returns:
        That; and the names of those that cannot be read.
    """
    listed = [buffer.name for buffer in page.buffers]
    found = console.each(partial(_level, console), listed)
    bad = (name for name, level in zip(listed, found, strict=True) if isinstance(level, Unreadable))
    return tuple(level for level in found if isinstance(level, Level)), (*page.unreadable, *bad)


def _level(console: Console, name: str) -> Level | None:
    try:
        return console.fanin.buffers.status(name)
    except BufferNotFound:
        return None


def listing(console: Console, cursor: str | None) -> tuple[tuple[Level, ...], tuple[str, ...], str | None]:
    """Read one page: one call, and one for each buffer of it.

    Returns:
        How full they are; names of those that cannot be read: their record is damaged, or their queue is
        gone; the cursor of the next page.
    """
    page = console.fanin.buffers.list(cursor=cursor, limit=SHOWN)
    return *levels_of(console, page), page.cursor


def buffer_shown(console: Console, name: str) -> tuple[Level, Batch | None]:
    """Read one buffer, and the row of its batch, which may be gone: two calls."""
    level = console.fanin.buffers.status(name)
    try:
        return level, console.fanin.ledger.status(level.buffer.batch_id).batch
    except GONE:
        return level, None


def view(request: Request) -> View:
    """The live part of the list."""
    console = console_of(request)
    shown = levels, unreadable, _ = listing(console, cursor_in(request))
    html = console.templates.macro("buffers_parts.html", "listing", *shown)
    return View({"buffers": html}, (levels, unreadable))


def view_of(request: Request) -> View:
    """The live part of the page of one buffer."""
    console = console_of(request)
    shown = level, batch = buffer_shown(console, request.path_params["name"])
    html = console.templates.macro("buffers_parts.html", "large", *shown)
    return View({"buffer": html}, (level, None if batch is None else batch.failed))


def buffers(request: Request) -> Response:
    console = console_of(request)
    levels, unreadable, cursor = listing(console, cursor_in(request))
    return console.page(
        request,
        "buffers.html",
        here="buffers",
        levels=levels,
        unreadable=unreadable,
        cursor=cursor,
        rejects=REJECTS,
        live=True,
    )


def buffer(request: Request) -> Response:
    console = console_of(request)
    level, batch = buffer_shown(console, request.path_params["name"])
    return console.page(
        request, "buffer.html", here="buffers", level=level, batch=batch, rejects=REJECTS, live=True
    )


ROUTES: Final = (
    Route("/buffers", buffers),
    Route("/buffers/{name}", buffer),
    live_of("/buffers", view),
    live_of("/buffers/{name}", view_of),
)
