"""What SQS checks in a request, how it refuses one, and how it describes a message."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Collection, Mapping, Sequence
from typing import Any, Final

from botocore.exceptions import ClientError

from fanin.adapters.memory.sqs.queue import MessageInFlight, Queue
from fanin.domain import limits
from fanin.errors import InvalidRequest

MOST_ENTRIES: Final = 10
MOST_ATTRIBUTES: Final = 10
LONGEST_WAIT: Final = 20  # seconds
LONGEST_DELAY: Final = 900
LONGEST_HIDDEN: Final = 43_200
_OWN: Final = "AWS.SimpleQueueService."
_ID: Final = "[!-~]{1,128}"
"""Of a message group, or for deduplication."""
_NUMBER: Final = r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?"


def refusal(operation: str, code: str, message: str) -> ClientError:
    """A refusal of SQS, as botocore raises it."""
    response: Any = {
        "Error": {"Code": code, "Message": message, "Type": "Sender"},
        "ResponseMetadata": {"HTTPStatusCode": 400, "RetryAttempts": 0},
    }
    return ClientError(response, operation)


def no_queue(operation: str) -> ClientError:
    return refusal(operation, f"{_OWN}NonExistentQueue", "The specified queue does not exist.")


def not_in_flight(operation: str) -> ClientError:
    return refusal(operation, f"{_OWN}MessageNotInflight", "The message is not in flight.")


def check_handle(operation: str, queue: Queue, handle: str) -> None:
    """Check that a receipt handle looks like one of the queue.

    Raises:
        ClientError: it is not.
    """
    if not handle.startswith(f"{queue.name}#"):
        raise refusal(operation, "ReceiptHandleIsInvalid", "The input receipt handle is invalid.")


def check_number(operation: str, name: str, value: int, least: int, most: int) -> None:
    """Check that a parameter is within its bounds.

    Raises:
        ClientError: it is not.
    """
    if not least <= value <= most:
        raise refusal(
            operation,
            "InvalidParameterValue",
            f"Value {value} for parameter {name} is invalid. Reason: Must be between {least} and {most}.",
        )


def check_entries(operation: str, entries: Sequence[Mapping[str, Any]]) -> None:
    """Check that a batch has one to ten entries with distinct ids.

    Raises:
        ClientError: it does not.
    """
    if not entries:
        raise refusal(operation, f"{_OWN}EmptyBatchRequest", "There should be at least one entry.")
    if len(entries) > MOST_ENTRIES:
        code = f"{_OWN}TooManyEntriesInBatchRequest"
        raise refusal(operation, code, f"Maximum number of entries per request are {MOST_ENTRIES}.")
    if len({entry["Id"] for entry in entries}) < len(entries):
        raise refusal(operation, f"{_OWN}BatchEntryIdsNotDistinct", "Two or more entries have the same Id.")


def check_size(operation: str, queue: Queue, entries: Sequence[Mapping[str, Any]]) -> None:
    """Check that the messages of a request together do not exceed the queue's maximum message size.

    Raises:
        ClientError: they do.
    """
    size, most = sum(map(_size, entries)), queue.seconds("MaximumMessageSize")
    if size > most:
        code = f"{_OWN}BatchRequestTooLong" if operation.endswith("Batch") else "InvalidParameterValue"
        raise refusal(operation, code, f"{size} bytes are more than the maximum of {most}.")


def fault(queue: Queue, entry: Mapping[str, Any]) -> tuple[str, str] | None:
    """Why the queue refuses a message, as code and text; None if it accepts it."""
    if not entry["MessageBody"]:
        return "MissingParameter", "The request must contain the parameter MessageBody."
    try:
        limits.sendable("the message body", entry["MessageBody"])
    except InvalidRequest as error:
        return "InvalidMessageContents", str(error)
    if queue.fifo and "MessageGroupId" not in entry:
        return "MissingParameter", "The request must contain the parameter MessageGroupId."
    if queue.fifo and dedup_id(queue, entry) is None:
        return "InvalidParameterValue", (
            "The queue should either have ContentBasedDeduplication enabled or MessageDeduplicationId"
            " provided explicitly"
        )
    return _parameter_fault(queue, entry) or _attribute_fault(entry.get("MessageAttributes") or {})


def _parameter_fault(queue: Queue, entry: Mapping[str, Any]) -> tuple[str, str] | None:
    for name in ("MessageGroupId", "MessageDeduplicationId", "DelaySeconds"):
        value, why = entry.get(name), ""
        if value is None:
            continue
        if name == ("DelaySeconds" if queue.fifo else "MessageDeduplicationId"):
            why = "The request include parameter that is not valid for this queue type."
        elif name == "DelaySeconds" and not 0 <= value <= LONGEST_DELAY:
            why = f"{name} must be >= 0 and <= {LONGEST_DELAY}."
        elif name != "DelaySeconds" and not re.fullmatch(_ID, value):
            why = f"{name} can only include alphanumeric and punctuation characters. 1 to 128 in length."
        if why:
            return "InvalidParameterValue", f"Value {value} for parameter {name} is invalid. Reason: {why}"
    return None


def _attribute_fault(attributes: Mapping[str, Any]) -> tuple[str, str] | None:
    if (count := len(attributes)) > MOST_ATTRIBUTES:
        said = f"Number of message attributes [{count}] exceeds the allowed maximum [{MOST_ATTRIBUTES}]."
        return "InvalidParameterValue", said
    for name, value in attributes.items():
        kind = value["DataType"]
        given = value.get("BinaryValue" if kind.startswith("Binary") else "StringValue")
        if not given:
            return "InvalidParameterValue", f"The message attribute '{name}' must have a value."
        if kind.startswith("Number") and not re.fullmatch(_NUMBER, str(given).strip()):
            said = f"Can't cast the value of message (user) attribute '{name}' to a number."
            return "InvalidParameterValue", said
    return None


def dedup_id(queue: Queue, entry: Mapping[str, Any]) -> str | None:
    """The deduplication id of a message; None if it has none and the queue does not derive it."""
    given: str | None = entry.get("MessageDeduplicationId")
    if given is None and queue.attributes.get("ContentBasedDeduplication") == "true":
        return hashlib.sha256(entry["MessageBody"].encode()).hexdigest()
    return given


def sent(held: MessageInFlight, queue: Queue) -> dict[str, Any]:
    """What the sender of a message gets back."""
    answer = {"MessageId": held.message_id, "MD5OfMessageBody": md5(held.body)}
    return answer | ({"SequenceNumber": str(held.sequence)} if queue.fifo else {})


def delivered(held: MessageInFlight, attributes: Collection[str], system: Collection[str]) -> dict[str, Any]:
    """A message as a receiver gets it.

    Args:
        held: the message.
        attributes: names of the message attributes to return; ``All``, or a prefix such as ``foo.*``.
        system: names of the system attributes to return, or ``All``.
    """
    own = {name: value for name, value in held.attributes.items() if _asked(name, attributes)}
    told = {
        name: value for name, value in system_attributes(held).items() if "All" in system or name in system
    }
    answer: dict[str, Any] = {
        "MessageId": held.message_id,
        "ReceiptHandle": held.handle,
        "MD5OfBody": md5(held.body),
        "Body": held.body,
    }
    return answer | ({"Attributes": told} if told else {}) | ({"MessageAttributes": own} if own else {})


def system_attributes(held: MessageInFlight) -> dict[str, str]:
    """The system attributes of a message."""
    told = {
        "SenderId": "memory",
        "SentTimestamp": str(held.sent_at),
        "ApproximateReceiveCount": str(held.received),
        "ApproximateFirstReceiveTimestamp": str(held.first_received_at),
    }
    more = {
        "MessageGroupId": held.group_id,
        "MessageDeduplicationId": held.dedup_id,
        "SequenceNumber": str(held.sequence) if held.dedup_id else None,
        "DeadLetterQueueSourceArn": held.died_in,
    }
    return told | {name: value for name, value in more.items() if value}


def md5(text: str) -> str:
    return hashlib.md5(text.encode(), usedforsecurity=False).hexdigest()


def _asked(name: str, wanted: Collection[str]) -> bool:
    if "All" in wanted or ".*" in wanted or name in wanted:
        return True
    return any(choice.endswith(".*") and name.startswith(choice[:-1]) for choice in wanted)


def _size(entry: Mapping[str, Any]) -> int:
    size = len(entry["MessageBody"].encode())
    for name, value in (entry.get("MessageAttributes") or {}).items():
        content = value.get("BinaryValue") or str(value.get("StringValue", "")).encode()
        size += len(name.encode()) + len(value["DataType"]) + len(content)
    return size
