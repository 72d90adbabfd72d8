"""The route table: the only list of what the API has."""

from typing import Final

from fanin import names
from fanin.app.api import Fanin
from fanin.entry.http import carlyle_v1
from fanin.entry.http.route import HttpRequest, HttpRoute, reads
from fanin.entry.http.v1 import diagnostics, ledger, patterns
from fanin.wire.json_types import Json
from fanin.wire.problems import DOCUMENT


def _document(_fanin: Fanin, _request: HttpRequest) -> Json:
    """Read this document, which is made from the table of routes by which requests are served."""
    from fanin.entry.http.openapi import document  # noqa: PLC0415  rarely asked for

    return document(ROUTES)


ROUTES: Final[tuple[HttpRoute, ...]] = (
    *ledger.ROUTES,
    *diagnostics.ROUTES,
    *patterns.ROUTES,
    *carlyle_v1.ROUTES,
    *(
        reads(f"{root}/openapi.json", operation, _document, DOCUMENT)
        for root, operation in (("", "getDocument"), (names.API_ROOT, "getV1Document"))
    ),
)


_BY_OPERATION: Final = {route.operation: route for route in ROUTES}


def route_of(operation: str) -> HttpRoute:
    """The route of an operation, by its id."""
    return _BY_OPERATION[operation]
