"""Frames: their list, and one of them with its missing envelopes."""

from dataclasses import dataclass
from functools import partial
from typing import Final

from starlette.requests import Request

from fanin.console.pages.batches import SIZES, BatchSection, routes
from fanin.console.pages.progress import Row, sampled
from fanin.console.state import LivePage, console_of, cursor_in, id_in, live_routes
from fanin.domain.batch import Kind, State
from fanin.domain.frames import Frame

FRAMES: Final = BatchSection("frames", Kind.FRAME, State.CLOSED, "fanin frame open ENVELOPES", SIZES[:2])
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


def frame(request: Request, *, watched: bool = False) -> LivePage:
    """Read the page: two calls, or one if a large frame is watched."""
    console, frame_id, cursor = console_of(request), id_in(request), cursor_in(request)
    row = sampled(console, console.fanin.ledger.status(frame_id))
    listed = not watched or row.batch.items <= LISTED_LIVE
    found = (
        console.fanin.frames.status(frame_id, cursor=cursor, limit=SHOWN) if listed else Frame.of(row.batch)
    )
    shown = ShownFrame(found, row, cursor)
    parts = ("progress", "missing") if listed else ("progress",)
    return LivePage(
        "frame.html",
        {part: ("frames_parts.html", part, shown) for part in parts},
        (found.state, found.missing, row.done, row.batch.failed),
        row.batch.state.terminal,
        {"here": "frames", "shown": shown},
    )


ROUTES: Final = (*routes(FRAMES), *live_routes("/frames/{batch_id}", frame, partial(frame, watched=True)))
