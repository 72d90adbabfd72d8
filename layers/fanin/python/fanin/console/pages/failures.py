"""The failures of a batch, by error, one by one, and each with its message; and its redrives."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, NamedTuple

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from fanin.console.pages.excerpts import Excerpt, excerpt
from fanin.console.pages.heading import asked, heading, page_of
from fanin.console.rendering import error_key
from fanin.console.state import Console, cursor_in, natural
from fanin.domain.failures import MessageAttribute
from fanin.domain.reports import ErrorGroup, FailedItem
from fanin.errors import FailureNotFound

ROWS: Final = 30
"""Failures of a page."""
GROUPS: Final = 12
"""Errors of a page."""
LOOKED_AT: Final = 200
"""Failures that one call lists where those of one error are looked for."""
CALLS: Final = 10
"""Calls that a page makes at most to find failures of one error."""
BODY: Final = 32 * 1024
"""Characters of a message body that its page shows."""
NOTHING: Final = -1
"""Stands before the first ordinal."""
VALUE: Final = 512
"""Characters of an attribute's value that the page shows."""


class At(NamedTuple):
    """Where a page of failures begins.

    Attributes:
        cursor: of the service's listing.
        after: ordinal of the last failure that the page before has shown, or ``NOTHING``; those of the
            listing up to it are passed over.
    """

    cursor: str | None
    after: int = NOTHING


@dataclass(frozen=True, slots=True)
class FailureRows:
    """One page of failures.

    Attributes:
        failures: by ordinal.
        next: where the next page begins; None at the end.
        looked_at: how many failures were looked at for them.
    """

    failures: tuple[FailedItem, ...]
    next: At | None
    looked_at: int


@dataclass(frozen=True, slots=True)
class Groups:
    """Errors of one part of the failures.

    Attributes:
        errors: the most frequent first.
        skipped: how many more frequent ones were left out.
        left: how many less frequent ones follow.
        part: cursor of this part; None for the first.
        next_part: cursor of the next; None at the end.
    """

    errors: tuple[ErrorGroup, ...]
    skipped: int
    left: int
    part: str | None
    next_part: str | None

    @property
    def whole(self) -> bool:
        """Whether these are the errors of all failures."""
        return self.part is None and self.next_part is None


def listing(console: Console, batch_id: int, at: At, error: str | None) -> FailureRows:
    """Read one page of failures, of all or of those of one error."""
    found: list[FailedItem] = []
    looked_at, limit = 0, ROWS if error is None else LOOKED_AT
    for _ in range(CALLS):
        page = console.fanin.ledger.failures(batch_id, cursor=at.cursor, limit=limit)
        looked_at += len(page.failures)
        left = [failure for failure in page.failures if failure.ordinal > at.after]
        found += [failure for failure in left if error is None or error_key(failure.error) == error]
        if len(found) > ROWS:
            return FailureRows(tuple(found[:ROWS]), At(at.cursor, found[ROWS - 1].ordinal), looked_at)
        if page.cursor is None:
            return FailureRows(tuple(found), None, looked_at)
        at = At(page.cursor)
        if len(found) == ROWS:
            break
    return FailureRows(tuple(found), at, looked_at)


def groups(console: Console, batch_id: int, part: str | None, skip: int) -> Groups:
    """Read the errors of one part of the failures, but for the so many most frequent ones."""
    found = console.fanin.ledger.errors(batch_id, cursor=part)
    shown = tuple(found.errors[skip : skip + GROUPS])
    return Groups(shown, skip, max(0, len(found.errors) - skip - len(shown)), part, found.cursor)


def attributes(of: Mapping[str, MessageAttribute]) -> list[tuple[str, str, Excerpt]]:
    """Name, type and value of each attribute; bytes are written in hexadecimal."""
    return [(name, one.data_type, excerpt(_text(one.value), VALUE)) for name, one in sorted(of.items())]


def _text(value: str | bytes) -> str:
    return value.hex() if isinstance(value, bytes) else value


def failures(request: Request) -> Response:
    console, batch_id = asked(request)
    query = request.query_params
    error = query.get("error") or None
    after = natural("after", query.get("after"))
    at = At(cursor_in(request), NOTHING if after is None else after)
    part, skip = query.get("part") or None, natural("skip", query.get("skip")) or 0
    found, shown = groups(console, batch_id, part, skip), listing(console, batch_id, at, error)
    texts = [*(one.error for one in shown.failures), *(one.error for one in found.errors)]
    return page_of(
        request,
        "failures.html",
        "failures",
        heading(console, batch_id),
        groups=found,
        listing=shown,
        error=error,
        named=next((text for text in texts if error_key(text) == error), None),
        first_page=at == At(None),
    )


def failure(request: Request) -> Response:
    console, batch_id = asked(request)
    found = console.fanin.ledger.failure(batch_id, _ordinal(request))
    message = found.message
    return page_of(
        request,
        "failure.html",
        "failures",
        heading(console, batch_id),
        failure=found.failure,
        message=message,
        body=message and excerpt(message.body, BODY),
        attributes=attributes(message.attributes) if message else [],
    )


def body(request: Request) -> Response:
    """The whole body of a failed item's message, as a file: nothing of it runs in a browser."""
    console, batch_id = asked(request)
    ordinal = _ordinal(request)
    found = console.fanin.ledger.failure(batch_id, ordinal)
    if found.message is None:
        raise FailureNotFound(f"the message of item {ordinal} of batch {batch_id} was not kept")
    return Response(
        found.message.body.encode(errors="replace"),
        media_type="text/plain; charset=utf-8",
        headers={"Content-Disposition": f'attachment; filename="batch-{batch_id}-item-{ordinal}.txt"'},
    )


def _ordinal(request: Request) -> int:
    return natural("the ordinal of an item", request.path_params["ordinal"]) or 0


REDRIVES: Final = 20
"""Redrives of a page."""


def redrives(request: Request) -> Response:
    console, batch_id = asked(request)
    cursor = cursor_in(request)
    above = heading(console, batch_id)
    page = console.fanin.redrives.redrives(batch_id, cursor=cursor, limit=REDRIVES)
    return page_of(request, "redrives.html", "redrives", above, page=page, first_page=cursor is None)


ROUTES: Final = (
    Route("/batches/{batch_id}/failures", failures),
    Route("/batches/{batch_id}/failures/{ordinal}", failure),
    Route("/batches/{batch_id}/failures/{ordinal}/body", body),
    Route("/batches/{batch_id}/redrives", redrives),
)
