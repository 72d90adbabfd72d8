"""The queues of scatters: jobs that send a scatter's messages, and replies to them."""

from __future__ import annotations

import json
from typing import Any

from fanin import names
from fanin.app.api import Scatters
from fanin.app.scatters.service import ScatterService
from fanin.entry.each_message import handle_each
from fanin.entry.http.validation import parse
from fanin.entry.observe import count
from fanin.entry.partial_batch import SqsRecord
from fanin.errors import GONE
from fanin.wire.patterns import REPLIES


def run_jobs(event: SqsRecord, scatters: ScatterService) -> dict[str, Any]:
    """Run jobs: each sends a scatter's message to one chunk of its recipients, or lists the recipients.

    Args:
        event: what Lambda hands over from the queue of jobs.
        scatters: does the work.

    Returns:
        The partial batch response: jobs to run again.
    """

    def run(message: SqsRecord) -> None:
        job = json.loads(message["body"])
        try:
            sent = scatters.work(job["batch_id"], job["chunk"], job["wave"])
        except GONE:
            return  # nobody waits for its replies any more
        count(names.METRIC_SENT, sent.sent)
        count(names.METRIC_UNREACHED, sent.refused)

    return handle_each(event, run)


def gather_replies(event: SqsRecord, scatters: Scatters) -> dict[str, Any]:
    """Take replies from the reply queue.

    Args:
        event: what Lambda hands over; each body is that of ``POST /v1/replies``.
        scatters: stores the replies.

    Returns:
        The partial batch response. It includes poison messages, so that the queue's redrive policy moves
        them to the dead-letter queue.
    """

    def gather(message: SqsRecord) -> None:
        receipts = scatters.reply(parse(REPLIES, message["body"]))
        count(names.METRIC_REPLIES, sum(receipt.first for receipt in receipts))

    return handle_each(event, gather)
