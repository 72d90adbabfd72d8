"""Sends an event that matches a route to the registrations that the route names."""

from typing import Any

from fanin.entry import bus, wiring
from fanin.entry.observe import observed


@observed
def handler(event: dict[str, Any], context: Any) -> None:
    bus.route(event, wiring.services().routing, wiring.keep_unrouted)
