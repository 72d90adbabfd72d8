"""Serves the console behind the API."""

from typing import Any

from fanin.console.behind_api import respond
from fanin.entry.observe import observed


@observed
def handler(event: dict[str, Any], context: Any) -> dict[str, Any]:
    return respond(event, context)
