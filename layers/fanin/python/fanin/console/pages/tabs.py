"""The smaller pages of one batch: why it is not finished, targets, children, cost, missing items, results."""

from collections.abc import Mapping
from typing import Any, Final

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from fanin.console.pages.excerpts import excerpt, excerpts, shown_json
from fanin.console.pages.heading import BatchRequest, tab_route
from fanin.console.pages.progress import rows_of
from fanin.domain.batch import Mode
from fanin.domain.costs import BLOCK, failure_writes, spent
from fanin.domain.ids import parse_item
from fanin.domain.prices import DEFAULT, prices_or_default
from fanin.domain.tree import Tree
from fanin.errors import InvalidRequest


def why(asked: BatchRequest) -> Mapping[str, Any]:
    return {"diagnosis": asked.console.fanin.diagnostics.why(asked.batch_id)}


def targets(asked: BatchRequest) -> Mapping[str, Any]:
    return {"targets": asked.ledger.targets(asked.batch_id).targets if asked.batch.targets else ()}


CHILDREN: Final = 50
"""Children of a page."""


def children(asked: BatchRequest) -> Mapping[str, Any]:
    page = asked.ledger.list(None, parent=asked.batch_id, cursor=asked.cursor, limit=CHILDREN)
    first = sorted(page.batches, key=lambda batch: batch.attention is None and not batch.failed)
    return {"rows": rows_of(asked.console, first), "cursor": page.cursor}


def cost(asked: BatchRequest) -> Mapping[str, Any]:
    batch, so_far = asked.batch, asked.heading.cost
    exact = batch.mode is Mode.EXACT
    failed = batch.failed + batch.held
    return {
        "ways": spent(batch.items, asked.heading.row.done or 0, failed, exact=exact),
        "whole": spent(batch.items, batch.items, failed, exact=exact),
        "prices": DEFAULT if so_far is None else prices_or_default(so_far.region),
        "block": BLOCK,
        "failure": failure_writes(0),
    }


_TREE: Final = Tree()
ROWS: Final = 30
"""Items whose results a page looks at."""
EACH: Final = 512
"""Characters that a page shows of each of several results."""
ROOM: Final = 24 * 1024
"""Bytes of HTML for the results of a page."""
WHOLE: Final = 32 * 1024
"""Characters of a result that the page of its item shows."""


def results(asked: BatchRequest) -> Mapping[str, Any]:
    if not asked.batch.results:
        return {"rows": [], "cursor": None}
    page = asked.ledger.results(asked.batch_id, cursor=asked.cursor, limit=ROWS)
    texts = excerpts([shown_json(one.result) for one in page.results], most=EACH, room=ROOM)
    return {"rows": list(zip(page.results, texts, strict=True)), "cursor": page.cursor}


def item(asked: BatchRequest) -> Mapping[str, Any]:
    batch_id, ordinal = asked.batch_id, asked.ordinal
    drawn = asked.ledger.picture(batch_id, level=0, number=ordinal // _TREE.width)
    found = next((one for one in drawn.items if one.ordinal == ordinal), None)
    if found is None:
        raise InvalidRequest(
            f"batch {batch_id} has {drawn.size:,} items, the first is 0; there is no {ordinal:,}"
        )
    result = None
    if drawn.batch.results:
        for one in asked.ledger.results(batch_id, cursor=str(ordinal), limit=1).results:
            result = excerpt(shown_json(one.result), WHOLE)
    return {"item": found, "result": result}


def search(request: Request) -> Response:
    """Lead to the item of a key."""
    asked = BatchRequest(request)
    found = asked.ledger.find_key(asked.batch_id, key_of_item=asked.query.get("key", ""))
    address = asked.console.templates.url("batches", asked.batch_id, "items", parse_item(found.item)[1])
    return RedirectResponse(address, 303)


RANGES: Final = 100
"""Ranges of a page."""


def missing(asked: BatchRequest) -> Mapping[str, Any]:
    if asked.batch.mode is not Mode.EXACT:
        return {"missing": None}
    found = asked.ledger.missing(asked.batch_id, cursor=asked.cursor, limit=RANGES)
    return {"missing": found, "first_page": asked.cursor is None}


ROUTES: Final = (
    tab_route("why", why),
    tab_route("targets", targets),
    tab_route("children", children),
    tab_route("cost", cost),
    tab_route("missing", missing),
    tab_route("results", results),
    Route("/batches/{batch_id}/items", search),
    tab_route("picture", item, "items/{ordinal}", "item.html"),
)
