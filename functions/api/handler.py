"""Serves the HTTP API."""

from typing import Any

from fanin.entry.http.application import respond
from fanin.entry.observe import observed


@observed
def handler(event: dict[str, Any], context: Any) -> dict[str, Any]:
    return respond(event, context)
