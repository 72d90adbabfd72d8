"""What a consumer keeps of a message whose item has failed: all that it takes to send it again."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fanin.client.messages import ReceivedMessage
from fanin.domain.failures import KeptMessage, MessageAttribute
from fanin.entry import kept_messages
from fanin.names import ITEM_ATTRIBUTE


def kept_message(message: ReceivedMessage) -> KeptMessage:
    """The message with its attributes of every type, but for the item id, which a repeat has anew."""
    if "messageId" in message.raw:
        return kept_messages.kept_message(message.raw)
    attributes = {
        name: _attribute(value)
        for name, value in message.raw.get("MessageAttributes", {}).items()
        if name != ITEM_ATTRIBUTE
    }
    return KeptMessage(message.body, attributes, message.group_id)


def source_of(message: ReceivedMessage) -> str:
    """ARN of the queue that Lambda got the message from; empty if it came from polling."""
    return str(message.raw.get("eventSourceARN", ""))


def _attribute(value: Mapping[str, Any]) -> MessageAttribute:
    """An attribute in an answer to ReceiveMessage."""
    if value.get("BinaryValue") is not None:
        return MessageAttribute(value["DataType"], bytes(value["BinaryValue"]))
    return MessageAttribute(value["DataType"], value.get("StringValue") or "")
