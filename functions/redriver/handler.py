"""Reads the queue of redrives: a job sends messages of failed items again, page after page."""

from typing import Any

from fanin.entry import jobs, wiring
from fanin.entry.observe import observed


@observed
def handler(event: dict[str, Any], context: Any) -> dict[str, Any]:
    services = wiring.services()
    return jobs.redrive(event, services.redrives, services.ports.clock.now)
