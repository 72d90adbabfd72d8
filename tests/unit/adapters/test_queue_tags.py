"""What the tags of a dead-letter queue say."""

from __future__ import annotations

from typing import Any

import pytest
from botocore.exceptions import ClientError

from fanin.adapters.memory import FixedClock
from fanin.adapters.received_messages import FRESH_MS, QueueTags
from fanin.domain.failures import Keep
from fanin.errors import Throttled

ARN = "arn:aws:sqs:eu-west-1:123456789012:dead"


class Sqs:
    """A client whose queue has some tags, or that fails with an error."""

    def __init__(self, tags: dict[str, str] | None = None, *, error: str | None = None) -> None:
        self.tags, self.error, self.asked = tags, error, 0

    def get_queue_url(self, *, QueueName: str, QueueOwnerAWSAccountId: str) -> Any:  # noqa: N803
        return {"QueueUrl": f"https://sqs/{QueueOwnerAWSAccountId}/{QueueName}"}

    def list_queue_tags(self, *, QueueUrl: str) -> Any:  # noqa: N803
        assert QueueUrl == "https://sqs/123456789012/dead"
        self.asked += 1
        if self.error:
            raise ClientError({"Error": {"Code": self.error, "Message": ""}}, "ListQueueTags")
        return {} if self.tags is None else {"Tags": self.tags}


def tags(sqs: Sqs, clock: FixedClock | None = None) -> QueueTags:
    return QueueTags(clock or FixedClock(), lambda: sqs)  # type: ignore[arg-type,return-value]


@pytest.mark.parametrize(
    ("found", "keep"),
    [
        (None, Keep.MESSAGE),
        ({"team": "a"}, Keep.MESSAGE),
        ({"fanin:keep": "message"}, Keep.MESSAGE),
        ({"fanin:keep": "reason"}, Keep.REASON),
    ],
)
def test_messages_are_kept_unless_the_queue_says_otherwise(found: dict[str, str] | None, keep: Keep) -> None:
    assert tags(Sqs(found)).keep(ARN) is keep


def test_tags_are_remembered_for_a_minute() -> None:
    sqs, clock = Sqs(), FixedClock()
    reader = tags(sqs, clock)
    reader.keep(ARN)
    clock.advance(FRESH_MS - 1)
    assert (reader.keep(ARN), sqs.asked) == (Keep.MESSAGE, 1)

    sqs.tags = {"fanin:keep": "reason"}
    clock.advance(1)
    assert (reader.keep(ARN), sqs.asked) == (Keep.REASON, 2)


def test_a_queue_whose_tags_nobody_may_read_has_none() -> None:
    assert tags(Sqs(error="AccessDenied")).keep(ARN) is Keep.MESSAGE


def test_a_queue_that_does_not_answer_decides_nothing() -> None:
    sqs = Sqs({"fanin:keep": "reason"}, error="RequestThrottled")
    reader = tags(sqs)
    with pytest.raises(Throttled):
        reader.keep(ARN)

    sqs.error = None
    assert reader.keep(ARN) is Keep.REASON
