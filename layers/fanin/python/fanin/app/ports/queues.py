"""The queues of buffers; and queues as seen from outside: who receives from them, and how that goes."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol


class Received(NamedTuple):
    """A message received from a queue; until its visibility timeout, other consumers do not get it.

    Attributes:
        handle: receipt handle of this delivery; ``remove`` takes it.
        body: text.
        attributes: string attributes.
        sent_at: when it was sent, ms.
    """

    handle: str
    body: str
    attributes: Mapping[str, str]
    sent_at: int


class QueueState(NamedTuple):
    """Settings and figures of a queue.

    Attributes:
        retention: seconds until the queue drops a message.
        in_flight: messages received and not removed, approximately.
    """

    retention: int
    in_flight: int


class Queues(Protocol):
    """The queues of buffers: created by the service, or the user's own with the channel tag."""

    def create(self, name: str, born: int) -> str:
        """Create the queue of a buffer, unless it exists, and return its URL.

        Args:
            name: of the buffer.
            born: id of the buffer's first batch. It makes the queue's name unique, so that a slow call that
                deletes a buffer's queue never deletes that of a later buffer of the same name.
        """
        ...

    def delete(self, queue: str) -> None:
        """Delete a queue, if it exists."""
        ...

    def receive(self, queue: str, *, most: int, wait: int, visibility_timeout: int | None) -> list[Received]:
        """Receive messages, waiting until the first arrives.

        Args:
            queue: URL.
            most: messages, at most 10.
            wait: seconds.
            visibility_timeout: seconds until others may get the messages; None for the queue's own.

        Raises:
            ChannelRefused: the queue is gone, or cannot be received from.
        """
        ...

    def remove(self, queue: str, handles: Sequence[str]) -> None:
        """Remove messages; those already gone, or received again by another consumer, are left alone."""
        ...

    def state(self, queue: str) -> QueueState:
        """Read the state of a queue; raises ChannelRefused like ``receive``."""
        ...


class Figures(NamedTuple):
    """Figures and settings of a queue. Its counts are approximate, and may be a minute old.

    Attributes:
        visible: messages that can be received.
        in_flight: messages that were received, and are neither deleted nor visible again.
        delayed: messages that cannot be received yet.
        retention: seconds until the queue drops a message.
        dead_letters: ARN of its dead-letter queue; empty if it has none.
        max_receives: how often a message is received before it goes there; 0 if it has none.
    """

    visible: int
    in_flight: int
    delayed: int
    retention: int
    dead_letters: str = ""
    max_receives: int = 0

    @property
    def empty(self) -> bool:
        return not (self.visible or self.in_flight or self.delayed)


class QueueMapping(NamedTuple):
    """An event source mapping of a queue.

    Attributes:
        function: name of the function.
        enabled: whether Lambda polls the queue for it.
        state: as Lambda names it, such as ``Disabled``.
        mapping: id of the mapping; empty if it is not known.
    """

    function: str
    enabled: bool
    state: str
    mapping: str = ""


class FunctionTrouble(NamedTuple):
    """What went wrong with a function in the last minutes.

    Attributes:
        function: its name.
        throttles: invocations that Lambda refused.
        errors: invocations that failed.
        minutes: how long that is.
    """

    function: str
    throttles: int
    errors: int
    minutes: int


@dataclass(frozen=True, slots=True)
class QueueReport:
    """What could be seen of a queue.

    Attributes:
        queue: its URL.
        exists: False if SQS says that there is no such queue.
        figures: None if they could not be read.
        dead: messages in its dead-letter queue; None if that could not be read, or it has none.
        consumers: None if they could not be listed.
        troubles: of the consumers' functions; None if they could not be read.
        unseen: what could not be read and why, such as ``its figures (AccessDenied)``.
    """

    queue: str
    exists: bool = True
    figures: Figures | None = None
    dead: int | None = None
    consumers: tuple[QueueMapping, ...] | None = None
    troubles: tuple[FunctionTrouble, ...] | None = None
    unseen: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """The queue's name, the last part of its URL."""
        return self.queue.rpartition("/")[2]


class QueueInspection(Protocol):
    """Looks at queues. It changes nothing, and raises nothing: what cannot be read is said in the report."""

    def look(self, queues: Collection[str]) -> list[QueueReport]:
        """Look at queues, by their URLs, all at a time; at most four requests for each."""
        ...
