"""The batches that are nested in a batch: the last of each of its items, those with failures first."""

from __future__ import annotations

from typing import Final

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from fanin.console.pages.addresses import cursor_in
from fanin.console.pages.heading import asked, heading, page_of
from fanin.console.pages.progress import rows_of

ROWS: Final = 50
"""Children of a page."""


def children(request: Request) -> Response:
    console, batch_id = asked(request)
    cursor = cursor_in(request)
    above = heading(console, batch_id)
    page = console.fanin.ledger.list(None, parent=batch_id, cursor=cursor, limit=ROWS)
    first = sorted(page.batches, key=lambda batch: batch.attention is None and not batch.failed)
    rows = rows_of(console, first)
    return page_of(request, "children.html", "children", above, rows=rows, cursor=page.cursor)


ROUTES: Final = (Route("/batches/{batch_id}/children", children),)
