"""Queues as SQS keeps them: visibility timeouts, delays, message groups, retention, dead letters."""

from __future__ import annotations

import json
from collections import OrderedDict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import count
from threading import RLock
from typing import Any, Final
from uuid import UUID

from fanin.app.ports.system import Clock, Random

_NUMBERS: Final[Mapping[str, tuple[int, int, int]]] = {
    "VisibilityTimeout": (30, 0, 43_200),
    "DelaySeconds": (0, 0, 900),
    "MessageRetentionPeriod": (345_600, 60, 1_209_600),
    "ReceiveMessageWaitTimeSeconds": (0, 0, 20),
    "MaximumMessageSize": (262_144, 1024, 1_048_576),
}
"""Attribute → what SQS sets without it, the least and the most that it takes; in seconds, and in bytes."""
DEDUPLICATION_MS: Final = 300_000
_CHANCES: Final = 32  # bits of a random draw


@dataclass
class MessageInFlight:
    """A message in a queue.

    Attributes:
        message_id: the same for each delivery, and in the dead-letter queue.
        body: text.
        attributes: message attributes, in the form of the SQS API.
        sent_at: ms.
        visible_at: when it may be received, ms: a delay or a visibility timeout ends then.
        group_id: of a FIFO queue's order; on a standard queue only carried along.
        dedup_id: of a FIFO queue.
        sequence: grows with each message of a queue.
        received: how often it was received.
        first_received_at: ms; None if it was never received.
        handle: receipt handle of the latest delivery, the only one that removes it.
        died_in: ARN of the queue that moved it to its dead letters; empty if it is not a dead letter.
        copies: how often it is delivered again after it was removed, as a standard queue may do.
    """

    message_id: str
    body: str
    attributes: Mapping[str, Any]
    sent_at: int
    visible_at: int
    group_id: str | None = None
    dedup_id: str | None = None
    sequence: int = 0
    received: int = 0
    first_received_at: int | None = None
    handle: str = ""
    died_in: str = ""
    copies: int = 0


def _defaults() -> dict[str, str]:
    return {name: str(default) for name, (default, *_) in _NUMBERS.items()}


@dataclass
class Queue:
    """A standard or FIFO queue.

    Attributes:
        name: the queue's name; a name that ends in ``.fifo`` makes a FIFO queue.
        url: how callers refer to the queue.
        arn: how policies and event sources refer to it.
        clock: tells what is visible, and what is past its retention.
        random: draws which messages are delivered twice.
        tags: of the queue.
        attributes: as SQS tells them, all text.
        created_at: ms.
        dead_letters: where messages go that were received too often; None delivers them again and again.
        max_receives: how often a message is received before it goes there.
        duplicated: share of the messages, 0 to 1, that are delivered once more after they were removed.
    """

    name: str
    url: str
    arn: str
    clock: Clock
    random: Random
    tags: dict[str, str] = field(default_factory=dict)
    attributes: dict[str, str] = field(default_factory=_defaults)
    dead_letters: Queue | None = None
    max_receives: int = 0
    duplicated: float = 0.0
    _held: OrderedDict[str, MessageInFlight] = field(default_factory=OrderedDict, repr=False)
    _deduplicated: dict[str, tuple[int, MessageInFlight]] = field(default_factory=dict, repr=False)
    _oldest: int = field(default=0, repr=False)
    _numbers: Iterator[int] = field(default_factory=lambda: count(1), repr=False)

    def __post_init__(self) -> None:
        self.created_at = self.clock.now()

    @property
    def fifo(self) -> bool:
        return self.name.endswith(".fifo")

    def seconds(self, attribute: str) -> int:
        """An attribute that is a number."""
        return int(self.attributes[attribute])

    def send(
        self,
        body: str,
        attributes: Mapping[str, Any],
        *,
        delay: int | None = None,
        group_id: str | None = None,
        dedup_id: str | None = None,
        sent_at: int | None = None,
    ) -> MessageInFlight:
        """Take a message from a sender.

        Args:
            body: text.
            attributes: in the form of the SQS API.
            delay: seconds until it can be received; None takes the queue's.
            group_id: message group.
            dedup_id: a FIFO queue takes a message with it once in five minutes.
            sent_at: when it was sent, ms; None for now.

        Returns:
            The message, or the one that was taken before with the same ``dedup_id``.
        """
        now = self.clock.now() if sent_at is None else sent_at
        if self.fifo and dedup_id is not None:
            self._deduplicated = {k: v for k, v in self._deduplicated.items() if v[0] > now}
            if dedup_id in self._deduplicated:
                return self._deduplicated[dedup_id][1]
        wait = self.seconds("DelaySeconds") if delay is None else delay
        message_id, visible_at = str(UUID(bytes=self.random.bytes(16))), now + wait * 1000
        held = MessageInFlight(message_id, body, attributes, now, visible_at, group_id, dedup_id)
        if self.duplicated:
            held.copies = int(self.random.bits(_CHANCES) < self.duplicated * (1 << _CHANCES))
        if self.fifo and dedup_id is not None:
            self._deduplicated[dedup_id] = now + DEDUPLICATION_MS, held
        self._keep(held)
        return held

    def receive(self, most: int, visibility_timeout: int | None) -> list[MessageInFlight]:
        """Deliver messages, and hide them; those received too often move to the dead letters.

        Args:
            most: how many messages at most.
            visibility_timeout: seconds for which they are hidden; None takes the queue's.
        """
        now = self.clock.now()
        hidden = self.seconds("VisibilityTimeout") if visibility_timeout is None else visibility_timeout
        received: list[MessageInFlight] = []
        dead: list[MessageInFlight] = []
        for held in self._visible(now):
            too_often = self.dead_letters is not None and held.received >= self.max_receives
            (dead if too_often else received).append(held)
            if len(received) == most:
                break
        for held in dead:
            self._bury(held)
        for held in received:
            held.received += 1
            held.first_received_at = held.first_received_at or now
            held.visible_at = now + hidden * 1000
            held.handle = f"{self.name}#{held.message_id}#{next(self._numbers)}"
        return received

    def find(self, handle: str) -> MessageInFlight | None:
        """The message of a receipt handle; None if it is gone or was received again."""
        _, _, rest = handle.partition("#")
        held = self._held.get(rest.partition("#")[0])
        return held if held is not None and held.handle == handle else None

    def remove(self, handle: str) -> None:
        """Remove a message; nothing happens if it is gone, or was received again since."""
        held = self.find(handle)
        if held is None:
            return
        if held.copies:
            held.copies -= 1
            held.received -= 1
            held.visible_at = self.clock.now()
            held.handle = ""
        else:
            del self._held[held.message_id]

    def clear(self) -> None:
        """Remove all messages."""
        self._held.clear()

    def next_visible(self) -> int | None:
        """When the next message can be received, ms; now if one can be, None if the queue is empty."""
        now = self.clock.now()
        if next(self._visible(now), None) is not None:
            return now
        heads: dict[str | None, int] = {}
        for held in self._held.values():
            heads.setdefault(held.group_id if self.fifo else held.message_id, held.visible_at)
        return min(heads.values(), default=None)

    def counts(self) -> tuple[int, int, int]:
        """How many messages are visible, in flight, and delayed."""
        now = self.clock.now()
        self._drop_expired(now)
        visible = sum(held.visible_at <= now for held in self._held.values())
        hidden = sum(held.visible_at > now and held.received > 0 for held in self._held.values())
        return visible, hidden, len(self._held) - visible - hidden

    def _visible(self, now: int) -> Iterator[MessageInFlight]:
        """The visible messages, in order; a hidden one blocks the rest of its group in a FIFO queue."""
        self._drop_expired(now)
        blocked: set[str | None] = set()
        for held in self._held.values():
            if self.fifo and held.group_id in blocked:
                continue
            if held.visible_at > now:
                blocked.add(held.group_id)
            else:
                yield held

    def _keep(self, held: MessageInFlight) -> None:
        held.sequence = next(self._numbers)
        self._oldest = min(self._oldest, held.sent_at) if self._held else held.sent_at
        self._held[held.message_id] = held

    def _bury(self, held: MessageInFlight) -> None:
        if self.dead_letters is None:
            return
        del self._held[held.message_id]
        held.died_in = self.arn
        held.visible_at = self.clock.now()
        held.copies = 0
        self.dead_letters._keep(held)  # noqa: SLF001  a message moves whole, as it never does otherwise

    def _drop_expired(self, now: int) -> None:
        keep = self.seconds("MessageRetentionPeriod") * 1000
        if not self._held or now - self._oldest < keep:
            return
        for held in [held for held in self._held.values() if now - held.sent_at >= keep]:
            del self._held[held.message_id]
        self._oldest = min((held.sent_at for held in self._held.values()), default=0)


ACCOUNT: Final = "000000000000"
ENDPOINT: Final = "memory://sqs"
REGION: Final = "memory"
_REDRIVE: Final = "RedrivePolicy"
_MOST_RECEIVES: Final = 1000


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
            arn = f"arn:aws:sqs:{REGION}:{ACCOUNT}:{name}"
            queue = Queue(name, url, arn, self._clock, self._random, dict(tags))
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
        for name, (_, least, most) in _NUMBERS.items():
            value = str(attributes.get(name, least))
            if not (value.isascii() and value.isdecimal() and least <= int(value) <= most):
                raise InvalidAttribute(f"{name} must be between {least} and {most}, not {value}")
        policy = json.loads(attributes.get(_REDRIVE) or "{}")
        if policy:
            dead_letters = self.by_arn(policy["deadLetterTargetArn"])
            receives = int(policy["maxReceiveCount"])
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
