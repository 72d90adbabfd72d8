"""The smaller pages of one batch: why it is not finished, targets, children, cost, missing items, results."""

from typing import Any, Final

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from fanin.console.pages.excerpts import excerpt, excerpts, shown_json
from fanin.console.pages.heading import asked, heading, page_of
from fanin.console.pages.progress import rows_of
from fanin.console.state import cursor_in, natural
from fanin.domain.batch import Mode
from fanin.domain.costs import BLOCK, failure_writes, spent
from fanin.domain.ids import parse_item
from fanin.domain.prices import DEFAULT, prices_or_default
from fanin.domain.tree import Tree
from fanin.errors import InvalidRequest


def why(request: Request) -> Response:
    console, batch_id = asked(request)
    above = heading(console, batch_id)
    return page_of(request, "why.html", "why", above, diagnosis=console.fanin.diagnostics.why(batch_id))


def targets(request: Request) -> Response:
    console, batch_id = asked(request)
    above = heading(console, batch_id)
    found = console.fanin.ledger.targets(batch_id).targets if above.batch.targets else ()
    return page_of(request, "targets.html", "targets", above, targets=found)


CHILDREN: Final = 50
"""Children of a page."""


def children(request: Request) -> Response:
    console, batch_id = asked(request)
    cursor = cursor_in(request)
    above = heading(console, batch_id)
    page = console.fanin.ledger.list(None, parent=batch_id, cursor=cursor, limit=CHILDREN)
    first = sorted(page.batches, key=lambda batch: batch.attention is None and not batch.failed)
    rows = rows_of(console, first)
    return page_of(request, "children.html", "children", above, rows=rows, cursor=page.cursor)


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


_TREE: Final = Tree()
ROWS: Final = 30
"""Items whose results a page looks at."""
EACH: Final = 512
"""Characters that a page shows of each of several results."""
ROOM: Final = 24 * 1024
"""Bytes of HTML for the results of a page."""
WHOLE: Final = 32 * 1024
"""Characters of a result that the page of its item shows."""


def results(request: Request) -> Response:
    console, batch_id = asked(request)
    above, cursor = heading(console, batch_id), cursor_in(request)
    page = console.fanin.ledger.results(batch_id, cursor=cursor, limit=ROWS) if above.batch.results else None
    found = page.results if page else ()
    texts = excerpts([shown_json(one.result) for one in found], most=EACH, room=ROOM)
    return page_of(
        request,
        "results.html",
        "results",
        above,
        rows=list(zip(found, texts, strict=True)),
        cursor=page and page.cursor,
    )


def item(request: Request) -> Response:
    console, batch_id = asked(request)
    ordinal = natural("the ordinal of an item", request.path_params["ordinal"]) or 0
    drawn = console.fanin.ledger.picture(batch_id, level=0, number=ordinal // _TREE.width)
    found = next((one for one in drawn.items if one.ordinal == ordinal), None)
    if found is None:
        raise InvalidRequest(
            f"batch {batch_id} has {drawn.size:,} items, the first is 0; there is no {ordinal:,}"
        )
    given: tuple[Any, ...] = ()
    if drawn.batch.results:
        page = console.fanin.ledger.results(batch_id, cursor=str(ordinal), limit=1)
        given = tuple(one.result for one in page.results)
    return page_of(
        request,
        "item.html",
        "picture",
        heading(console, batch_id),
        item=found,
        result=excerpt(shown_json(given[0]), WHOLE) if given else None,
    )


def search(request: Request) -> Response:
    """Lead to the item of a key."""
    console, batch_id = asked(request)
    found = console.fanin.ledger.find_key(batch_id, key_of_item=request.query_params.get("key", ""))
    address = console.templates.url("batches", batch_id, "items", parse_item(found.item)[1])
    return RedirectResponse(address, 303)


RANGES: Final = 100
"""Ranges of a page."""


def missing(request: Request) -> Response:
    console, batch_id = asked(request)
    cursor = cursor_in(request)
    above = heading(console, batch_id)
    known = above.batch.mode is Mode.EXACT
    found = console.fanin.ledger.missing(batch_id, cursor=cursor, limit=RANGES) if known else None
    return page_of(request, "missing.html", "missing", above, missing=found, first_page=cursor is None)


ROUTES: Final = (
    Route("/batches/{batch_id}/why", why),
    Route("/batches/{batch_id}/targets", targets),
    Route("/batches/{batch_id}/children", children),
    Route("/batches/{batch_id}/cost", cost),
    Route("/batches/{batch_id}/missing", missing),
    Route("/batches/{batch_id}/results", results),
    Route("/batches/{batch_id}/items", search),
    Route("/batches/{batch_id}/items/{ordinal}", item),
)
