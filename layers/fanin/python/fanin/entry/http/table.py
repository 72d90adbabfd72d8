"""The route table: the only list of what the API has."""

from __future__ import annotations

from functools import cache
from typing import Final

from fanin import names
from fanin.app.api import Fanin
from fanin.domain.access import AccessGroup
from fanin.entry.http import carlyle_v1
from fanin.entry.http.route import HttpRequest, HttpRoute
from fanin.entry.http.v1 import buffers as v1_buffers
from fanin.entry.http.v1 import diagnostics as v1_diagnostics
from fanin.entry.http.v1 import directory as v1_directory
from fanin.entry.http.v1 import frames as v1_frames
from fanin.entry.http.v1 import ledger as v1
from fanin.entry.http.v1 import picture as v1_picture
from fanin.entry.http.v1 import redrives as v1_redrives
from fanin.entry.http.v1 import scatters as v1_scatters
from fanin.wire.json_types import Json
from fanin.wire.problems import DOCUMENT


def _document(_fanin: Fanin, _request: HttpRequest) -> Json:
    from fanin.entry.http.openapi import document  # noqa: PLC0415  rarely asked for

    return document(ROUTES)


ROUTES: Final[tuple[HttpRoute, ...]] = (
    *v1.ROUTES,
    *v1_picture.ROUTES,
    *v1_redrives.ROUTES,
    *v1_diagnostics.ROUTES,
    *v1_buffers.ROUTES,
    *v1_directory.ROUTES,
    *v1_frames.ROUTES,
    *v1_scatters.ROUTES,
    *carlyle_v1.ROUTES,
    HttpRoute(
        "GET",
        "/openapi.json",
        "getDocument",
        "This document",
        _document,
        DOCUMENT,
        group=AccessGroup.READ,
    ),
    HttpRoute(
        "GET",
        f"{names.API_ROOT}/openapi.json",
        "getV1Document",
        "This document",
        _document,
        DOCUMENT,
        group=AccessGroup.READ,
    ),
)


@cache
def _by_operation() -> dict[str, HttpRoute]:
    return {route.operation: route for route in ROUTES}


def route_of(operation: str) -> HttpRoute:
    """The route of an operation, by its id."""
    return _by_operation()[operation]
