from __future__ import annotations

from typing import Any

import pytest
from botocore.exceptions import ClientError

from fanin.adapters.received_messages import DeadLetterSources

ARN = "arn:aws:sqs:eu-west-1:1:work-dlq"
WORK = "arn:aws:sqs:eu-west-1:1:work"


class Sqs:
    def __init__(self, *sources: str) -> None:
        self.sources = sources
        self.failing = False
        self.asked = 0

    def get_queue_url(self, **_: str) -> Any:
        return {"QueueUrl": "https://sqs/1/work-dlq"}

    def list_dead_letter_source_queues(self, *, QueueUrl: str) -> Any:  # noqa: N803
        assert QueueUrl.endswith("/work-dlq")
        self.asked += 1
        if self.failing:
            raise ClientError({"Error": {"Code": "AccessDenied"}}, "ListDeadLetterSourceQueues")
        return {"queueUrls": [f"https://sqs/1/{name}" for name in self.sources]}


def sources(sqs: Any) -> DeadLetterSources:
    return DeadLetterSources(lambda: sqs)


def test_the_source_is_asked_for_once() -> None:
    sqs = Sqs("work")
    found = sources(sqs)

    assert [found.arn_of(ARN), found.arn_of(ARN)] == [WORK, WORK]
    assert sqs.asked == 1


@pytest.mark.parametrize("names", [(), ("work", "other")])
def test_of_several_sources_none_is_named(names: tuple[str, ...]) -> None:
    assert sources(Sqs(*names)).arn_of(ARN) is None


def test_what_could_not_be_listed_is_asked_again() -> None:
    sqs = Sqs("work")
    found = sources(sqs)

    sqs.failing = True
    assert found.arn_of(ARN) is None
    sqs.failing = False
    assert found.arn_of(ARN) == WORK
