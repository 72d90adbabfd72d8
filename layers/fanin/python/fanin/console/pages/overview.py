"""The first page: is anything wrong, how much is going on, how full are the buffers."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Final

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from fanin.console.actions.progress import state_of
from fanin.console.live.feeds import View
from fanin.console.pages.buffers import levels_of
from fanin.console.pages.progress import Row, rows_of
from fanin.console.state import Console, Unreadable, console_of
from fanin.domain.batch import LIVE, Batch, Kind, State
from fanin.domain.buffer import Level
from fanin.domain.reports import Batches

COUNTED: Final = 100
"""Batches of a state that are counted; of more, the page says that there are more."""
SHOWN: Final = 12
"""Batches that a list of the page shows."""
IDLE_MS: Final = 60_000
"""How long an open batch may have all its items done before somebody should look."""
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
        unreadable: names of those of them that cannot be read.
        looked_at: how many batches of a state were looked at, at most.
    """

    counts: dict[State, tuple[int, bool]]
    attention: tuple[Attention, ...]
    running: tuple[Row, ...]
    buffers: tuple[Level, ...]
    unreadable: tuple[str, ...] = ()
    looked_at: int = COUNTED

    @property
    def empty(self) -> bool:
        """Whether there is no batch at all."""
        return not any(count for count, _ in self.counts.values())


def trouble(batch: Batch, now: int, *, done: int | None = None, redriven: int = 0) -> tuple[str, ...]:
    """What is wrong with a batch, in words; the worst first.

    Args:
        batch: its row.
        now: ms since the epoch.
        done: how many items are done, if that is known.
        redriven: how many of its failures were sent again.
    """
    found: list[str] = []
    if batch.state.terminal:
        if batch.state is not State.COMPLETE:
            found.append(state_of(batch))
        elif batch.partial:
            found.append("completed with items missing")
    else:
        if batch.quiet_at is not None and batch.quiet_at <= now:
            found.append("stalled")
        if batch.deadline is not None and now > batch.deadline:
            found.append("past its deadline")
        forgotten = batch.state is State.OPEN and batch.kind is Kind.BATCH and now - batch.active_at > IDLE_MS
        if forgotten and done == batch.items > 0:
            found.append("all done, but not closed")
    if batch.held:
        found.append(f"{'at least ' if batch.may_hold_more else ''}{batch.held:,} held")
    if batch.failed > redriven:
        again = f", {redriven:,} of them sent again" if redriven else ""
        found.append(f"{batch.failed:,} failed{again}")
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
    # A buffer's batch never ends, and what is in it is shown with the buffer.
    others = (batch for batch in live if batch.kind is not Kind.BUFFER and batch not in bad)
    rows = rows_of(console, [*bad, *sorted(others, key=_newest)[:SHOWN]])
    again = console.each(partial(_redriven, console), [row.batch for row in rows])
    found = [
        Attention(row, trouble(row.batch, now, done=row.done, redriven=_known(redriven)))
        for row, redriven in zip(rows, again, strict=True)
    ]
    running = tuple(one.row for one in found if not one.why and not one.row.batch.state.terminal)
    first = console.fanin.buffers.list(limit=SHOWN)
    levels, unreadable = levels_of(console, first)
    return Overview(counts, tuple(one for one in found if one.why), running, levels, unreadable)


def _redriven(console: Console, batch: Batch) -> int:
    """How many failures of an ended batch were sent again."""
    if not batch.state.terminal or not batch.failed:
        return 0
    return sum(run.items for run in console.fanin.redrives.redrives(batch.batch_id).redrives)


def _known(redriven: int | Unreadable) -> int:
    return 0 if isinstance(redriven, Unreadable) else redriven


def _first(console: Console, state: State) -> Batches:
    return console.fanin.ledger.list(state, limit=COUNTED)


def _newest(batch: Batch) -> int:
    return -batch.created_at


def view(console: Console) -> View:
    """The live part of the page."""
    shown = overview(console)
    rows = (*(one.row for one in shown.attention), *shown.running)
    facts = (
        tuple(shown.counts.values()),
        tuple((row.batch.batch_id, row.batch.state, row.done, row.batch.failed) for row in rows),
        tuple((level.buffer.name, level.pending, level.taken) for level in shown.buffers),
        shown.unreadable,
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
    return console.follow(request, "overview", partial(view, console))


ROUTES: Final = (
    Route("/", home),
    Route("/live/overview", live),
)
