"""Frames: their list, and one of them with its missing envelopes."""

from dataclasses import dataclass
from typing import Final

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from fanin.console.feeds import View
from fanin.console.pages.batches import SIZES, BatchSection, routes
from fanin.console.pages.progress import Row, sampled
from fanin.console.state import Console, console_of, cursor_in, id_in, live_of
from fanin.domain.batch import Kind, State
from fanin.domain.frames import Frame

FRAMES: Final = BatchSection(
    "frames", "Frames", "frames_parts.html", Kind.FRAME, State.CLOSED, "fanin frame open ENVELOPES", SIZES[:2]
)
SHOWN: Final = 100
"""Ranges of missing envelopes of a page."""
LISTED_LIVE: Final = 6_400
"""Envelopes of a frame whose missing ranges are read again and again; a larger one has many rows."""


@dataclass(frozen=True, slots=True)
class ShownFrame:
    """What the page shows.

    Attributes:
        frame: the frame, and a page of its missing envelopes.
        row: how far it is.
        begin: cursor of the page; None at the beginning.
    """

    frame: Frame
    row: Row
    begin: str | None

    @property
    def large(self) -> bool:
        """Whether its missing envelopes are listed once, when the page is loaded."""
        return self.frame.size > LISTED_LIVE

    @property
    def over(self) -> bool:
        return self.frame.state.terminal and self.row.batch.state.terminal


def frame_shown(console: Console, frame_id: int, cursor: str | None) -> ShownFrame:
    """Read what the page shows: two calls."""
    progress = console.calls.submit(console.fanin.ledger.status, frame_id)
    found = console.fanin.frames.status(frame_id, cursor=cursor, limit=SHOWN)
    return ShownFrame(found, sampled(console, progress.result()), cursor)


def view(request: Request) -> View:
    """The live part of the page."""
    console, frame_id, cursor = console_of(request), id_in(request), cursor_in(request)
    row = sampled(console, console.fanin.ledger.status(frame_id))
    shown = ShownFrame(Frame.of(row.batch), row, cursor)
    parts = ["progress"]
    if not shown.large:
        found = console.fanin.frames.status(frame_id, cursor=cursor, limit=SHOWN)
        shown = ShownFrame(found, row, cursor)
        parts.append("missing")
    fragments = {part: console.templates.macro("frames_parts.html", part, shown) for part in parts}
    facts = (shown.frame.state, shown.frame.missing, row.done, row.batch.failed)
    return View(fragments, facts, over=shown.over)


def frame(request: Request) -> Response:
    console = console_of(request)
    shown = frame_shown(console, id_in(request), cursor_in(request))
    return console.page(request, "frame.html", here="frames", shown=shown, live=not shown.over)


ROUTES: Final = (*routes(FRAMES), Route("/frames/{batch_id}", frame), live_of("/frames/{batch_id}", view))
