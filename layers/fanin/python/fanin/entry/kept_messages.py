"""What is kept of a message that Lambda got from a queue: all that it takes to send it again."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from typing import Any

from fanin.domain.acks import Failure, dead_letter_reason
from fanin.domain.failures import KeptMessage, MessageAttribute
from fanin.names import ITEM_ATTRIBUTE


def kept_message(record: Mapping[str, Any]) -> KeptMessage:
    """The message of a record of an SQS event, without the attribute of its item id.

    A repeat of the message has an item id of its own. All other attributes are kept, whatever their type.
    """
    attributes = {
        name: _attribute(value)
        for name, value in record.get("messageAttributes", {}).items()
        if name != ITEM_ATTRIBUTE
    }
    return KeptMessage(record["body"], attributes, record.get("attributes", {}).get("MessageGroupId"))


def dead_failure(message: Mapping[str, Any], item: str, source: str, error: str, *, kept: bool) -> Failure:
    """The failure of an item whose message died.

    Args:
        message: a record of a dead-letter queue.
        item: its item.
        source: URL or ARN of the queue that gave it up; empty if that is not known.
        error: why the last attempt failed; empty if that is not known.
        kept: whether the message itself is kept.
    """
    received = message["attributes"]["ApproximateReceiveCount"]
    queue = (source or message["eventSourceARN"]).rpartition(":")[2].rpartition("/")[2]
    return Failure(
        item,
        dead_letter_reason(received, queue, error),
        kept_message(message) if kept else None,
        attempts=int(received),
        source=source,
    )


def _attribute(value: Mapping[str, Any]) -> MessageAttribute:
    if value.get("binaryValue") is not None:
        return MessageAttribute(value.get("dataType", "Binary"), base64.b64decode(value["binaryValue"]))
    return MessageAttribute(value.get("dataType", "String"), value.get("stringValue") or "")
