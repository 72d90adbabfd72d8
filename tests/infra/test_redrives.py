"""The worker of redrives."""

from __future__ import annotations

from fanin.entry.redrives import WORK_MS
from fanin_cdk.redrives import TIMEOUT


def test_lambda_lets_the_chain_of_jobs_go_on(fanin, tracker):
    # Given the worker, whose jobs put the next job on their own queue
    properties = fanin.properties(tracker.functions["redriver"].function)
    # Then Lambda does not stop it after sixteen
    assert properties["RecursiveLoop"] == "Allow"
    # And a job leaves the rest to the next one long before its time is over
    assert properties["Timeout"] == TIMEOUT
    assert WORK_MS * 2 < TIMEOUT * 1_000
    assert fanin.properties(tracker.redrives.jobs.queue)["VisibilityTimeout"] == 6 * TIMEOUT
