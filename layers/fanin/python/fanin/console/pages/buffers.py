"""Buffers: how full each is, drawn as a gauge, and one of them with its queue and its batch."""

from __future__ import annotations

from dataclasses import dataclass
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


@dataclass(frozen=True, slots=True)
class Gauge:
    """How full a buffer is."""

    level: Level

    @property
    def waiting(self) -> int:
        """Payloads that nobody has taken."""
        return self.level.pending - self.level.taken

    @property
    def free(self) -> int:
        return max(0, self.level.buffer.limit - self.level.pending)

    @property
    def full(self) -> bool:
        return not self.free

    @property
    def consumers(self) -> int | None:
        """Consumers that wait for work; None where work waits for them, and nobody counts them."""
        return -self.level.count if self.level.count <= 0 else None


@dataclass(frozen=True, slots=True)
class BufferList:
    """One page of buffers.

    Attributes:
        gauges: how full they are.
        unreadable: names of those that cannot be read: their record is damaged, or their queue is gone.
        cursor: of the next page; None at the end.
    """

    gauges: tuple[Gauge, ...]
    unreadable: tuple[str, ...]
    cursor: str | None


@dataclass(frozen=True, slots=True)
class ShownBuffer:
    """One buffer, and the row of its batch; None if that is gone."""

    gauge: Gauge
    batch: Batch | None


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


def listing(console: Console, cursor: str | None) -> BufferList:
    """Read one page: one call, and one for each buffer of it."""
    page = console.fanin.buffers.list(cursor=cursor, limit=SHOWN)
    levels, unreadable = levels_of(console, page)
    return BufferList(tuple(map(Gauge, levels)), unreadable, page.cursor)


def buffer_shown(console: Console, name: str) -> ShownBuffer:
    """Read one buffer: two calls."""
    level = console.fanin.buffers.status(name)
    try:
        batch = console.fanin.ledger.status(level.buffer.batch_id).batch
    except GONE:
        batch = None
    return ShownBuffer(Gauge(level), batch)


def view(request: Request) -> View:
    """The live part of the list."""
    console = console_of(request)
    shown = listing(console, cursor_in(request))
    html = console.templates.macro("buffers_parts.html", "listing", shown)
    return View({"buffers": html}, (tuple(map(_facts, shown.gauges)), shown.unreadable))


def view_of(request: Request) -> View:
    """The live part of the page of one buffer."""
    console = console_of(request)
    shown = buffer_shown(console, request.path_params["name"])
    html = console.templates.macro("buffers_parts.html", "large", shown)
    return View({"buffer": html}, (_facts(shown.gauge), None if shown.batch is None else shown.batch.failed))


def _facts(one: Gauge) -> tuple[object, ...]:
    level = one.level
    return level.buffer, level.pending, level.taken, level.count, level.draining


def buffers(request: Request) -> Response:
    console = console_of(request)
    cursor = cursor_in(request)
    return console.page(
        request,
        "buffers.html",
        here="buffers",
        listing=listing(console, cursor),
        rejects=REJECTS,
        live=console.templates.url("live", "buffers", cursor=cursor),
    )


def buffer(request: Request) -> Response:
    console = console_of(request)
    name = request.path_params["name"]
    return console.page(
        request,
        "buffer.html",
        here="buffers",
        shown=buffer_shown(console, name),
        rejects=REJECTS,
        live=console.templates.url("live", "buffers", name),
    )


ROUTES: Final = (
    Route("/buffers", buffers),
    Route("/buffers/{name}", buffer),
    live_of("/buffers", view),
    live_of("/buffers/{name}", view_of),
)
