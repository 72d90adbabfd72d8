"""The action log: what the buttons of this console did."""

from __future__ import annotations

from typing import Final

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from fanin.console.actions.log import KEPT
from fanin.console.state import console_of

PAGE: Final = 25
"""Entries of a page, which keeps it under 100 KB whatever their texts are."""


def log(request: Request) -> Response:
    console = console_of(request)
    entries = console.log.entries()
    after = request.query_params.get("after", "")
    first = int(after) if after.isascii() and after.isdigit() and len(after) <= len(str(KEPT)) else 0
    stop = first + PAGE
    return console.page(
        request,
        "log.html",
        here="log",
        entries=entries[first:stop],
        after=stop if stop < len(entries) else None,
        kept=KEPT,
    )


ROUTES: Final = (Route("/log", log),)
