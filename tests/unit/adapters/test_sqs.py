import json
from collections.abc import Iterator
from typing import Any

import boto3
import pytest
from botocore.stub import Stubber
from moto import mock_aws

from fanin.adapters.backoff import Backoff
from fanin.adapters.channels import SqsQueue
from fanin.errors import NotConfigured, RequestTooLarge, Throttled

URL = "https://sqs.eu-west-1.amazonaws.com/123456789012/q"


def sqs() -> Any:
    return boto3.client("sqs")


def queue(client: Any, url: str = URL) -> SqsQueue:
    return SqsQueue(lambda: url, lambda: client, backoff=Backoff(tries=2, sleep=lambda _: None))


@pytest.fixture
def aws() -> Iterator[Any]:
    with mock_aws():
        yield sqs()


@pytest.fixture
def stubbed() -> Iterator[tuple[Any, Stubber]]:
    client = sqs()
    with Stubber(client) as stubber:
        yield client, stubber


def received(client: Any, url: str) -> list[Any]:
    bodies: list[Any] = []
    while messages := client.receive_message(QueueUrl=url, MaxNumberOfMessages=10).get("Messages"):
        bodies += [json.loads(message["Body"]) for message in messages]
    return bodies


@pytest.mark.parametrize("count", [0, 1, 10, 23])
def test_every_message_arrives(aws: Any, count: int) -> None:
    url = aws.create_queue(QueueName="q")["QueueUrl"]

    queue(aws, url).send({"number": number, "text": "☂"} for number in range(count))

    assert sorted(body["number"] for body in received(aws, url)) == list(range(count))


def test_a_message_over_the_limit_is_refused(aws: Any) -> None:
    url = aws.create_queue(QueueName="q")["QueueUrl"]

    with pytest.raises(RequestTooLarge, match="split"):
        queue(aws, url).send([{"pad": "x" * 262_144}])


def test_a_large_message_that_is_not_ascii_is_sent(aws: Any) -> None:
    """ASCII escapes would make it three times as large, over the limit."""
    url = aws.create_queue(QueueName="q")["QueueUrl"]

    queue(aws, url).send([{"text": "é" * 100_000}])

    assert received(aws, url) == [{"text": "é" * 100_000}]


def test_a_queue_that_keeps_failing_is_throttled(stubbed: tuple[Any, Stubber]) -> None:
    client, aws = stubbed
    for _ in range(2):
        failed = [{"Id": "0", "SenderFault": False, "Code": "InternalError"}]
        aws.add_response("send_message_batch", {"Successful": [], "Failed": failed})

    with pytest.raises(Throttled, match="1 messages"):
        queue(client).send([{"n": 1}])


def test_a_message_refused_for_good_is_not_sent_again(stubbed: tuple[Any, Stubber]) -> None:
    client, aws = stubbed
    failed = [{"Id": "0", "SenderFault": True, "Code": "InvalidMessageContents", "Message": "bad"}]
    aws.add_response("send_message_batch", {"Successful": [], "Failed": failed})

    with pytest.raises(RequestTooLarge, match="bad"):
        queue(client).send([{"n": 1}])


def test_a_queue_that_is_not_there_is_a_matter_of_settings(aws: Any) -> None:
    with pytest.raises(NotConfigured):
        queue(aws).send([{"n": 1}])
