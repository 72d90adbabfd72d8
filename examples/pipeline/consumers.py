"""The consumers that handle the flights, and the subscriber that waits for the end."""

import json
import threading
import time
import uuid
from collections import Counter
from collections.abc import Mapping
from typing import Any, Final, Self

import boto3

from fanin import ItemFailed, ReceivedMessage, Tracker, names

CANCELLED: Final = "the flight was cancelled"
_EACH: Final = 2
"""Threads that acknowledge; as many threads leave that to the ack job."""


class Consumers:
    """Threads on one queue. Half of them acknowledge, the others only note what they did.

    Args:
        tracker: the stack.
        queue_url: of the messages, one a flight.

    Attributes:
        counts: ``done``, ``failed`` and ``left`` → number of flights.
    """

    def __init__(self, tracker: Tracker, queue_url: str) -> None:
        self._tracker = tracker
        self._queue_url = queue_url
        self._over = threading.Event()
        self._lock = threading.Lock()
        self._items: dict[str, tuple[str, str | None]] = {}
        tasks = [self._acknowledge, self._note] * _EACH
        self._threads = [threading.Thread(target=task, daemon=True) for task in tasks]

    @property
    def counts(self) -> Counter[str]:
        return Counter(what for what, _ in self._items.values())

    def left(self) -> list[tuple[str, str | None]]:
        """Items that nobody has acknowledged yet, each with the reason if it failed."""
        return [(item, reason) for item, (what, reason) in self._items.items() if what == "left"]

    def __enter__(self) -> Self:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        for thread in self._threads:
            thread.join()

    def handled(self, flights: int, patience: float) -> None:
        """Wait until that many flights have been handled.

        Raises:
            TimeoutError: they were not handled in time.
        """
        until = time.monotonic() + patience
        while len(self._items) < flights:
            if time.monotonic() > until:
                raise TimeoutError(f"{len(self._items)} of {flights} flights after {patience:.0f} s")
            time.sleep(0.2)

    def _acknowledge(self) -> None:
        def handle(message: ReceivedMessage) -> None:
            reason = _handle(message.json())
            self._keep(message.item, "failed" if reason else "done", reason)
            if reason:
                raise ItemFailed(reason)

        self._tracker.consumer(self._queue_url, handle, via="queue", wait=1).run(self._over.is_set)

    def _note(self) -> None:
        sqs = self._tracker.sqs
        while not self._over.is_set():
            answer = sqs.receive_message(
                QueueUrl=self._queue_url,
                MaxNumberOfMessages=10,
                WaitTimeSeconds=1,
                MessageAttributeNames=[names.ITEM_ATTRIBUTE],
            )
            messages = answer.get("Messages", [])
            for message in messages:
                item = message["MessageAttributes"][names.ITEM_ATTRIBUTE]["StringValue"]
                self._keep(item, "left", _handle(json.loads(message["Body"])))
            if messages:
                entries = [
                    {"Id": str(place), "ReceiptHandle": message["ReceiptHandle"]}
                    for place, message in enumerate(messages)
                ]
                sqs.delete_message_batch(QueueUrl=self._queue_url, Entries=entries)

    def _keep(self, item: str | None, what: str, reason: str | None) -> None:
        with self._lock:
            self._items.setdefault(item or "", (what, reason))


def _handle(flight: Mapping[str, Any]) -> str | None:
    """Handle a flight; gives the reason if it failed."""
    return CANCELLED if flight["dep_delay"] in {None, "NA"} else None


class Events:
    """A subscriber: a queue that the bus feeds; leave the ``with`` block to unsubscribe.

    Args:
        bus: of the stack.
    """

    def __init__(self, bus: str) -> None:
        self._bus, self._name = bus, f"demo-{uuid.uuid4().hex[:8]}"
        self._sqs, self._events = boto3.client("sqs"), boto3.client("events")
        self._heard: list[dict[str, Any]] = []

    def __enter__(self) -> Self:
        self._queue_url = self._sqs.create_queue(QueueName=self._name)["QueueUrl"]
        wanted = self._sqs.get_queue_attributes(QueueUrl=self._queue_url, AttributeNames=["QueueArn"])
        pattern = json.dumps({"source": [names.EVENT_SOURCE]})
        self._events.put_rule(Name=self._name, EventBusName=self._bus, EventPattern=pattern)
        target = {"Id": "queue", "Arn": wanted["Attributes"]["QueueArn"]}
        self._events.put_targets(Rule=self._name, EventBusName=self._bus, Targets=[target])
        return self

    def __exit__(self, *_: object) -> None:
        self._events.remove_targets(Rule=self._name, EventBusName=self._bus, Ids=["queue"])
        self._events.delete_rule(Name=self._name, EventBusName=self._bus)
        self._sqs.delete_queue(QueueUrl=self._queue_url)

    def of(self, batch_id: int, patience: float) -> list[dict[str, Any]]:
        """The events of a batch; waits for the first, and a little longer for a repeated one.

        Raises:
            TimeoutError: there was no event.
        """
        until = time.monotonic() + patience
        while not self._of(batch_id):
            if time.monotonic() > until:
                raise TimeoutError(f"no event of batch {batch_id} in {patience:.0f} s")
            self._listen(1)
        self._listen(2)
        return self._of(batch_id)

    def _of(self, batch_id: int) -> list[dict[str, Any]]:
        return [event for event in self._heard if event["detail"].get("batch_id") == batch_id]

    def _listen(self, seconds: int) -> None:
        answer = self._sqs.receive_message(
            QueueUrl=self._queue_url, MaxNumberOfMessages=10, WaitTimeSeconds=seconds
        )
        for message in answer.get("Messages", []):
            self._heard.append(json.loads(message["Body"]))
            self._sqs.delete_message(QueueUrl=self._queue_url, ReceiptHandle=message["ReceiptHandle"])
