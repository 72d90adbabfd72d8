"""Consumers of a queue, in threads of the test, who handle messages and mark their items."""

import threading
import uuid
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import cache
from typing import Any

import boto3

from fanin.client.messages import ReceivedMessage
from fanin.client.tracker import Tracker

PAUSE = 0.05
"""Seconds between two looks at a queue. To wait in SQS takes a second at least, also at the end."""


class Handled:
    """What consumers have handled.

    Attributes:
        times: how often each body was.
        bodies: what each item was about.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.times: Counter[str] = Counter()
        self.bodies: dict[str, set[str]] = {}

    def __call__(self, message: ReceivedMessage) -> None:
        with self._lock:
            self.times[message.body] += 1
            self.bodies.setdefault(message.item or "", set()).add(message.body)


def new_queue(**attributes: str) -> str:
    """A queue of its own; returns its URL."""
    name = f"spark-{uuid.uuid4().hex}"
    return _sqs().create_queue(QueueName=name, Attributes=attributes)["QueueUrl"]


def waiting(queue: str) -> int:
    """How many messages are in a queue."""
    answer = _sqs().get_queue_attributes(QueueUrl=queue, AttributeNames=["ApproximateNumberOfMessages"])
    return int(answer["Attributes"]["ApproximateNumberOfMessages"])


@cache
def _sqs() -> Any:
    """To make a client takes longer than all that is asked of it; there is one stack."""
    return boto3.client("sqs")


@contextmanager
def consumers(tracker: Tracker, queue: str, number: int = 2) -> Iterator[Handled]:
    """Consume a queue until it is empty after the end of the block."""
    handled, ended = Handled(), threading.Event()

    def consume() -> None:
        consumer = tracker.consumer(queue, handled, wait=0, skip_ended=False)
        last = False
        while (found := consumer.poll()) or not last:
            last = ended.wait(0 if found else PAUSE)

    with ThreadPoolExecutor(number) as pool:
        running = [pool.submit(consume) for _ in range(number)]
        try:
            yield handled
        finally:
            ended.set()
        for one in running:
            one.result()
