"""The first page: is anything wrong, how much is going on, how full are the buffers."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Final

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from fanin.console.pages.patterns import buffer_levels
from fanin.console.pages.progress import Row, rows_of
from fanin.console.state import Console, LivePage, console_of, live_route
from fanin.domain.batch import LIVE, Kind, State
from fanin.domain.buffer import Level
from fanin.domain.reports import Attention, Troubled

LOOKED_AT: Final = 100
"""Live batches of each state among which those that are shown are found."""
COUNT_EVERY_MS: Final = 10_000
"""How often batches are counted at most, while somebody watches: 100,000 of them take 1,250 reads at most."""
SHOWN: Final = 12
"""Batches that a list of the page shows."""
PAGE: Final = 50
"""Batches that a further page of those that need attention shows at most."""


@dataclass(frozen=True, slots=True)
class Overview:
    """What the page shows.

    Attributes:
        counts: state → number of batches, and whether there are more.
        troubles: what is wrong → how many batches, in all, as text.
        attention: what somebody should look at, the most urgent first: how far it is, and what is said of it.
        running: live batches without trouble, the newest first.
        buffers: how full the first buffers are.
        unreadable: names of those of them that cannot be read.
        cursor: of the rest of what needs attention; None if there is no more.
    """

    counts: Mapping[State, tuple[int, bool]]
    troubles: Mapping[str, str]
    attention: tuple[tuple[Row, Troubled], ...]
    running: tuple[Row, ...]
    buffers: tuple[Level, ...]
    unreadable: tuple[str, ...] = ()
    cursor: str | None = None

    @property
    def empty(self) -> bool:
        """Whether there is no batch at all."""
        return not any(count for count, _ in self.counts.values())


class Counter:
    """Counts batches by state, not more often than need be. Threads share it."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._found: Mapping[State, tuple[int, bool]] = {}
        self._at = 0

    def read(self, *, fresh: bool) -> Mapping[State, tuple[int, bool]]:
        """State → number of batches, and whether there are more.

        Args:
            fresh: whether somebody has asked for the page just now, and gets what is true now.
        """
        now = self._console.now()
        if fresh or now - self._at >= COUNT_EVERY_MS:
            found = self._console.fanin.ledger.counts()
            self._found = {state: (found.states.get(state, 0), state in found.at_least) for state in State}
            self._at = now
        return self._found


def overview(console: Console, *, fresh: bool = True) -> Overview:
    """Read what the page shows: counts, what needs attention, what runs, a status of what is shown."""
    counts = console.remembered("counts", lambda: Counter(console)).read(fresh=fresh)
    pages = console.calls.map(partial(console.fanin.ledger.list, limit=LOOKED_AT), LIVE)
    attention = console.fanin.diagnostics.attention(limit=SHOWN)
    troubled = _troubled(console, attention)
    bad = {one.batch.batch_id for one in attention.batches}
    # A buffer's batch never ends, and what is in it is shown with the buffer.
    others = (
        batch
        for page in pages
        for batch in page.batches
        if batch.kind is not Kind.BUFFER and batch.batch_id not in bad and batch.attention is None
    )
    newest = sorted(others, key=lambda batch: -batch.created_at)[:SHOWN]
    levels, unreadable, _ = buffer_levels(console, limit=SHOWN)
    running = tuple(rows_of(console, newest))
    return Overview(counts, _in_all(attention), troubled, running, levels, unreadable, attention.cursor)


def _troubled(console: Console, attention: Attention) -> tuple[tuple[Row, Troubled], ...]:
    rows = rows_of(console, [one.batch for one in attention.batches])
    return tuple(zip(rows, attention.batches, strict=True))


def _in_all(attention: Attention) -> Mapping[str, str]:
    bound = dict.fromkeys(attention.at_least, "at least ")
    return {trouble: f"{bound.get(trouble, '')}{count:,}" for trouble, count in attention.counts.items()}


def troubles(request: Request) -> Response:
    """The pages of what needs attention behind the first."""
    console = console_of(request)
    page = console.fanin.diagnostics.attention(cursor=request.query_params.get("cursor"), limit=PAGE)
    found = (_troubled(console, page), _in_all(page), page.cursor)
    return console.page(request, "attention.html", here="overview", found=found)


def first(request: Request, *, watched: bool = False) -> LivePage:
    """Read the first page."""
    shown = overview(console_of(request), fresh=not watched)
    rows = (*(row for row, _ in shown.attention), *shown.running)
    facts = (
        tuple(shown.counts.values()),
        tuple(shown.troubles.items()),
        tuple((row.batch.batch_id, row.batch.state, row.done, row.batch.failed) for row in rows),
        tuple((level.buffer.name, level.pending, level.taken) for level in shown.buffers),
        shown.unreadable,
    )
    parts = {"overview": ("overview_parts.html", "overview", shown)}
    return LivePage("overview.html", parts, facts, values={"here": "overview"})


def home(request: Request) -> Response:
    return console_of(request).live_page(request, first(request))


ROUTES: Final = (
    Route("/", home),
    Route("/attention", troubles),
    live_route("/overview", partial(first, watched=True)),
)
