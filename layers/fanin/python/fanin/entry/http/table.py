"""The route table: the only list of what the API has."""

from __future__ import annotations

from typing import Final

from fanin import names
from fanin.app.services import Services
from fanin.domain.wire import Json
from fanin.entry.http import carlyle_v1, v1, v1_buffers, v1_directory, v1_frames, v1_scatters
from fanin.entry.http.routing import Request, Route


def _document(_services: Services, _request: Request) -> Json:
    from fanin.entry.http.openapi import document  # noqa: PLC0415  rarely asked for

    return document(ROUTES)


ROUTES: Final[tuple[Route, ...]] = (
    *v1.ROUTES,
    *v1_buffers.ROUTES,
    *v1_directory.ROUTES,
    *v1_frames.ROUTES,
    *v1_scatters.ROUTES,
    *carlyle_v1.ROUTES,
    Route("GET", "/openapi.json", "getDocument", "This document", _document, "Document"),
    Route("GET", f"{names.API_ROOT}/openapi.json", "getV1Document", "This document", _document, "Document"),
)
