"""Queues of the patched emulator, by its API."""

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


@pytest.mark.parametrize("fifo", [False, True])
def test_each_message_is_received_once_and_deleted_for_good(sqs: Any, fifo: bool) -> None:
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
