"""The redrives of a batch: which failures were sent again, where to, and what became of them."""

from __future__ import annotations

from typing import Final

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from fanin.console.pages.addresses import cursor_in
from fanin.console.pages.heading import asked, heading, page_of

ROWS: Final = 20
"""Redrives of a page."""


def redrives(request: Request) -> Response:
    console, batch_id = asked(request)
    cursor = cursor_in(request)
    above = heading(console, batch_id)
    page = console.fanin.redrives.redrives(batch_id, cursor=cursor, limit=ROWS)
    return page_of(request, "redrives.html", "redrives", above, page=page, first_page=cursor is None)


ROUTES: Final = (Route("/batches/{batch_id}/redrives", redrives),)
