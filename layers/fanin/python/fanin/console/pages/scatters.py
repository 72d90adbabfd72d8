"""Scatters: their list, and each with its recipients, who are missing, have failed, or have replied."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from typing import Final, Self
from urllib.parse import urlsplit

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from fanin.console.feeds import View
from fanin.console.pages.batches import SIZES, BatchSection, routes
from fanin.console.pages.excerpts import Excerpt, excerpts, shown_json
from fanin.console.state import Console, console_of, id_in, live_of
from fanin.domain.batch import Kind, State
from fanin.domain.limits import MAX_REPLIES
from fanin.domain.scatter import FailedRecipient, GatheredReply, MissingRecipient, Scattered

SCATTERS: Final = BatchSection(
    "scatters",
    "Scatters",
    "scatters_parts.html",
    Kind.SCATTER,
    State.CLOSED,
    "fanin scatter start BODY --topic TOPIC",
    SIZES[:2],
)
SHOWN: Final = 20
"""Recipients of a section of the page."""
PAYLOAD: Final = 4 * 1024
"""Characters of a reply that are shown."""
REPLIES_ROOM: Final = 36 * 1024
REASONS_ROOM: Final = 12 * 1024
"""Bytes of HTML that all replies, or reasons, of a page may have."""


@dataclass(frozen=True, slots=True)
class Cursors:
    """Where each section of the page begins; None at its beginning."""

    missing: str | None = None
    failed: str | None = None
    replied: str | None = None

    @classmethod
    def of(cls, asked: Mapping[str, str]) -> Self:
        """Read those of an address. The service checks them."""
        return cls(*(asked.get(name) or None for name in ("missing", "failed", "replied")))

    def address(self, **other: str | None) -> dict[str, str | None]:
        """The parameters of the address of this page, or of one that differs in some."""
        return {**asdict(self), **other}


@dataclass(frozen=True, slots=True)
class Section:
    """Recipients with the same state.

    Attributes:
        name: of its cursor in the address.
        count: how many they are, exactly.
        recipients: those of the page, with what they answered.
        begin: cursor of this page.
        cursor: of the next page.
    """

    name: str
    count: int
    recipients: tuple[tuple[MissingRecipient | FailedRecipient | GatheredReply, Excerpt | None], ...]
    begin: str | None
    cursor: str | None


@dataclass(frozen=True, slots=True)
class ShownScatter:
    """What the page shows.

    Attributes:
        scatter: how far it is.
        sections: its recipients: who is missing, who has failed, who has replied.
        cursors: of the page.
    """

    scatter: Scattered
    sections: tuple[Section, ...]
    cursors: Cursors


def scatter_shown(console: Console, batch_id: int, cursors: Cursors) -> ShownScatter:
    """Read what the page shows: four calls.

    The recipients are read in this order, so that one who replies between two calls is shown twice, and
    never left out.
    """
    scatters = console.fanin.scatters
    status = console.calls.submit(scatters.status, batch_id)
    missing = scatters.missing_recipients(batch_id, cursor=cursors.missing, limit=SHOWN)
    failed = scatters.failed_recipients(batch_id, cursor=cursors.failed, limit=SHOWN)
    replied = scatters.replies(batch_id, cursor=cursors.replied, limit=SHOWN)
    found = status.result()
    reasons = excerpts([one.reason for one in failed.recipients], most=PAYLOAD, room=REASONS_ROOM)
    payloads = tuple(zip(replied.replies, _payloads(replied.replies), strict=True))
    given_up = tuple(zip(failed.recipients, reasons, strict=True))
    nothing = tuple((one, None) for one in missing.recipients)
    sections = (
        Section("missing", found.missing, nothing, cursors.missing, missing.cursor),
        Section("failed", found.failed, given_up, cursors.failed, failed.cursor),
        Section("replied", found.received, payloads, cursors.replied, replied.cursor),
    )
    return ShownScatter(found, sections, cursors)


def _payloads(replies: Sequence[GatheredReply]) -> list[Excerpt]:
    texts = ["" if reply.claim is not None else shown_json(reply.payload) for reply in replies]
    return excerpts(texts, most=PAYLOAD, room=REPLIES_ROOM)


def view(request: Request) -> View:
    """The live part of the page."""
    console = console_of(request)
    shown = scatter_shown(console, id_in(request), Cursors.of(request.query_params))
    found = shown.scatter
    render = partial(console.templates.macro, "scatters_parts.html")
    return View(
        {"progress": render("progress", found), "recipients": render("recipients", shown)},
        (found.batch.state, found.received, found.failed, found.recipients, found.retries),
        over=found.ready,
    )


def scatter(request: Request) -> Response:
    console = console_of(request)
    shown = scatter_shown(console, id_in(request), Cursors.of(request.query_params))
    return console.page(request, "scatter.html", here="scatters", shown=shown, live=not shown.scatter.ready)


def payload(request: Request) -> Response:
    """Go to the payload of a reply that was uploaded, at an address that the service signs now.

    Such an address lets anyone read the payload until it expires, so pages do not have it.
    """
    console = console_of(request)
    ordinal, cursors = id_in(request, "ordinal"), Cursors.of(request.query_params)
    page = console.fanin.scatters.replies(id_in(request), cursor=cursors.replied, limit=MAX_REPLIES)
    url = next((reply.url for reply in page.replies if reply.ordinal == ordinal), None)
    if url is None or urlsplit(url).scheme not in {"https", "http"}:
        raise HTTPException(404, "This payload cannot be downloaded here. Go back, and load the page again.")
    return RedirectResponse(url, 303)


ROUTES: Final = (
    *routes(SCATTERS),
    Route("/scatters/{batch_id}", scatter),
    Route("/scatters/{batch_id}/payloads/{ordinal}", payload),
    live_of("/scatters/{batch_id}", view),
)
