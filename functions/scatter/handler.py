"""Reads the queue of jobs: a job sends the message of a scatter to up to a hundred recipients."""

from typing import Any

from fanin.entry import jobs, wiring
from fanin.entry.observe import observed


@observed
def handler(event: dict[str, Any], context: Any) -> dict[str, Any]:
    return jobs.run_jobs(event, wiring.services().scatters)
