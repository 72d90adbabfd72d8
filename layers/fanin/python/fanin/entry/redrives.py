"""The queue of redrives: each job goes on with one, for as long as the invocation may take."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from fanin.app.redrives.redrive import WORK_MS, RedriveService
from fanin.entry.each_message import handle_each
from fanin.entry.partial_batch import SqsRecord


def redrive(event: SqsRecord, redrives: RedriveService, now: Callable[[], int]) -> dict[str, Any]:
    """Go on with redrives.

    A job puts the next one on the queue only after it has got a page further, so that the chain of jobs ends
    with the failures. One that cannot get further comes again, and at last becomes a dead letter.

    Args:
        event: what Lambda hands over from the queue of redrives.
        redrives: does the work.
        now: tells the time, ms.

    Returns:
        The partial batch response: jobs to run again.
    """

    def go_on(message: SqsRecord) -> None:
        job = json.loads(message["body"])
        redrives.work(job["batch_id"], job["redrive"], job["owner"], until=now() + WORK_MS)

    return handle_each(event, go_on)
