"""Frames: their list, and one of them with its missing envelopes."""

from functools import partial
from typing import Final

from starlette.requests import Request

from fanin.console.pages.batches import SIZES, BatchSection, routes
from fanin.console.pages.progress import sampled
from fanin.console.state import LivePage, Part, console_of, cursor_in, id_in, live_routes
from fanin.domain.batch import Kind, State
from fanin.domain.frames import Frame

FRAMES: Final = BatchSection("frames", Kind.FRAME, State.CLOSED, "fanin frame open ENVELOPES", SIZES[:2])
SHOWN: Final = 100
"""Ranges of missing envelopes of a page."""
LISTED_LIVE: Final = 6_400
"""Envelopes of a frame whose missing ranges are read again and again; a larger one has many rows."""


def frame(request: Request, *, watched: bool = False) -> LivePage:
    """Read the page: two calls, or one if a large frame is watched."""
    console, frame_id, cursor = console_of(request), id_in(request), cursor_in(request)
    row = sampled(console, console.fanin.ledger.status(frame_id))
    large = row.batch.items > LISTED_LIVE
    found = Frame.of(row.batch)
    parts: dict[str, Part] = {}
    if not (watched and large):
        found = console.fanin.frames.status(frame_id, cursor=cursor, limit=SHOWN)
        parts["missing"] = ("frames_parts.html", "missing", found, cursor, large)
    parts["progress"] = ("frames_parts.html", "progress", row, found)
    return LivePage(
        "frame.html",
        parts,
        (found.state, found.missing, row.done, row.batch.failed),
        row.batch.state.terminal,
        {"here": "frames", "batch": row.batch, "frame": found},
    )


ROUTES: Final = (*routes(FRAMES), *live_routes("/frames/{batch_id}", frame, partial(frame, watched=True)))
