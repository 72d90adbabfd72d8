"""Messages on their way out and in: what a producer sends, and what a consumer is handed."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from fanin.names import ATTRIBUTE_REPLY_TO, ITEM_ATTRIBUTE

Attribute: TypeAlias = str | int | float | bytes

Sendable: TypeAlias = "str | Mapping[str, Any] | Message"
"""What a producer may send: a body, an object for a JSON body, or a ``Message`` with everything."""


@dataclass(frozen=True, slots=True)
class Message:
    """A message to send, with what SQS lets it carry.

    Attributes:
        body: the text, or an object that is sent as JSON.
        attributes: message attributes; SQS allows ten, and the item id is one of them.
        group_id: message group of a FIFO queue; by default the batch, which keeps the batch in order.
        dedup_id: deduplication id of a FIFO queue; by default the item id.
        delay: seconds until it may be received, 0 to 900; not on FIFO queues.
    """

    body: str | Mapping[str, Any]
    attributes: Mapping[str, Attribute] = field(default_factory=dict)
    group_id: str | None = None
    dedup_id: str | None = None
    delay: int | None = None

    @classmethod
    def of(cls, sendable: Sendable) -> Message:
        return sendable if isinstance(sendable, Message) else cls(sendable)

    @property
    def text(self) -> str:
        """The body as sent."""
        return self.body if isinstance(self.body, str) else json.dumps(self.body, ensure_ascii=False)


def attribute_value(value: Attribute) -> dict[str, Any]:
    """A message attribute in the form of the SQS API."""
    if isinstance(value, bytes):
        return {"DataType": "Binary", "BinaryValue": value}
    if isinstance(value, str):
        return {"DataType": "String", "StringValue": value}
    return {"DataType": "Number", "StringValue": str(value)}


@dataclass(frozen=True, slots=True)
class ReceivedMessage:
    """A message that a consumer handles, the same from a Lambda event and from polling.

    Attributes:
        message_id: id that SQS gave it.
        body: the text.
        item: its item id; None for a message that no batch tracks.
        attributes: its message attributes, as text (binary ones are left out).
        group_id: message group, on FIFO queues.
        receive_count: how often it was received, this time included.
        raw: the record as it came.
    """

    message_id: str
    body: str
    item: str | None
    attributes: Mapping[str, str]
    group_id: str | None
    receive_count: int
    raw: Mapping[str, Any]

    @property
    def asks_reply(self) -> bool:
        """Whether it is of a scatter: its item is done when it is replied to, not when it was handled."""
        return ATTRIBUTE_REPLY_TO in self.attributes

    def json(self) -> Any:
        """The body, parsed.

        Raises:
            json.JSONDecodeError: the body is not JSON.
        """
        return json.loads(self.body)


def from_lambda(record: Mapping[str, Any]) -> ReceivedMessage:
    """Read a record of the event that Lambda hands to a consumer of SQS."""
    system = record.get("attributes", {})
    attributes = {
        name: value["stringValue"]
        for name, value in record.get("messageAttributes", {}).items()
        if value.get("stringValue") is not None
    }
    return _received(record["messageId"], record["body"], attributes, system, record)


def from_queue(message: Mapping[str, Any]) -> ReceivedMessage:
    """Read a message of a ReceiveMessage answer."""
    attributes = {
        name: value["StringValue"]
        for name, value in message.get("MessageAttributes", {}).items()
        if value.get("StringValue") is not None
    }
    return _received(
        message["MessageId"], message["Body"], attributes, message.get("Attributes", {}), message
    )


def _received(
    message_id: str,
    body: str,
    attributes: Mapping[str, str],
    system: Mapping[str, str],
    raw: Mapping[str, Any],
) -> ReceivedMessage:
    return ReceivedMessage(
        message_id=message_id,
        body=body,
        item=attributes.get(ITEM_ATTRIBUTE),
        attributes=attributes,
        group_id=system.get("MessageGroupId"),
        receive_count=int(system.get("ApproximateReceiveCount", "1")),
        raw=raw,
    )
