"""Why a batch is not finished: all findings of a diagnosis, and what is known of missing items."""

from __future__ import annotations

from typing import Final

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from fanin.console.pages.heading import asked, heading, page_of


def why(request: Request) -> Response:
    console, batch_id = asked(request)
    above = heading(console, batch_id)
    return page_of(request, "why.html", "why", above, diagnosis=console.fanin.diagnostics.why(batch_id))


ROUTES: Final = (Route("/batches/{batch_id}/why", why),)
