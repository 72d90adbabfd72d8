"""Items of a batch: the results of those that are done, and one item, found by its ordinal or its key."""

from __future__ import annotations

from typing import Any, Final

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from fanin.console.pages.addresses import cursor_in, natural
from fanin.console.pages.excerpts import beginning, excerpts, shown_json
from fanin.console.pages.heading import asked, heading, page_of
from fanin.domain.ids import parse_item
from fanin.domain.tree import Tree
from fanin.errors import InvalidRequest

_TREE: Final = Tree()
ROWS: Final = 30
"""Items whose results a page looks at."""
EACH: Final = 512
"""Bytes that a page shows of each of several results."""
ROOM: Final = 24 * 1024
"""Bytes of HTML for the results of a page."""
WHOLE: Final = 32 * 1024
"""Characters of a result that the page of its item shows, and half the bytes of their HTML."""


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
        result=beginning(shown_json(given[0]), WHOLE, escaped=2 * WHOLE) if given else None,
    )


def search(request: Request) -> Response:
    """Lead to the item of a key."""
    console, batch_id = asked(request)
    found = console.fanin.ledger.find_key(batch_id, key_of_item=request.query_params.get("key", ""))
    address = console.templates.url("batches", batch_id, "items", parse_item(found.item)[1])
    return RedirectResponse(address, 303)


ROUTES: Final = (
    Route("/batches/{batch_id}/results", results),
    Route("/batches/{batch_id}/items", search),
    Route("/batches/{batch_id}/items/{ordinal}", item),
)
