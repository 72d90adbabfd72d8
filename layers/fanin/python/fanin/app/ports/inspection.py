"""Looking at queues from outside: what is in them, who receives from them, and how that goes."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import NamedTuple, Protocol


class Figures(NamedTuple):
    """Figures and settings of a queue. Its counts are approximate, and may be a minute old.

    Attributes:
        visible: messages that can be received.
        in_flight: messages that were received, and are neither deleted nor visible again.
        delayed: messages that cannot be received yet.
        retention: seconds until the queue drops a message.
        dead_letters: name of its dead-letter queue; empty if it has none.
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


class Consumer(NamedTuple):
    """An event source mapping of a queue.

    Attributes:
        function: name of the function.
        enabled: whether Lambda polls the queue for it.
        state: as Lambda names it, such as ``Disabled``.
    """

    function: str
    enabled: bool
    state: str


class Trouble(NamedTuple):
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
    consumers: tuple[Consumer, ...] | None = None
    troubles: tuple[Trouble, ...] | None = None
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
