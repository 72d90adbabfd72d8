"""The action log of the deployed service: the caller is the one whose signature the gateway has verified."""

from __future__ import annotations

import time

import boto3
import pytest

from fanin import Tracker
from fanin.errors import BatchNotFound
from tests.e2e.deployment import Deployment, eventually

pytestmark = pytest.mark.emulator


@pytest.fixture
def arn(stack, caller: boto3.Session) -> str:
    """ARN of the user with whose keys ``tracker`` signs."""
    answer = caller.client("sts", endpoint_url=stack.endpoint_url).get_caller_identity()
    return str(answer["Arn"])


def test_who_cancels_a_batch_over_https_is_in_the_log(
    deployment: Deployment, tracker: Tracker, arn: str
) -> None:
    # Given a batch with an item, which is done
    since = time.time()
    batch = tracker.open(user_key="catalog-42")
    group = tracker.add(batch.batch_id, 2)
    tracker.ack(group[0])

    # When it is cancelled, and one that does not exist
    tracker.cancel(batch.batch_id)
    with pytest.raises(BatchNotFound):
        tracker.cancel(7)

    # Then the log of the API has a line for each, and none for the acknowledgement
    def logged() -> list[dict]:
        # The emulator may keep the last lines of a worker until its next invocation.
        tracker.status(batch.batch_id)
        lines = [line for line in deployment.actions(since) if line["caller"].get("id") == arn]
        return lines if len(lines) > 1 else []

    cancelled, refused = eventually(logged)
    assert (cancelled["action"], cancelled["object"]) == ("cancelBatch", {"batch_id": str(batch.batch_id)})
    assert (cancelled["outcome"], cancelled["result"]) == (
        {"status": 200},
        {"state": "cancelled", "items": 2},
    )
    assert cancelled["caller"]["kind"] == "iam"
    assert cancelled["caller"]["account"] == arn.split(":")[4]
    assert refused["outcome"] == {"status": 404, "code": "batch-not-found"}
    assert "catalog-42" not in str(cancelled)
