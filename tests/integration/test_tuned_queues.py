"""Queues of the patched emulator, by its API."""

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
        aws_secret_access_key="test",
    )


def count(sqs: Any, url: str) -> tuple[int, int]:
    """How many messages are visible, and in flight."""
    found = sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["All"])["Attributes"]
    return (int(found["ApproximateNumberOfMessages"]), int(found["ApproximateNumberOfMessagesNotVisible"]))


@pytest.mark.parametrize("fifo", [False, True])
def test_each_message_is_received_once_and_deleted_for_good(sqs, fifo):
    # Given a queue with messages
    url = sqs.create_queue(
        QueueName=f"long-{fifo}{'.fifo' * fifo}",
        Attributes={"FifoQueue": "true", "ContentBasedDeduplication": "true"} if fifo else {},
    )["QueueUrl"]
    bodies = [f"body {n}" for n in range(60)]
    for body in bodies:
        sqs.send_message(QueueUrl=url, MessageBody=body, **({"MessageGroupId": body} if fifo else {}))
    # When they are received, and all but three are deleted, alone or with others and a wrong handle
    received = []
    while messages := sqs.receive_message(QueueUrl=url, MaxNumberOfMessages=10).get("Messages"):
        received += messages
    handles = [message["ReceiptHandle"] for message in received]
    for handle in handles[3:10]:
        sqs.delete_message(QueueUrl=url, ReceiptHandle=handle)
    for at in range(10, 60, 5):
        entries = [{"Id": str(n), "ReceiptHandle": handles[n]} for n in range(at, at + 5)]
        answer = sqs.delete_message_batch(QueueUrl=url, Entries=[*entries, {"Id": "x", "ReceiptHandle": "x"}])
        assert [one["Id"] for one in answer["Successful"]] == [entry["Id"] for entry in entries]
        assert [(one["Id"], one["Code"]) for one in answer["Failed"]] == [("x", "ReceiptHandleIsInvalid")]
    # Then each was received once, in its order, and three are left
    assert [message["Body"] for message in received] == bodies
    assert count(sqs, url) == (0, 3)
    with pytest.raises(sqs.exceptions.ReceiptHandleIsInvalid):
        sqs.delete_message(QueueUrl=url, ReceiptHandle=handles[3])
    # And these come again when they are visible again, under another handle
    for handle in handles[:3]:
        sqs.change_message_visibility(QueueUrl=url, ReceiptHandle=handle, VisibilityTimeout=0)
    again = sqs.receive_message(QueueUrl=url, MaxNumberOfMessages=10)["Messages"]
    assert [message["Body"] for message in again] == bodies[:3]
    assert count(sqs, url) == (0, 3)
    sqs.delete_queue(QueueUrl=url)


def test_dead_letters_go_back_to_the_queue_that_they_died_in(sqs):
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
