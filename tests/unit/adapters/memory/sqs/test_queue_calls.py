"""Queues are made, described, tagged and dropped as by boto3's client."""

from __future__ import annotations

from typing import Any

import pytest
from botocore.exceptions import ClientError

from fanin.adapters.memory import Accesses
from fanin.adapters.memory.sqs import InMemorySqs, QueueStore
from tests.unit.adapters.memory.sqs.conftest import NOW, code

NONE = "memory://sqs/000000000000/none"


def test_a_queue_is_made_with_its_attributes_and_tags(sqs: InMemorySqs) -> None:
    url = sqs.create_queue(
        QueueName="jobs", Attributes={"VisibilityTimeout": "7"}, tags={"fanin:channel": "buffer"}
    )["QueueUrl"]

    assert sqs.get_queue_url(QueueName="jobs", QueueOwnerAWSAccountId="000000000000") == {"QueueUrl": url}
    assert sqs.list_queue_tags(QueueUrl=url) == {"Tags": {"fanin:channel": "buffer"}}
    asked = sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["VisibilityTimeout"])
    assert asked == {"Attributes": {"VisibilityTimeout": "7"}}


def test_all_attributes_are_text_and_those_that_are_not_there_are_left_out(sqs: InMemorySqs) -> None:
    url = sqs.create_queue(QueueName="jobs")["QueueUrl"]
    for delay in (0, 0, 5):
        sqs.send_message(QueueUrl=url, MessageBody="x", DelaySeconds=delay)
    sqs.receive_message(QueueUrl=url)

    told = sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["All"])["Attributes"]
    assert {type(value) for value in told.values()} == {str}
    assert told["QueueArn"] == "arn:aws:sqs:memory:000000000000:jobs"
    assert told["CreatedTimestamp"] == str(NOW // 1000)
    counts = ["", "NotVisible", "Delayed"]
    assert [told[f"ApproximateNumberOfMessages{count}"] for count in counts] == ["1", "1", "1"]

    named = ["QueueArn", "Policy", "FifoQueue"]
    assert sqs.get_queue_attributes(QueueUrl=url, AttributeNames=named)["Attributes"].keys() == {"QueueArn"}
    assert sqs.get_queue_attributes(QueueUrl=url) == {"Attributes": {}}


def test_a_fifo_queue_says_that_it_is_one(sqs: InMemorySqs) -> None:
    url = sqs.create_queue(QueueName="jobs.fifo", Attributes={"FifoQueue": "true"})["QueueUrl"]

    told = sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["All"])["Attributes"]
    assert told["FifoQueue"] == "true"


def test_attributes_and_tags_are_changed_one_by_one(sqs: InMemorySqs) -> None:
    url = sqs.create_queue(QueueName="jobs", tags={"a": "1", "b": "1"})["QueueUrl"]

    assert sqs.set_queue_attributes(QueueUrl=url, Attributes={"Policy": "{}"}) == {}
    assert sqs.tag_queue(QueueUrl=url, Tags={"b": "2"}) == {}

    told = sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["Policy", "DelaySeconds"])
    assert told["Attributes"] == {"Policy": "{}", "DelaySeconds": "0"}
    assert sqs.list_queue_tags(QueueUrl=url)["Tags"] == {"a": "1", "b": "2"}


def test_what_a_caller_does_to_an_answer_changes_no_queue(sqs: InMemorySqs) -> None:
    url = sqs.create_queue(QueueName="jobs", tags={"a": "1"})["QueueUrl"]

    sqs.list_queue_tags(QueueUrl=url)["Tags"].clear()
    sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["All"])["Attributes"].clear()

    assert sqs.list_queue_tags(QueueUrl=url)["Tags"] == {"a": "1"}
    assert sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["DelaySeconds"])["Attributes"]


@pytest.mark.parametrize("policy", ["not JSON", '["list"]', "{}x", '{"deadLetterTargetArn": "none"}'])
def test_a_redrive_policy_that_cannot_be_is_refused(sqs: InMemorySqs, policy: str) -> None:
    url = sqs.create_queue(QueueName="jobs")["QueueUrl"]

    with pytest.raises(ClientError, match="RedrivePolicy") as caught:
        sqs.create_queue(QueueName="work", Attributes={"RedrivePolicy": policy})
    assert code(caught) == "InvalidParameterValue"

    with pytest.raises(ClientError, match="SetQueueAttributes") as caught:
        sqs.set_queue_attributes(QueueUrl=url, Attributes={"RedrivePolicy": policy})
    assert code(caught) == "InvalidParameterValue"


def test_a_purged_queue_is_empty_and_a_deleted_one_is_gone(sqs: InMemorySqs) -> None:
    url = sqs.create_queue(QueueName="jobs")["QueueUrl"]
    sqs.send_message(QueueUrl=url, MessageBody="x")

    assert sqs.purge_queue(QueueUrl=url) == {}
    assert sqs.receive_message(QueueUrl=url) == {}

    assert sqs.delete_queue(QueueUrl=url) == {}
    with pytest.raises(ClientError) as caught:
        sqs.delete_queue(QueueUrl=url)
    assert code(caught) == "AWS.SimpleQueueService.NonExistentQueue"


@pytest.mark.parametrize(
    ("call", "operation", "arguments"),
    [
        ("delete_queue", "DeleteQueue", {}),
        ("get_queue_attributes", "GetQueueAttributes", {}),
        ("set_queue_attributes", "SetQueueAttributes", {"Attributes": {}}),
        ("list_queue_tags", "ListQueueTags", {}),
        ("tag_queue", "TagQueue", {"Tags": {}}),
        ("purge_queue", "PurgeQueue", {}),
    ],
)
def test_of_a_queue_that_is_not_there_every_call_says_so(
    sqs: InMemorySqs, call: str, operation: str, arguments: dict[str, Any]
) -> None:
    with pytest.raises(ClientError, match=operation) as caught:
        getattr(sqs, call)(QueueUrl=NONE, **arguments)

    assert code(caught) == "AWS.SimpleQueueService.NonExistentQueue"


def test_a_name_of_no_queue_has_no_url(sqs: InMemorySqs) -> None:
    with pytest.raises(ClientError, match="GetQueueUrl"):
        sqs.get_queue_url(QueueName="none")


def test_every_call_is_counted_and_can_be_watched(store: QueueStore) -> None:
    seen: list[tuple[str, str]] = []
    accesses = Accesses(lambda call, moment: seen.append((call, moment)))
    sqs = InMemorySqs(store, accesses)

    url = sqs.create_queue(QueueName="jobs")["QueueUrl"]
    with pytest.raises(ClientError):
        sqs.purge_queue(QueueUrl=NONE)
    sqs.purge_queue(QueueUrl=url)

    assert accesses.sends == {"sqs.create_queue": 1, "sqs.purge_queue": 2}
    assert seen[:2] == [("sqs.create_queue", "before"), ("sqs.create_queue", "after")]
    assert seen[2:4] == [("sqs.purge_queue", "before"), ("sqs.purge_queue", "before")]


def test_it_says_where_it_is(sqs: InMemorySqs) -> None:
    """``SqsQueues`` asks: only a queue that is reached by HTTPS is closed to plain HTTP."""
    url = sqs.create_queue(QueueName="jobs")["QueueUrl"]

    assert url.startswith(sqs.meta.endpoint_url)
    assert not sqs.meta.endpoint_url.startswith("https:")
