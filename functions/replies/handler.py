"""Reads the queue of replies to scatters: stores them, and acknowledges their items."""

from typing import Any

from fanin.entry import jobs, wiring
from fanin.entry.observe import observed


@observed
def handler(event: dict[str, Any], context: Any) -> dict[str, Any]:
    return jobs.gather_replies(event, wiring.services().scatters)
