"""The action log: what the buttons of this console did."""

from __future__ import annotations

from typing import Final

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from fanin.console.actions.log import KEPT
from fanin.console.state import console_of


def log(request: Request) -> Response:
    console = console_of(request)
    return console.page(request, "log.html", here="log", entries=console.log.entries(), kept=KEPT)


ROUTES: Final = (Route("/log", log),)
