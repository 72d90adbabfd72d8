"""A client of queues in memory, called as boto3's SQS client is: it refuses and answers as SQS does."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import wraps
from types import SimpleNamespace
from typing import Any, Final, TypeAlias, TypeVar, cast

from botocore.exceptions import ClientError

from fanin.adapters.memory.accesses import Accesses
from fanin.adapters.memory.sqs.queue import ENDPOINT, InvalidAttribute, MessageInFlight, Queue, QueueStore
from fanin.domain import limits
from fanin.errors import InvalidRequest

Answer: TypeAlias = dict[str, Any]
Entry: TypeAlias = Mapping[str, Any]
Call = TypeVar("Call", bound=Callable[..., Answer])
Wait: TypeAlias = Callable[[float, Callable[[], bool]], None]
"""Waits the given number of seconds, or until the predicate is true."""

MOST_ENTRIES: Final = 10
MOST_ATTRIBUTES: Final = 10
LONGEST_WAIT: Final = 20  # seconds
LONGEST_DELAY: Final = 900
LONGEST_HIDDEN: Final = 43_200
_OWN: Final = "AWS.SimpleQueueService."
_NO_QUEUE: Final = f"{_OWN}NonExistentQueue", "The specified queue does not exist."
_NAME: Final = re.compile(r"(?=.{1,80}\Z)[A-Za-z0-9_-]+(\.fifo)?", re.ASCII)
_ID: Final = "[!-~]{1,128}"
"""Of a message group, or for deduplication."""
_NUMBER: Final = r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?"


class _Refused(Exception):
    """SQS refuses a request, or an entry of one, with a code and a text."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.error = {"Code": code, "Message": message}


def _at_once(_seconds: float, _ready: Callable[[], bool]) -> None:
    """Do not wait: while the clock stands, no message can come."""


def _operation(method: Call) -> Call:
    """Make a call one access, such as ``sqs.send_message``, under the lock of the store."""
    name = method.__name__.removeprefix("_")

    @wraps(method)
    def call(self: InMemorySqs, **parameters: Any) -> Answer:
        def locked() -> Answer:
            with self.store.lock:
                return method(self, **parameters)

        try:
            return self.accesses.send(f"sqs.{name}", locked)
        except _Refused as refused:
            response: Any = {
                "Error": {**refused.error, "Type": "Sender"},
                "ResponseMetadata": {"HTTPStatusCode": 400, "RetryAttempts": 0},
            }
            raise ClientError(response, "".join(word.title() for word in name.split("_"))) from refused

    return cast("Call", call)


class InMemorySqs:
    """Those calls of boto3's SQS client that fanin and its users make, with its parameters and answers.

    What SQS refuses raises botocore's ``ClientError`` with SQS's code.

    Args:
        store: the queues.
        accesses: counts the calls, and calls ``on_call`` around each: ``sqs.send_message`` and so on.
        wait: how a receive waits that finds nothing.

    Attributes:
        meta: has the ``endpoint_url``.
    """

    def __init__(self, store: QueueStore, accesses: Accesses, wait: Wait = _at_once) -> None:
        self.meta = SimpleNamespace(endpoint_url=ENDPOINT)
        self.store = store
        self.accesses = accesses
        self._wait = wait

    @_operation
    def create_queue(
        self, *, QueueName: str, Attributes: Mapping[str, str] = {}, tags: Mapping[str, str] = {}
    ) -> Answer:
        if not _NAME.fullmatch(QueueName):
            raise _refused_value(
                "Can only include alphanumeric characters, hyphens, or underscores. 1 to 80 in length."
            )
        with _changing():
            return {"QueueUrl": self.store.create(QueueName, Attributes, tags).url}

    @_operation
    def delete_queue(self, *, QueueUrl: str) -> Answer:
        self.store.delete(self._queue(QueueUrl).url)
        return {}

    @_operation
    def get_queue_url(self, *, QueueName: str, QueueOwnerAWSAccountId: str = "") -> Answer:  # noqa: ARG002
        try:
            return {"QueueUrl": self.store.by_arn(QueueName).url}
        except KeyError:
            raise _Refused(*_NO_QUEUE) from None

    @_operation
    def get_queue_attributes(self, *, QueueUrl: str, AttributeNames: Sequence[str] = ()) -> Answer:
        queue = self._queue(QueueUrl)
        visible, hidden, delayed = queue.counts()
        known = {
            **queue.attributes,
            "QueueArn": queue.arn,
            "ApproximateNumberOfMessages": str(visible),
            "ApproximateNumberOfMessagesNotVisible": str(hidden),
            "ApproximateNumberOfMessagesDelayed": str(delayed),
            "CreatedTimestamp": str(queue.created_at // 1000),
        } | ({"FifoQueue": "true"} if queue.fifo else {})
        wanted = known if "All" in AttributeNames else {n: known[n] for n in AttributeNames if n in known}
        return {"Attributes": wanted}

    @_operation
    def set_queue_attributes(self, *, QueueUrl: str, Attributes: Mapping[str, str]) -> Answer:
        queue = self._queue(QueueUrl)
        with _changing():
            self.store.change(queue, Attributes)
        return {}

    @_operation
    def list_queue_tags(self, *, QueueUrl: str) -> Answer:
        return {"Tags": dict(self._queue(QueueUrl).tags)}

    @_operation
    def tag_queue(self, *, QueueUrl: str, Tags: Mapping[str, str]) -> Answer:
        self._queue(QueueUrl).tags |= dict(Tags)
        return {}

    @_operation
    def purge_queue(self, *, QueueUrl: str) -> Answer:
        self._queue(QueueUrl).clear()
        return {}

    @_operation
    def send_message(self, *, QueueUrl: str, MessageBody: str, **more: Any) -> Answer:
        queue, entry = self._queue(QueueUrl), {"MessageBody": MessageBody, **more}
        _check_size(queue, [entry], "InvalidParameterValue")
        return _put(queue, entry)

    @_operation
    def send_message_batch(self, *, QueueUrl: str, Entries: Sequence[Entry]) -> Answer:
        queue = self._queue_for(QueueUrl, Entries)
        _check_size(queue, Entries, f"{_OWN}BatchRequestTooLong")
        return _each(queue, Entries, _put)

    def receive_message(self, *, QueueUrl: str, WaitTimeSeconds: int | None = None, **asked: Any) -> Answer:
        asked |= {"QueueUrl": QueueUrl, "WaitTimeSeconds": WaitTimeSeconds}
        answer = self._receive_message(**asked)
        if "Messages" not in answer and (wait := self._patience(QueueUrl, WaitTimeSeconds)):
            self._wait(wait, lambda: self._has_messages(QueueUrl))
            answer = self._receive_message(**asked)
        return answer

    @_operation
    def _receive_message(
        self,
        *,
        QueueUrl: str,
        MaxNumberOfMessages: int = 1,
        WaitTimeSeconds: int | None = None,
        VisibilityTimeout: int | None = None,
        MessageAttributeNames: Sequence[str] = (),
        AttributeNames: Sequence[str] = (),
        MessageSystemAttributeNames: Sequence[str] = (),
    ) -> Answer:
        _check_number("MaxNumberOfMessages", MaxNumberOfMessages, 1, MOST_ENTRIES)
        _check_number("WaitTimeSeconds", WaitTimeSeconds or 0, 0, LONGEST_WAIT)
        _check_number("VisibilityTimeout", VisibilityTimeout or 0, 0, LONGEST_HIDDEN)
        found = self._queue(QueueUrl).receive(MaxNumberOfMessages, VisibilityTimeout)
        system = {*AttributeNames, *MessageSystemAttributeNames}
        messages = [_delivered(held, MessageAttributeNames, system) for held in found]
        return {"Messages": messages} if messages else {}

    @_operation
    def delete_message(self, *, QueueUrl: str, ReceiptHandle: str) -> Answer:
        return _remove(self._queue(QueueUrl), {"ReceiptHandle": ReceiptHandle})

    @_operation
    def delete_message_batch(self, *, QueueUrl: str, Entries: Sequence[Entry]) -> Answer:
        return _each(self._queue_for(QueueUrl, Entries), Entries, _remove)

    @_operation
    def change_message_visibility(
        self, *, QueueUrl: str, ReceiptHandle: str, VisibilityTimeout: int
    ) -> Answer:
        entry = {"ReceiptHandle": ReceiptHandle, "VisibilityTimeout": VisibilityTimeout}
        return _hide(self._queue(QueueUrl), entry)

    @_operation
    def change_message_visibility_batch(self, *, QueueUrl: str, Entries: Sequence[Entry]) -> Answer:
        return _each(self._queue_for(QueueUrl, Entries), Entries, _hide)

    def _queue_for(self, url: str, entries: Sequence[Entry]) -> Queue:
        """The queue of a batch call, whose entries are checked."""
        queue = self._queue(url)
        _check_entries(entries)
        return queue

    def _queue(self, url: str) -> Queue:
        queue = self.store.find(url)
        if queue is None:
            raise _Refused(*_NO_QUEUE)
        return queue

    def _patience(self, url: str, wait: int | None) -> int:
        """Seconds that a receive waits for messages."""
        if wait is not None:
            return wait
        queue = self.store.find(url)
        return queue.seconds("ReceiveMessageWaitTimeSeconds") if queue else 0

    def _has_messages(self, url: str) -> bool:
        """Whether a receive would return at once: with messages, or since the queue is gone."""
        with self.store.lock:
            queue = self.store.find(url)
            if queue is None:
                return True
            at = queue.next_visible()
            return at is not None and at <= queue.clock.now()


@contextmanager
def _changing() -> Iterator[None]:
    """Refuse attributes that cannot be, as SQS does."""
    try:
        yield
    except InvalidAttribute as error:
        raise _Refused("InvalidAttributeValue", f"{error}.") from error
    except (KeyError, TypeError, ValueError) as error:
        raise _refused_value(f"Value for parameter RedrivePolicy is invalid: {error}.") from error


def _each(queue: Queue, entries: Sequence[Entry], act: Callable[[Queue, Entry], Answer]) -> Answer:
    """Process each entry on its own; one that is refused does not affect the others."""
    answer: dict[str, list[Answer]] = {}
    for entry in entries:
        try:
            answer.setdefault("Successful", []).append({"Id": entry["Id"], **act(queue, entry)})
        except _Refused as refused:
            answer.setdefault("Failed", []).append({"Id": entry["Id"], "SenderFault": True, **refused.error})
    return {name: found for name, found in answer.items() if found}


def _put(queue: Queue, entry: Entry) -> Answer:
    """Put a message into a queue, and tell its sender what SQS tells."""
    _check_message(queue, entry)
    held = queue.send(
        entry["MessageBody"],
        entry.get("MessageAttributes") or {},
        delay=entry.get("DelaySeconds"),
        group_id=entry.get("MessageGroupId"),
        dedup_id=_dedup_id(queue, entry) if queue.fifo else None,
    )
    answer = {"MessageId": held.message_id, "MD5OfMessageBody": md5(held.body)}
    return answer | ({"SequenceNumber": str(held.sequence)} if queue.fifo else {})


def _remove(queue: Queue, entry: Entry) -> Answer:
    queue.remove(_handle(queue, entry))
    return {}


def _hide(queue: Queue, entry: Entry) -> Answer:
    handle, seconds = _handle(queue, entry), entry.get("VisibilityTimeout", 0)
    _check_number("VisibilityTimeout", seconds, 0, LONGEST_HIDDEN)
    held = queue.find(handle)
    if held is None or held.visible_at <= queue.clock.now():
        raise _Refused(f"{_OWN}MessageNotInflight", "The message is not in flight.")
    held.visible_at = queue.clock.now() + seconds * 1000
    return {}


def _handle(queue: Queue, entry: Entry) -> str:
    handle: str = entry["ReceiptHandle"]
    if not handle.startswith(f"{queue.name}#"):
        raise _Refused("ReceiptHandleIsInvalid", "The input receipt handle is invalid.")
    return handle


def _check_number(name: str, value: int, least: int, most: int) -> None:
    if not least <= value <= most:
        raise _invalid(name, value, f"Must be between {least} and {most}.")


def _check_entries(entries: Sequence[Entry]) -> None:
    """Check that a batch has one to ten entries with distinct ids."""
    if not entries:
        raise _Refused(f"{_OWN}EmptyBatchRequest", "There should be at least one entry.")
    if len(entries) > MOST_ENTRIES:
        code = f"{_OWN}TooManyEntriesInBatchRequest"
        raise _Refused(code, f"Maximum number of entries per request are {MOST_ENTRIES}.")
    if len({entry["Id"] for entry in entries}) < len(entries):
        raise _Refused(f"{_OWN}BatchEntryIdsNotDistinct", "Two or more entries have the same Id.")


def _check_size(queue: Queue, entries: Sequence[Entry], code: str) -> None:
    """Check that the messages of a request together do not exceed the queue's maximum message size."""
    size, most = sum(map(_size, entries)), queue.seconds("MaximumMessageSize")
    if size > most:
        raise _Refused(code, f"{size} bytes are more than the maximum of {most}.")


def _size(entry: Entry) -> int:
    size = len(entry["MessageBody"].encode())
    for name, value in (entry.get("MessageAttributes") or {}).items():
        content = value.get("BinaryValue") or str(value.get("StringValue", "")).encode()
        size += len(name.encode()) + len(value["DataType"]) + len(content)
    return size


def _check_message(queue: Queue, entry: Entry) -> None:
    missing = "The request must contain the parameter "
    if not entry["MessageBody"]:
        raise _Refused("MissingParameter", f"{missing}MessageBody.")
    try:
        limits.sendable("the message body", entry["MessageBody"])
    except InvalidRequest as error:
        raise _Refused("InvalidMessageContents", str(error)) from error
    if queue.fifo and "MessageGroupId" not in entry:
        raise _Refused("MissingParameter", f"{missing}MessageGroupId.")
    if queue.fifo and _dedup_id(queue, entry) is None:
        raise _refused_value(
            "The queue should either have ContentBasedDeduplication enabled or MessageDeduplicationId"
            " provided explicitly"
        )
    _check_parameters(queue, entry)
    _check_attributes(entry.get("MessageAttributes") or {})


def _check_parameters(queue: Queue, entry: Entry) -> None:
    for name in ("MessageGroupId", "MessageDeduplicationId", "DelaySeconds"):
        value = entry.get(name)
        if value is None:
            continue
        if name == ("DelaySeconds" if queue.fifo else "MessageDeduplicationId"):
            why = "The request include parameter that is not valid for this queue type."
            raise _invalid(name, value, why)
        if name == "DelaySeconds":
            if not 0 <= value <= LONGEST_DELAY:
                raise _invalid(name, value, f"{name} must be >= 0 and <= {LONGEST_DELAY}.")
        elif not re.fullmatch(_ID, value):
            why = f"{name} can only include alphanumeric and punctuation characters. 1 to 128 in length."
            raise _invalid(name, value, why)


def _check_attributes(attributes: Mapping[str, Any]) -> None:
    if (count := len(attributes)) > MOST_ATTRIBUTES:
        raise _refused_value(
            f"Number of message attributes [{count}] exceeds the allowed maximum [{MOST_ATTRIBUTES}]."
        )
    for name, value in attributes.items():
        kind = value["DataType"]
        given = value.get("BinaryValue" if kind.startswith("Binary") else "StringValue")
        if not given:
            raise _refused_value(f"The message attribute '{name}' must have a value.")
        if kind.startswith("Number") and not re.fullmatch(_NUMBER, str(given).strip()):
            raise _refused_value(f"Can't cast the value of message (user) attribute '{name}' to a number.")


def _invalid(name: str, value: object, why: str) -> _Refused:
    return _refused_value(f"Value {value} for parameter {name} is invalid. Reason: {why}")


def _refused_value(said: str) -> _Refused:
    return _Refused("InvalidParameterValue", said)


def _dedup_id(queue: Queue, entry: Entry) -> str | None:
    """The deduplication id of a message; None if it has none and the queue does not derive it."""
    given: str | None = entry.get("MessageDeduplicationId")
    if given is None and queue.attributes.get("ContentBasedDeduplication") == "true":
        return hashlib.sha256(entry["MessageBody"].encode()).hexdigest()
    return given


def _delivered(held: MessageInFlight, attributes: Collection[str], system: Collection[str]) -> Answer:
    """A message as a receiver gets it.

    Args:
        held: the message.
        attributes: names of the message attributes to return; ``All``, or a prefix such as ``foo.*``.
        system: names of the system attributes to return, or ``All``.
    """
    own = {name: value for name, value in held.attributes.items() if _asked(name, attributes)}
    known = system_attributes(held).items()
    told = {name: value for name, value in known if "All" in system or name in system}
    answer: Answer = {
        "MessageId": held.message_id,
        "ReceiptHandle": held.handle,
        "MD5OfBody": md5(held.body),
        "Body": held.body,
    }
    return answer | ({"Attributes": told} if told else {}) | ({"MessageAttributes": own} if own else {})


def _asked(name: str, wanted: Collection[str]) -> bool:
    if "All" in wanted or ".*" in wanted or name in wanted:
        return True
    return any(choice.endswith(".*") and name.startswith(choice[:-1]) for choice in wanted)


def system_attributes(held: MessageInFlight) -> dict[str, str]:
    """The system attributes of a message."""
    known = {
        "SenderId": "memory",
        "SentTimestamp": str(held.sent_at),
        "ApproximateReceiveCount": str(held.received),
        "ApproximateFirstReceiveTimestamp": str(held.first_received_at),
        "MessageGroupId": held.group_id,
        "MessageDeduplicationId": held.dedup_id,
        "SequenceNumber": str(held.sequence) if held.dedup_id else None,
        "DeadLetterQueueSourceArn": held.died_in,
    }
    return {name: value for name, value in known.items() if value}


def md5(text: str) -> str:
    return hashlib.md5(text.encode(), usedforsecurity=False).hexdigest()
