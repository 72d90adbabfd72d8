"""What of a batch is missing: ranges of items that are not done."""

from __future__ import annotations

from typing import Final

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from fanin.console.pages.addresses import cursor_in
from fanin.console.pages.heading import asked, heading, page_of
from fanin.domain.batch import Mode

ROWS: Final = 100
"""Ranges of a page."""


def missing(request: Request) -> Response:
    console, batch_id = asked(request)
    cursor = cursor_in(request)
    above = heading(console, batch_id)
    known = above.batch.mode is Mode.EXACT
    found = console.fanin.ledger.missing(batch_id, cursor=cursor, limit=ROWS) if known else None
    return page_of(request, "missing.html", "missing", above, missing=found, first_page=cursor is None)


ROUTES: Final = (Route("/batches/{batch_id}/missing", missing),)
