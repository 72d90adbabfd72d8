"""The failures of a batch, by error, one by one, and each with its message; and its redrives."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from fanin.console.pages.excerpts import Excerpt, download, excerpt
from fanin.console.pages.heading import BatchRequest, tab_route
from fanin.console.rendering import error_key
from fanin.console.state import natural
from fanin.domain.failures import MessageAttribute
from fanin.domain.reports import FailedItem
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


def listing(asked: BatchRequest, at: At, error: str | None) -> FailureRows:
    """Read one page of failures, of all or of those of one error."""
    found: list[FailedItem] = []
    looked_at, limit = 0, ROWS if error is None else LOOKED_AT
    for _ in range(CALLS):
        page = asked.ledger.failures(asked.batch_id, cursor=at.cursor, limit=limit)
        looked_at += len(page.failures)
        left = [failure for failure in page.failures if failure.ordinal > at.after]
        found += [failure for failure in left if error is None or error_key(failure.error) == error]
        if len(found) > ROWS:
            return FailureRows(tuple(found[:ROWS]), At(at.cursor, found[ROWS - 1].ordinal), looked_at)
        at = At(page.cursor)
        if page.cursor is None or len(found) == ROWS:
            break
    return FailureRows(tuple(found), None if at.cursor is None else at, looked_at)


def attributes(of: Mapping[str, MessageAttribute]) -> list[tuple[str, str, Excerpt]]:
    """Name, type and value of each attribute; bytes are written in hexadecimal."""
    texts = {name: one.value.hex() if isinstance(one.value, bytes) else one.value for name, one in of.items()}
    return [(name, of[name].data_type, excerpt(text, VALUE)) for name, text in sorted(texts.items())]


def failures(asked: BatchRequest) -> Mapping[str, Any]:
    query = asked.query
    error = query.get("error") or None
    after = natural("after", query.get("after"))
    at = At(asked.cursor, NOTHING if after is None else after)
    part, skip = query.get("part") or None, natural("skip", query.get("skip")) or 0
    errors = asked.ledger.errors(asked.batch_id, cursor=part)
    groups, left = errors.errors[skip : skip + GROUPS], errors.errors[skip + GROUPS :]
    shown = listing(asked, at, error)
    texts = [*(one.error for one in shown.failures), *(one.error for one in groups)]
    return {
        "groups": groups,
        "skipped": skip,
        "left": len(left),
        "part": part,
        "next_part": errors.cursor,
        "listing": shown,
        "error": error,
        "named": next((text for text in texts if error_key(text) == error), None),
        "first_page": at == At(None),
    }


def failure(asked: BatchRequest) -> Mapping[str, Any]:
    found = asked.ledger.failure(asked.batch_id, asked.ordinal)
    message = found.message
    return {
        "failure": found.failure,
        "message": message,
        "body": message and excerpt(message.body, BODY),
        "attributes": attributes(message.attributes) if message else [],
    }


def body(request: Request) -> Response:
    """The whole body of a failed item's message, as a file."""
    asked = BatchRequest(request)
    batch_id, ordinal = asked.batch_id, asked.ordinal
    message = asked.ledger.failure(batch_id, ordinal).message
    if message is None:
        raise FailureNotFound(f"the message of item {ordinal} of batch {batch_id} was not kept")
    return download(message.body, "text/plain; charset=utf-8", f"batch-{batch_id}-item-{ordinal}.txt")


REDRIVES: Final = 20
"""Redrives of a page."""


def redrives(asked: BatchRequest) -> Mapping[str, Any]:
    page = asked.console.fanin.redrives.redrives(asked.batch_id, cursor=asked.cursor, limit=REDRIVES)
    return {"page": page, "first_page": asked.cursor is None}


ROUTES: Final = (
    tab_route("failures", failures),
    tab_route("failures", failure, "failures/{ordinal}", "failure.html"),
    Route("/batches/{batch_id}/failures/{ordinal}/body", body),
    tab_route("redrives", redrives),
)
