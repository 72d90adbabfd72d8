"""Pages of the patterns: scatters and their recipients, frames and what they miss, buffers as gauges."""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Final
from urllib.parse import urlsplit

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from fanin import names
from fanin.console.pages.batches import SIZES, BatchSection, routes
from fanin.console.pages.excerpts import Excerpt, excerpts, shown_json
from fanin.console.pages.progress import sampled
from fanin.console.state import Console, LivePage, Part, console_of, cursor_in, id_in, live_routes
from fanin.domain.batch import Kind, State
from fanin.domain.buffer import Level
from fanin.domain.frames import Frame
from fanin.domain.limits import MAX_REPLIES
from fanin.domain.scatter import FailedRecipient, GatheredReply, MissingRecipient
from fanin.errors import GONE, BufferNotFound

SCATTERS: Final = BatchSection(
    "scatters", Kind.SCATTER, State.CLOSED, "fanin scatter start BODY --topic TOPIC", SIZES[:2]
)
RECIPIENTS: Final = 20
"""Recipients of a section of the page."""
PAYLOAD: Final = 4 * 1024
"""Characters of a reply that are shown."""
REPLIES_ROOM: Final = 36 * 1024
REASONS_ROOM: Final = 12 * 1024
"""Bytes of HTML that all replies, or reasons, of a page may have."""


@dataclass(frozen=True, slots=True)
class Section:
    """Recipients with the same state.

    Attributes:
        name: of its cursor in the address.
        count: how many they are, exactly.
        recipients: those of the page, with what they answered.
        cursor: of the next page.
    """

    name: str
    count: int
    recipients: Sequence[tuple[MissingRecipient | FailedRecipient | GatheredReply, Excerpt | None]]
    cursor: str | None


def _cursors(request: Request) -> dict[str, str | None]:
    """Where each section begins, by its name; None at its beginning."""
    return {name: request.query_params.get(name) or None for name in ("missing", "failed", "replied")}


def scatter(request: Request) -> LivePage:
    """Read the page: four calls.

    The recipients are read in this order, so that one who replies between two calls is shown twice, and
    never left out.
    """
    console, batch_id, cursors = console_of(request), id_in(request), _cursors(request)
    scatters = console.fanin.scatters
    status = console.calls.submit(scatters.status, batch_id)
    missing = scatters.missing_recipients(batch_id, cursor=cursors["missing"], limit=RECIPIENTS)
    failed = scatters.failed_recipients(batch_id, cursor=cursors["failed"], limit=RECIPIENTS)
    replied = scatters.replies(batch_id, cursor=cursors["replied"], limit=RECIPIENTS)
    found = status.result()
    reasons = excerpts([one.reason for one in failed.recipients], most=PAYLOAD, room=REASONS_ROOM)
    texts = ["" if reply.claim is not None else shown_json(reply.payload) for reply in replied.replies]
    payloads = excerpts(texts, most=PAYLOAD, room=REPLIES_ROOM)
    sections = (
        Section("missing", found.missing, [(one, None) for one in missing.recipients], missing.cursor),
        Section("failed", found.failed, [*zip(failed.recipients, reasons, strict=True)], failed.cursor),
        Section("replied", found.received, [*zip(replied.replies, payloads, strict=True)], replied.cursor),
    )
    return LivePage(
        "scatter.html",
        {
            "progress": ("scatters_parts.html", "progress", found),
            "recipients": ("scatters_parts.html", "recipients", found, sections, cursors),
        },
        (found.batch.state, found.received, found.failed, found.recipients, found.retries),
        found.ready,
        {"here": "scatters", "scatter": found},
    )


def payload(request: Request) -> Response:
    """Go to the payload of a reply that was uploaded, at an address that the service signs now.

    Such an address lets anyone read the payload until it expires, so pages do not have it.
    """
    console = console_of(request)
    ordinal, cursor = id_in(request, "ordinal"), _cursors(request)["replied"]
    page = console.fanin.scatters.replies(id_in(request), cursor=cursor, limit=MAX_REPLIES)
    url = next((reply.url for reply in page.replies if reply.ordinal == ordinal), None)
    if url is None or urlsplit(url).scheme not in {"https", "http"}:
        raise HTTPException(404, "This payload cannot be downloaded here. Go back, and load the page again.")
    return RedirectResponse(url, 303)


FRAMES: Final = BatchSection("frames", Kind.FRAME, State.CLOSED, "fanin frame open ENVELOPES", SIZES[:2])
RANGES: Final = 100
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
        found = console.fanin.frames.status(frame_id, cursor=cursor, limit=RANGES)
        parts["missing"] = ("frames_parts.html", "missing", found, cursor, large)
    parts["progress"] = ("frames_parts.html", "progress", row, found)
    return LivePage(
        "frame.html",
        parts,
        (found.state, found.missing, row.done, row.batch.failed),
        row.batch.state.terminal,
        {"here": "frames", "batch": row.batch, "frame": found},
    )


REJECTS: Final = (names.METRIC_BUFFER_REJECTS, names.METRICS_NAMESPACE)
"""The metric that counts refused puts, and its namespace: no call of the service says how many there were."""
BUFFERS: Final = 24
"""Buffers of a page; each is asked how full it is."""


def buffer_levels(
    console: Console, cursor: str | None = None, limit: int = BUFFERS
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
    shown = levels, unreadable, _ = buffer_levels(console_of(request), cursor_in(request))
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


ROUTES: Final = (
    *routes(SCATTERS),
    *live_routes("/scatters/{batch_id}", scatter),
    Route("/scatters/{batch_id}/payloads/{ordinal}", payload),
    *routes(FRAMES),
    *live_routes("/frames/{batch_id}", frame, partial(frame, watched=True)),
    *live_routes("/buffers", buffers),
    *live_routes("/buffers/{name}", buffer),
)
