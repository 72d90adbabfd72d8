"""All queues of one service."""

from __future__ import annotations

import json
from collections.abc import Mapping
from threading import RLock
from typing import Final

from fanin.adapters.memory.sqs.queue import DEFAULTS, Queue
from fanin.app.ports.system import Clock, Random

ACCOUNT: Final = "000000000000"
ENDPOINT: Final = "memory://sqs"
REGION: Final = "memory"
_REDRIVE: Final = "RedrivePolicy"
_MOST_RECEIVES: Final = 1000
_BOUNDS: Final[Mapping[str, tuple[int, int]]] = {
    "VisibilityTimeout": (0, 43_200),
    "DelaySeconds": (0, 900),
    "MessageRetentionPeriod": (60, 1_209_600),
    "ReceiveMessageWaitTimeSeconds": (0, 20),
    "MaximumMessageSize": (1024, 1_048_576),
}


class InvalidAttribute(Exception):
    """An attribute is not a number within its bounds."""


class QueueStore:
    """Keeps queues by their URLs.

    Args:
        clock: tells the time to all of them.
        random: makes message ids, and draws which messages come twice.

    Attributes:
        lock: held by whoever looks at or changes a queue.
    """

    def __init__(self, clock: Clock, random: Random) -> None:
        self.lock = RLock()
        self._clock = clock
        self._random = random
        self._queues: dict[str, Queue] = {}

    def create(self, name: str, attributes: Mapping[str, str], tags: Mapping[str, str]) -> Queue:
        """Make a queue, or return the one that has the name already, unchanged."""
        url = f"{ENDPOINT}/{ACCOUNT}/{name}"
        if url not in self._queues:
            queue = Queue(
                name=name,
                url=url,
                arn=f"arn:aws:sqs:{REGION}:{ACCOUNT}:{name}",
                clock=self._clock,
                random=self._random,
                created_at=self._clock.now(),
                attributes=dict(DEFAULTS),
                tags=dict(tags),
            )
            self.change(queue, attributes)
            self._queues[url] = queue
        return self._queues[url]

    def change(self, queue: Queue, attributes: Mapping[str, str]) -> None:
        """Set attributes of a queue.

        Raises:
            InvalidAttribute: a number is none, or is out of its bounds.
            ValueError: the redrive policy is not JSON, or its number of receives is out of bounds.
            KeyError: the policy lacks a field, or its queue does not exist.
        """
        for name, (least, most) in _BOUNDS.items():
            _check(name, str(attributes.get(name, least)), least, most)
        policy = json.loads(attributes.get(_REDRIVE) or "{}")
        if policy:
            dead_letters, receives = (
                self.by_arn(policy["deadLetterTargetArn"]),
                int(policy["maxReceiveCount"]),
            )
            if not 1 <= receives <= _MOST_RECEIVES:
                raise ValueError(f"maxReceiveCount must be between 1 and {_MOST_RECEIVES}")
            queue.dead_letters, queue.max_receives = dead_letters, receives
        elif _REDRIVE in attributes:
            queue.dead_letters = None
        queue.attributes |= {name: str(value) for name, value in attributes.items()}

    def find(self, url: str) -> Queue | None:
        """The queue of a URL; None if it does not exist."""
        return self._queues.get(url)

    def by_arn(self, arn: str) -> Queue:
        """The queue of an ARN.

        Raises:
            KeyError: it does not exist.
        """
        return self._queues[f"{ENDPOINT}/{ACCOUNT}/{arn.rpartition(':')[2]}"]

    def delete(self, url: str) -> None:
        """Delete a queue and its messages."""
        del self._queues[url]


def _check(name: str, value: str, least: int, most: int) -> None:
    if not (value.isascii() and value.isdecimal() and least <= int(value) <= most):
        raise InvalidAttribute(f"{name} must be between {least} and {most}, not {value}")
