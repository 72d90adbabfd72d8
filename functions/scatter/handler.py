"""The queue of jobs: each sends a scatter's message to a hundred recipients, or to those of them missing."""

from __future__ import annotations

from typing import Any

from fanin.entry import scatters, wiring
from fanin.entry.observe import observed


@observed
def handler(event: dict[str, Any], context: Any) -> dict[str, Any]:
    return scatters.run_jobs(event, wiring.services().scatters)
