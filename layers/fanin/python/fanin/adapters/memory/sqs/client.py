"""A client of queues in memory, called as boto3's SQS client is."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any, Final, TypeAlias, TypeVar

from botocore.exceptions import ClientError

from fanin.adapters.memory.accesses import Accesses
from fanin.adapters.memory.sqs import requests
from fanin.adapters.memory.sqs.queue import MessageInFlight, Queue
from fanin.adapters.memory.sqs.store import ENDPOINT, InvalidAttribute, QueueStore

T = TypeVar("T")
Answer: TypeAlias = dict[str, Any]
_NAME: Final = re.compile(r"(?=.{1,80}\Z)[A-Za-z0-9_-]+(\.fifo)?", re.ASCII)


class QueueCalls:
    """The part of ``InMemorySqs`` that does not touch messages.

    Args:
        store: the queues.
        accesses: counts the calls, and calls ``on_call`` around each: ``sqs.create_queue`` and so on.

    Attributes:
        meta: has the ``endpoint_url``.
    """

    def __init__(self, store: QueueStore, accesses: Accesses) -> None:
        self.meta = SimpleNamespace(endpoint_url=ENDPOINT)
        self._store = store
        self._accesses = accesses

    def create_queue(
        self,
        *,
        QueueName: str,
        Attributes: Mapping[str, str] | None = None,
        tags: Mapping[str, str] | None = None,
    ) -> Answer:
        def create() -> Answer:
            if not _NAME.fullmatch(QueueName):
                message = (
                    "Can only include alphanumeric characters, hyphens, or underscores. 1 to 80 in length."
                )
                raise requests.refusal("CreateQueue", "InvalidParameterValue", message)
            with _changing("CreateQueue"):
                return {"QueueUrl": self._store.create(QueueName, Attributes or {}, tags or {}).url}

        return self._call("create_queue", create)

    def delete_queue(self, *, QueueUrl: str) -> Answer:
        def delete() -> Answer:
            self._queue("DeleteQueue", QueueUrl)
            self._store.delete(QueueUrl)
            return {}

        return self._call("delete_queue", delete)

    def get_queue_url(self, *, QueueName: str, QueueOwnerAWSAccountId: str = "") -> Answer:  # noqa: ARG002
        def look() -> Answer:
            try:
                return {"QueueUrl": self._store.by_arn(QueueName).url}
            except KeyError:
                raise requests.no_queue("GetQueueUrl") from None

        return self._call("get_queue_url", look)

    def get_queue_attributes(self, *, QueueUrl: str, AttributeNames: Sequence[str] = ()) -> Answer:
        def look() -> Answer:
            queue = self._queue("GetQueueAttributes", QueueUrl)
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
            return {"Attributes": dict(wanted)}

        return self._call("get_queue_attributes", look)

    def set_queue_attributes(self, *, QueueUrl: str, Attributes: Mapping[str, str]) -> Answer:
        def change() -> Answer:
            queue = self._queue("SetQueueAttributes", QueueUrl)
            with _changing("SetQueueAttributes"):
                self._store.change(queue, Attributes)
            return {}

        return self._call("set_queue_attributes", change)

    def list_queue_tags(self, *, QueueUrl: str) -> Answer:
        return self._call(
            "list_queue_tags", lambda: {"Tags": dict(self._queue("ListQueueTags", QueueUrl).tags)}
        )

    def tag_queue(self, *, QueueUrl: str, Tags: Mapping[str, str]) -> Answer:
        def tag() -> Answer:
            self._queue("TagQueue", QueueUrl).tags |= dict(Tags)
            return {}

        return self._call("tag_queue", tag)

    def purge_queue(self, *, QueueUrl: str) -> Answer:
        def purge() -> Answer:
            self._queue("PurgeQueue", QueueUrl).clear()
            return {}

        return self._call("purge_queue", purge)

    def _call(self, name: str, act: Callable[[], T]) -> T:
        def locked() -> T:
            with self._store.lock:
                return act()

        return self._accesses.send(f"sqs.{name}", locked)

    def _queue(self, operation: str, url: str) -> Queue:
        queue = self._store.find(url)
        if queue is None:
            raise requests.no_queue(operation)
        return queue


@contextmanager
def _changing(operation: str) -> Iterator[None]:
    """Refuse attributes that cannot be, as SQS does."""
    try:
        yield
    except InvalidAttribute as error:
        raise requests.refusal(operation, "InvalidAttributeValue", f"{error}.") from error
    except (KeyError, TypeError, ValueError) as error:
        message = f"Value for parameter RedrivePolicy is invalid: {error}."
        raise requests.refusal(operation, "InvalidParameterValue", message) from error


Wait: TypeAlias = Callable[[float, Callable[[], bool]], None]
"""Waits the given number of seconds, or until the predicate is true."""


def _at_once(_seconds: float, _ready: Callable[[], bool]) -> None:
    """Do not wait: while the clock stands, no message can come."""


class InMemorySqs(QueueCalls):
    """Those calls of boto3's SQS client that fanin and its users make, with its parameters and answers.

    What SQS refuses raises botocore's ``ClientError`` with SQS's code.

    Args:
        store: the queues.
        accesses: counts the calls, and calls ``on_call`` around each: ``sqs.send_message`` and so on.
        wait: how a receive waits that finds nothing.
    """

    def __init__(self, store: QueueStore, accesses: Accesses, wait: Wait = _at_once) -> None:
        super().__init__(store, accesses)
        self._wait = wait

    def send_message(self, *, QueueUrl: str, MessageBody: str, **more: Any) -> Answer:
        entry = {"MessageBody": MessageBody, **more}

        def send() -> Answer:
            queue = self._queue("SendMessage", QueueUrl)
            requests.check_size("SendMessage", queue, [entry])
            if refused := requests.fault(queue, entry):
                raise requests.refusal("SendMessage", *refused)
            return requests.sent(_put(queue, entry), queue)

        return self._call("send_message", send)

    def send_message_batch(self, *, QueueUrl: str, Entries: Sequence[Mapping[str, Any]]) -> Answer:
        def send(queue: Queue, entry: Mapping[str, Any]) -> Answer:
            if refused := requests.fault(queue, entry):
                raise requests.refusal("SendMessageBatch", *refused)
            return requests.sent(_put(queue, entry), queue)

        return self._batch("send_message_batch", QueueUrl, Entries, send, sized=True)

    def receive_message(
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
        operation, system = "ReceiveMessage", {*AttributeNames, *MessageSystemAttributeNames}
        most = requests.MOST_ENTRIES
        requests.check_number(operation, "MaxNumberOfMessages", MaxNumberOfMessages, 1, most)
        requests.check_number(operation, "WaitTimeSeconds", WaitTimeSeconds or 0, 0, requests.LONGEST_WAIT)
        hidden = VisibilityTimeout or 0
        requests.check_number(operation, "VisibilityTimeout", hidden, 0, requests.LONGEST_HIDDEN)

        def receive() -> Answer:
            found = self._queue(operation, QueueUrl).receive(MaxNumberOfMessages, VisibilityTimeout)
            messages = [requests.delivered(held, MessageAttributeNames, system) for held in found]
            return {"Messages": messages} if messages else {}

        answer = self._call("receive_message", receive)
        if "Messages" not in answer and (wait := self._patience(QueueUrl, WaitTimeSeconds)):
            self._wait(wait, lambda: self._has_messages(QueueUrl))
            answer = self._call("receive_message", receive)
        return answer

    def delete_message(self, *, QueueUrl: str, ReceiptHandle: str) -> Answer:
        def delete() -> Answer:
            _remove("DeleteMessage", self._queue("DeleteMessage", QueueUrl), ReceiptHandle)
            return {}

        return self._call("delete_message", delete)

    def delete_message_batch(self, *, QueueUrl: str, Entries: Sequence[Mapping[str, Any]]) -> Answer:
        def delete(queue: Queue, entry: Mapping[str, Any]) -> Answer:
            _remove("DeleteMessageBatch", queue, entry["ReceiptHandle"])
            return {}

        return self._batch("delete_message_batch", QueueUrl, Entries, delete)

    def change_message_visibility(
        self, *, QueueUrl: str, ReceiptHandle: str, VisibilityTimeout: int
    ) -> Answer:
        def change() -> Answer:
            queue = self._queue("ChangeMessageVisibility", QueueUrl)
            _hide("ChangeMessageVisibility", queue, ReceiptHandle, VisibilityTimeout)
            return {}

        return self._call("change_message_visibility", change)

    def change_message_visibility_batch(
        self, *, QueueUrl: str, Entries: Sequence[Mapping[str, Any]]
    ) -> Answer:
        def change(queue: Queue, entry: Mapping[str, Any]) -> Answer:
            operation = "ChangeMessageVisibilityBatch"
            _hide(operation, queue, entry["ReceiptHandle"], entry.get("VisibilityTimeout", 0))
            return {}

        return self._batch("change_message_visibility_batch", QueueUrl, Entries, change)

    def _batch(
        self,
        name: str,
        url: str,
        entries: Sequence[Mapping[str, Any]],
        act: Callable[[Queue, Mapping[str, Any]], Answer],
        *,
        sized: bool = False,
    ) -> Answer:
        """Process each entry on its own; one that is refused does not affect the others."""
        operation = "".join(word.title() for word in name.split("_"))

        def each() -> Answer:
            queue = self._queue(operation, url)
            requests.check_entries(operation, entries)
            if sized:
                requests.check_size(operation, queue, entries)
            done: list[Answer] = []
            failed: list[Answer] = []
            for entry in entries:
                try:
                    done.append({"Id": entry["Id"], **act(queue, entry)})
                except ClientError as error:
                    said = error.response["Error"]
                    why = {"Code": said["Code"], "Message": said["Message"]}
                    failed.append({"Id": entry["Id"], "SenderFault": True, **why})
            return ({"Successful": done} if done else {}) | ({"Failed": failed} if failed else {})

        return self._call(name, each)

    def _patience(self, url: str, wait: int | None) -> int:
        """Seconds that a receive waits for messages."""
        if wait is not None:
            return wait
        return self._queue("ReceiveMessage", url).seconds("ReceiveMessageWaitTimeSeconds")

    def _has_messages(self, url: str) -> bool:
        """Whether a receive would return at once: with messages, or since the queue is gone."""
        with self._store.lock:
            queue = self._store.find(url)
            if queue is None:
                return True
            at = queue.next_visible()
            return at is not None and at <= queue.clock.now()


def _put(queue: Queue, entry: Mapping[str, Any]) -> MessageInFlight:
    return queue.send(
        entry["MessageBody"],
        entry.get("MessageAttributes") or {},
        delay=entry.get("DelaySeconds"),
        group_id=entry.get("MessageGroupId"),
        dedup_id=requests.dedup_id(queue, entry) if queue.fifo else None,
    )


def _remove(operation: str, queue: Queue, handle: str) -> None:
    requests.check_handle(operation, queue, handle)
    queue.remove(handle)


def _hide(operation: str, queue: Queue, handle: str, seconds: int) -> None:
    requests.check_handle(operation, queue, handle)
    requests.check_number(operation, "VisibilityTimeout", seconds, 0, requests.LONGEST_HIDDEN)
    held = queue.find(handle)
    if held is None or held.visible_at <= queue.clock.now():
        raise requests.not_in_flight(operation)
    held.visible_at = queue.clock.now() + seconds * 1000
