"""Messages: what is sent, and what is read of a message that was received."""

import json
from typing import Any

import pytest

from fanin import ReceivedMessage
from fanin.client.messages import attribute_value, read_message

FROM_LAMBDA: dict[str, Any] = {
    "messageId": "m1",
    "receiptHandle": "r1",
    "body": '{"row": 7}',
    "attributes": {"ApproximateReceiveCount": "3", "MessageGroupId": "g"},
    "messageAttributes": {
        "fanin-item": {"stringValue": "1:g:0", "dataType": "String"},
        "n": {"stringValue": "1.5", "dataType": "Number"},
        "raw": {"binaryValue": "AAE=", "dataType": "Binary"},
    },
}
FROM_QUEUE: dict[str, Any] = {
    "MessageId": "m1",
    "ReceiptHandle": "r1",
    "Body": '{"row": 7}',
    "Attributes": {"ApproximateReceiveCount": "3", "MessageGroupId": "g"},
    "MessageAttributes": {
        "fanin-item": {"StringValue": "1:g:0", "DataType": "String"},
        "n": {"StringValue": "1.5", "DataType": "Number"},
        "raw": {"BinaryValue": b"\x00\x01", "DataType": "Binary"},
    },
}


@pytest.mark.parametrize("raw", [FROM_LAMBDA, FROM_QUEUE])
def test_a_message_reads_the_same_from_lambda_and_from_the_queue(raw):
    message = read_message(raw)
    assert message == ReceivedMessage(
        message_id="m1",
        body='{"row": 7}',
        item="1:g:0",
        attributes={"fanin-item": "1:g:0", "n": "1.5"},
        group_id="g",
        receive_count=3,
        raw=raw,
    )
    assert message.json() == {"row": 7}
    assert not message.expects_reply


@pytest.mark.parametrize("raw", [{"messageId": "m", "body": "x"}, {"MessageId": "m", "Body": "x"}])
def test_a_message_of_no_batch_has_no_item_and_counts_as_received_once(raw):
    message = read_message(raw)
    assert (message.item, message.group_id, message.receive_count) == (None, None, 1)
    assert message.attributes == {}
    with pytest.raises(json.JSONDecodeError):
        message.json()


def test_a_message_that_names_a_reply_queue_expects_a_reply():
    attributes = {"fanin-reply-to": {"stringValue": "https://sqs/replies"}}
    assert read_message({**FROM_LAMBDA, "messageAttributes": attributes}).expects_reply


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("", {"DataType": "String", "StringValue": ""}),
        (7, {"DataType": "Number", "StringValue": "7"}),
        (1.5, {"DataType": "Number", "StringValue": "1.5"}),
        (b"\x00", {"DataType": "Binary", "BinaryValue": b"\x00"}),
    ],
)
def test_an_attribute_is_written_with_its_type(value, expected):
    assert attribute_value(value) == expected


@pytest.mark.parametrize(
    ("item", "batch_id", "index"),
    [
        ("7:g:12", 7, 12),
        (None, None, None),
        ("x:g:12", None, None),
        ("7", None, None),
        ("7:g:-1", None, None),
    ],
)
def test_a_message_knows_its_batch_and_its_place(item, batch_id, index):
    message = ReceivedMessage("m", "body", item, {}, None, 1, {})
    assert (message.batch_id, message.index) == (batch_id, index)
