"""The calls of a client in memory that concern queues, not messages: create, describe, tag, delete."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any, Final, TypeAlias, TypeVar

from fanin.adapters.memory.accesses import Accesses
from fanin.adapters.memory.sqs import requests
from fanin.adapters.memory.sqs.queue import Queue
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
