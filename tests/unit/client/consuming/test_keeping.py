"""What a consumer keeps of a message in the form of boto3; that of Lambda is read by ``entry``."""

from __future__ import annotations

from fanin.client.consuming.keeping import kept_message, source_of
from fanin.client.messages import from_queue
from fanin.domain.failures import KeptMessage, MessageAttribute


def test_of_a_message_that_was_polled_all_but_the_item_is_kept() -> None:
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

    assert kept_message(message) == KeptMessage(
        "body",
        {
            "kind": MessageAttribute("String", "a"),
            "cents": MessageAttribute("Number.cents", "7"),
            "blob": MessageAttribute("Binary", b"\x00\xff"),
        },
        "g",
    )
    assert source_of(message) == ""
