"""What is kept of a message from a queue: all that it takes to send it again."""

import base64
from collections.abc import Mapping
from typing import Any

from fanin.app.ports.parts import RetryRow
from fanin.domain.failures import KeptMessage, MessageAttribute
from fanin.domain.limits import MAX_REASON
from fanin.domain.marks import Failure
from fanin.names import ITEM_ATTRIBUTE


def in_lambda_form(message: Mapping[str, Any]) -> dict[str, Any]:
    """A message, or a value in it, as Lambda delivers it: in answers of SQS, names begin with a capital."""
    return {name[:1].lower() + name[1:]: value for name, value in message.items()}


def kept_message(received: Mapping[str, Any]) -> KeptMessage:
    """What Lambda or SQS delivered, without the attribute of its item id.

    A repeat of the message has an item id of its own. All other attributes are kept, whatever their type.
    """
    message = in_lambda_form(received)
    sent = message.get("messageAttributes", {}).items()
    attributes = {name: _attribute(in_lambda_form(value)) for name, value in sent if name != ITEM_ATTRIBUTE}
    return KeptMessage(message["body"], attributes, message.get("attributes", {}).get("MessageGroupId"))


def dead_failure(
    message: Mapping[str, Any], item: str, source: str, last: RetryRow | None, *, kept: bool
) -> Failure:
    """The failure of an item whose message died.

    Args:
        message: a record of a dead-letter queue.
        item: its item.
        source: URL or ARN of the queue that gave it up; empty if it is not known: then the note tells.
        last: the note of the last attempt at the item; None if there is none.
        kept: whether the message itself is kept.
    """
    received = message["attributes"]["ApproximateReceiveCount"]
    dead_letters = message["eventSourceARN"]
    source = message["attributes"].get("DeadLetterQueueSourceArn") or source or _noted(last, dead_letters)
    reason = f"dead letter: received {received} times from {_name(source or dead_letters)}"
    if last and last.error:
        reason = f"{reason}: {last.error}"[:MAX_REASON]
    whole = kept_message(message) if kept else None
    return Failure(item, reason, whole, attempts=int(received), source=source)


def _noted(last: RetryRow | None, dead_letters: str) -> str:
    """ARN of the queue in which an item was tried; a queue and its dead letters share region and account."""
    name = _name(last.queue) if last else ""
    return f"{dead_letters.rpartition(':')[0]}:{name}" if name else ""


def _name(queue: str) -> str:
    """The name of a queue that is given by URL, ARN or name."""
    return queue.rpartition("/")[2].rpartition(":")[2]


def _attribute(value: Mapping[str, Any]) -> MessageAttribute:
    if (binary := value.get("binaryValue")) is not None:
        content = base64.b64decode(binary) if isinstance(binary, str) else bytes(binary)
        return MessageAttribute(value.get("dataType", "Binary"), content)
    return MessageAttribute(value.get("dataType", "String"), value.get("stringValue") or "")
