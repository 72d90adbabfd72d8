"""What a consumer keeps of a message, in the form of Lambda and in that of boto3."""

from __future__ import annotations

from fanin.client.consuming.keeping import kept_message, source_of
from fanin.client.messages import from_lambda, from_queue
from fanin.domain.failures import KeptMessage, MessageAttribute

KEPT = KeptMessage(
    "body",
    {
        "kind": MessageAttribute("String", "a"),
        "cents": MessageAttribute("Number.cents", "7"),
        "blob": MessageAttribute("Binary", b"\x00\xff"),
    },
    "g",
)


def test_of_lambda_s_form_all_but_the_item_is_kept() -> None:
    message = from_lambda(
        {
            "messageId": "m",
            "body": "body",
            "attributes": {"MessageGroupId": "g"},
            "messageAttributes": {
                "fanin-item": {"stringValue": "1:g:0", "dataType": "String"},
                "kind": {"stringValue": "a", "dataType": "String"},
                "cents": {"stringValue": "7", "dataType": "Number.cents"},
                "blob": {"binaryValue": "AP8=", "dataType": "Binary"},
            },
            "eventSourceARN": "arn:q",
        }
    )

    assert kept_message(message) == KEPT
    assert source_of(message) == "arn:q"


def test_of_boto3_s_form_the_same_is_kept() -> None:
    message = from_queue(
        {
            "MessageId": "m",
            "Body": "body",
            "Attributes": {"MessageGroupId": "g"},
            "MessageAttributes": {
                "fanin-item": {"StringValue": "1:g:0", "DataType": "String"},
                "kind": {"StringValue": "a", "DataType": "String"},
                "cents": {"StringValue": "7", "DataType": "Number.cents"},
                "blob": {"BinaryValue": b"\x00\xff", "DataType": "Binary"},
            },
        }
    )

    assert kept_message(message) == KEPT
    assert source_of(message) == ""
