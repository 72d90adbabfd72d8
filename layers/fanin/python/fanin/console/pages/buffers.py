"""Buffers: how full each is, drawn as a gauge, and one of them with its queue and its batch."""

from contextlib import suppress
from functools import partial
from typing import Final

from starlette.requests import Request

from fanin import names
from fanin.console.state import Console, LivePage, console_of, cursor_in, live_routes
from fanin.domain.buffer import Level
from fanin.errors import GONE, BufferNotFound

REJECTS: Final = (names.METRIC_BUFFER_REJECTS, names.METRICS_NAMESPACE)
"""The metric that counts refused puts, and its namespace: no call of the service says how many there were."""
SHOWN: Final = 24
"""Buffers of a page; each is asked how full it is."""


def listing(
    console: Console, cursor: str | None = None, limit: int = SHOWN
) -> tuple[tuple[Level, ...], tuple[str, ...], str | None]:
    """Read one page: one call, and one for each buffer of it.

    Returns:
        How full they are, without those that were deleted meanwhile; names of those that cannot be read:
        their record is damaged, or their queue is gone; the cursor of the next page.
    """
    page = console.fanin.buffers.list(cursor=cursor, limit=limit)
    listed = [buffer.name for buffer in page.buffers]
    found = dict(console.each(partial(_level, console), listed))
    bad = (name for name in listed if name not in found)
    levels = tuple(level for level in found.values() if level is not None)
    return levels, (*page.unreadable, *bad), page.cursor


def _level(console: Console, name: str) -> Level | None:
    try:
        return console.fanin.buffers.status(name)
    except BufferNotFound:
        return None


def buffers(request: Request) -> LivePage:
    """Read the list."""
    shown = levels, unreadable, _ = listing(console_of(request), cursor_in(request))
    return LivePage(
        "buffers.html",
        {"buffers": ("buffers_parts.html", "listing", *shown)},
        (levels, unreadable),
        values={"here": "buffers", "rejects": REJECTS},
    )


def buffer(request: Request) -> LivePage:
    """Read one buffer, and the row of its batch, which may be gone: two calls."""
    console = console_of(request)
    level, batch = console.fanin.buffers.status(request.path_params["name"]), None
    with suppress(*GONE):
        batch = console.fanin.ledger.status(level.buffer.batch_id).batch
    return LivePage(
        "buffer.html",
        {"buffer": ("buffers_parts.html", "large", level, batch)},
        (level, None if batch is None else batch.failed),
        values={"here": "buffers", "level": level, "rejects": REJECTS},
    )


ROUTES: Final = (*live_routes("/buffers", buffers), *live_routes("/buffers/{name}", buffer))
