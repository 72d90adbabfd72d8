"""Dead letters are moved back in the patched emulator, by its API."""

import json
import os
from typing import Any

import boto3
import pytest

pytestmark = pytest.mark.emulator


@pytest.fixture
def sqs() -> Any:
    return boto3.client(
        "sqs",
        endpoint_url=os.environ["FANIN_TEST_ENDPOINT"],
        region_name="eu-west-1",
        aws_access_key_id="test",
        aws_secret_access_key="test",  # noqa: S106
    )


def count(sqs: Any, url: str) -> tuple[int, int]:
    """How many messages are visible, and in flight."""
    found = sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["All"])["Attributes"]
    return (
        int(found["ApproximateNumberOfMessages"]),
        int(found["ApproximateNumberOfMessagesNotVisible"]),
    )


def test_dead_letters_go_back_to_the_queue_that_they_died_in(sqs: Any) -> None:
    # Given a message that died, and one of another kind in the same dead-letter queue
    def made(name: str, **attributes: str) -> tuple[str, str]:
        url = sqs.create_queue(QueueName=name, Attributes={"VisibilityTimeout": "0", **attributes})[
            "QueueUrl"
        ]
        return url, sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["QueueArn"])["Attributes"][
            "QueueArn"
        ]

    dead, arn = made("moves-dead")
    url, _ = made("moves", RedrivePolicy=json.dumps({"deadLetterTargetArn": arn, "maxReceiveCount": "1"}))
    sqs.send_message(QueueUrl=dead, MessageBody="not a dead letter")
    sqs.send_message(QueueUrl=url, MessageBody="died")
    for _ in range(2):
        sqs.receive_message(QueueUrl=url)
    assert (count(sqs, url), count(sqs, dead)) == ((0, 0), (2, 0))
    # When they are moved back, as `fanin why` says
    assert sqs.start_message_move_task(SourceArn=arn)["TaskHandle"]
    # Then the one that died can be received as if it were new, and the other stays
    assert (count(sqs, url), count(sqs, dead)) == ((1, 0), (1, 0))
    received = sqs.receive_message(QueueUrl=url, MessageSystemAttributeNames=["ApproximateReceiveCount"])
    assert received["Messages"][0]["Attributes"]["ApproximateReceiveCount"] == "1"
    with pytest.raises(sqs.exceptions.ResourceNotFoundException):
        sqs.start_message_move_task(SourceArn=f"{arn}-none")
    for one in (url, dead):
        sqs.delete_queue(QueueUrl=one)
