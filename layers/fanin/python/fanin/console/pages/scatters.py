"""Scatters: their list, and each with its recipients, who are missing, have failed, or have replied."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final
from urllib.parse import urlsplit

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from fanin.console.pages.batches import SIZES, BatchSection, routes
from fanin.console.pages.excerpts import Excerpt, excerpts, shown_json
from fanin.console.state import LivePage, console_of, id_in, live_routes
from fanin.domain.batch import Kind, State
from fanin.domain.limits import MAX_REPLIES
from fanin.domain.scatter import FailedRecipient, GatheredReply, MissingRecipient

SCATTERS: Final = BatchSection(
    "scatters", Kind.SCATTER, State.CLOSED, "fanin scatter start BODY --topic TOPIC", SIZES[:2]
)
SHOWN: Final = 20
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
    missing = scatters.missing_recipients(batch_id, cursor=cursors["missing"], limit=SHOWN)
    failed = scatters.failed_recipients(batch_id, cursor=cursors["failed"], limit=SHOWN)
    replied = scatters.replies(batch_id, cursor=cursors["replied"], limit=SHOWN)
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


ROUTES: Final = (
    *routes(SCATTERS),
    *live_routes("/scatters/{batch_id}", scatter),
    Route("/scatters/{batch_id}/payloads/{ordinal}", payload),
)
