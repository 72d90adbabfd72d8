"""What a batch has cost so far, estimated from its row."""

from __future__ import annotations

from typing import Final

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from fanin.console.pages.heading import asked, heading, page_of
from fanin.domain.batch import Mode
from fanin.domain.costs import BLOCK, failure_writes, spent
from fanin.domain.prices import DEFAULT, prices_or_default


def cost(request: Request) -> Response:
    console, batch_id = asked(request)
    above = heading(console, batch_id)
    batch = above.batch
    done = above.row.done or 0
    exact = batch.mode is Mode.EXACT
    failed = batch.failed + batch.held
    return page_of(
        request,
        "cost.html",
        "cost",
        above,
        ways=spent(batch.items, done, failed, exact=exact),
        whole=spent(batch.items, batch.items, failed, exact=exact),
        prices=DEFAULT if above.cost is None else prices_or_default(above.cost.region),
        block=BLOCK,
        failure=failure_writes(0),
    )


ROUTES: Final = (Route("/batches/{batch_id}/cost", cost),)
