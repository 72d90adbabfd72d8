"""The first page: is anything wrong, how much is going on, how full are the buffers."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Final

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from fanin.console.live.feeds import View
from fanin.console.live.stream import events
from fanin.console.pages.buffers import levels_of
from fanin.console.pages.progress import Row, rows_of
from fanin.console.state import Console, console_of
from fanin.domain.batch import LIVE, Batch, State
from fanin.domain.buffer import Level
from fanin.domain.reports import Batches

COUNTED: Final = 100
"""Batches of a state that are counted; of more, the page says that there are more."""
SHOWN: Final = 12
"""Batches that a list of the page shows."""
RECENT_MS: Final = 86_400_000
"""How long ago a batch ended that is still worth attention."""


@dataclass(frozen=True, slots=True)
class Attention:
    """A batch that somebody should look at, and why, in words."""

    row: Row
    why: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Overview:
    """What the page shows.

    Attributes:
        counts: state → number of batches, and whether there are more.
        attention: what somebody should look at.
        running: live batches without trouble, the newest first.
        buffers: how full the first buffers are.
    """

    counts: dict[State, tuple[int, bool]]
    attention: tuple[Attention, ...]
    running: tuple[Row, ...]
    buffers: tuple[Level, ...]


def trouble(batch: Batch, now: int) -> tuple[str, ...]:
    """What is wrong with a batch as far as its row says, in words; the worst first."""
    found: list[str] = []
    if batch.state.terminal:
        if batch.state is not State.COMPLETE:
            found.append(str(batch.state).replace("_", " "))
        elif batch.partial:
            found.append("completed with items missing")
    else:
        if batch.stalls and now >= batch.touched_at + batch.step + batch.stall_after * 1000:
            found.append("stalled")
        if batch.deadline is not None and now > batch.deadline:
            found.append("past its deadline")
    if batch.held:
        found.append(f"{batch.held:,} held")
    if batch.failed:
        found.append(f"{batch.failed:,} failed")
    return tuple(found)


def overview(console: Console) -> Overview:
    """Read what the page shows: one listing of each state, a status of each live batch that is shown."""
    now = console.now()
    pages = dict(zip(State, console.calls.map(partial(_first, console), State), strict=True))
    counts = {state: (len(page.batches), page.cursor is not None) for state, page in pages.items()}
    live = [batch for state in LIVE for batch in pages[state].batches]
    ended = [
        batch
        for state, page in pages.items()
        if state.terminal
        for batch in page.batches
        if now - (batch.ended_at or 0) <= RECENT_MS
    ]
    bad = sorted((batch for batch in (*live, *ended) if trouble(batch, now)), key=_newest)[:SHOWN]
    well = sorted((batch for batch in live if not trouble(batch, now)), key=_newest)[:SHOWN]
    rows = rows_of(console, [*bad, *well])
    attention = tuple(Attention(row, trouble(row.batch, now)) for row in rows[: len(bad)])
    return Overview(counts, attention, tuple(rows[len(bad) :]), _levels(console))


def _first(console: Console, state: State) -> Batches:
    return console.fanin.ledger.list(state, limit=COUNTED)


def _newest(batch: Batch) -> int:
    return -batch.created_at


def _levels(console: Console) -> tuple[Level, ...]:
    return levels_of(console, [buffer.name for buffer in console.fanin.buffers.list(limit=SHOWN).buffers])


def view(console: Console) -> View:
    """The live part of the page."""
    shown = overview(console)
    rows = (*(one.row for one in shown.attention), *shown.running)
    facts = (
        tuple(shown.counts.values()),
        tuple((row.batch.batch_id, row.batch.state, row.done, row.batch.failed) for row in rows),
        tuple((level.buffer.name, level.pending, level.taken) for level in shown.buffers),
    )
    return View({"overview": console.templates.macro("overview_parts.html", "overview", shown)}, facts)


def home(request: Request) -> Response:
    console = console_of(request)
    return console.page(
        request,
        "overview.html",
        here="overview",
        overview=overview(console),
        live=console.templates.url("live", "overview"),
    )


async def live(request: Request) -> Response:
    console = console_of(request)
    return events(console.feeds, "overview", partial(view, console), streams=console.options.streams)


ROUTES: Final = (
    Route("/", home),
    Route("/live/overview", live),
)
