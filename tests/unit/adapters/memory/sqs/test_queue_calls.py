"""Queues by the client in memory, and on moto the same: made, described, tagged, emptied, dropped."""

from __future__ import annotations

import json
from typing import Any

import pytest
from botocore.exceptions import ClientError

from fanin.adapters.memory import Accesses, SeededRandom
from fanin.adapters.memory.sqs import InMemorySqs, QueueStore
from tests.unit.adapters.memory.sqs.conftest import NO_QUEUE, Time, code


def test_tags_and_names(sqs: Any, url: str) -> None:
    sqs.tag_queue(QueueUrl=url, Tags={"fanin:channel": "yes"})
    assert sqs.list_queue_tags(QueueUrl=url)["Tags"] == {"fanin:channel": "yes"}
    assert sqs.get_queue_url(QueueName="work")["QueueUrl"] == url
    assert sqs.create_queue(QueueName="work")["QueueUrl"] == url


def test_a_queue_that_is_purged_is_empty_and_one_that_is_deleted_is_gone(sqs: Any, url: str) -> None:
    sqs.send_message(QueueUrl=url, MessageBody="x")
    sqs.purge_queue(QueueUrl=url)
    assert "Messages" not in sqs.receive_message(QueueUrl=url)
    sqs.delete_queue(QueueUrl=url)
    with pytest.raises(ClientError) as gone:
        sqs.receive_message(QueueUrl=url)
    assert code(gone) == NO_QUEUE


@pytest.mark.parametrize(
    "call", ["send_message", "receive_message", "get_queue_attributes", "list_queue_tags"]
)
def test_a_queue_that_is_not_there(sqs: Any, call: str) -> None:
    more = {"MessageBody": "x"} if call == "send_message" else {}
    with pytest.raises(ClientError) as missing:
        getattr(sqs, call)(QueueUrl="https://sqs.us-east-1.amazonaws.com/123456789012/gone", **more)
    assert code(missing) == NO_QUEUE
    with pytest.raises(ClientError) as unknown:
        sqs.get_queue_url(QueueName="gone")
    assert code(unknown) == NO_QUEUE


def test_a_redrive_policy_must_name_a_queue(memory: InMemorySqs) -> None:
    policy = json.dumps({"deadLetterTargetArn": "arn:aws:sqs:memory:0:gone", "maxReceiveCount": 1})
    with pytest.raises(ClientError) as refused:
        memory.create_queue(QueueName="work", Attributes={"RedrivePolicy": policy})
    assert code(refused) == "InvalidParameterValue"
    with pytest.raises(ClientError):
        memory.get_queue_url(QueueName="work")


def test_an_onlooker_is_let_in_around_each_call(clock: Time) -> None:
    seen: list[tuple[str, str]] = []
    sqs = InMemorySqs(QueueStore(clock, SeededRandom()), Accesses(lambda *call: seen.append(call)))
    sqs.create_queue(QueueName="work")
    assert seen == [("sqs.create_queue", "before"), ("sqs.create_queue", "after")]


def test_attributes_are_told_as_they_were_set(sqs: Any) -> None:
    url = sqs.create_queue(QueueName="work.fifo", Attributes={"FifoQueue": "true", "DelaySeconds": "5"})[
        "QueueUrl"
    ]
    sqs.set_queue_attributes(QueueUrl=url, Attributes={"VisibilityTimeout": "77"})
    names = ["VisibilityTimeout", "DelaySeconds", "FifoQueue", "MessageRetentionPeriod"]
    told = sqs.get_queue_attributes(QueueUrl=url, AttributeNames=names)["Attributes"]
    assert told == {
        "VisibilityTimeout": "77",
        "DelaySeconds": "5",
        "FifoQueue": "true",
        "MessageRetentionPeriod": "345600",
    }


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("VisibilityTimeout", "abc"),
        ("VisibilityTimeout", "43201"),
        ("DelaySeconds", "-1"),
        ("MessageRetentionPeriod", "59"),
        ("ReceiveMessageWaitTimeSeconds", "21"),
        ("MaximumMessageSize", "1023"),
    ],
)
def test_an_attribute_out_of_bounds_is_refused_and_changes_nothing(
    memory: InMemorySqs, name: str, value: str
) -> None:
    url = memory.create_queue(QueueName="work")["QueueUrl"]
    before = memory.get_queue_attributes(QueueUrl=url, AttributeNames=["All"])

    with pytest.raises(ClientError) as error:
        memory.set_queue_attributes(QueueUrl=url, Attributes={"DelaySeconds": "7", name: value})
    assert code(error) == "InvalidAttributeValue"
    assert memory.get_queue_attributes(QueueUrl=url, AttributeNames=["All"]) == before

    with pytest.raises(ClientError) as error:
        memory.create_queue(QueueName="other", Attributes={name: value})
    assert code(error) == "InvalidAttributeValue"


@pytest.mark.parametrize("name", ["", "a" * 81, "a b", "a.b", ".fifo"])
def test_a_queue_name_that_sqs_refuses_is_refused(memory: InMemorySqs, name: str) -> None:
    with pytest.raises(ClientError) as error:
        memory.create_queue(QueueName=name)
    assert code(error) == "InvalidParameterValue"
