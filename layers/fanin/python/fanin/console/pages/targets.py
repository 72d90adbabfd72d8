"""Who is told of the end of a batch, and how far each is."""

from __future__ import annotations

from typing import Final

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from fanin.console.pages.heading import asked, heading, page_of


def targets(request: Request) -> Response:
    console, batch_id = asked(request)
    above = heading(console, batch_id)
    found = console.fanin.ledger.targets(batch_id).targets if above.batch.targets else ()
    return page_of(request, "targets.html", "targets", above, targets=found)


ROUTES: Final = (Route("/batches/{batch_id}/targets", targets),)
