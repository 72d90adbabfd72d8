"""What the use cases need of the world. Adapters implement these Protocols; nothing here does I/O.

Those of the stores are in ``word_store`` and ``batch_store``, those of the patterns alone in
``pattern_ports``; ``Ports`` holds one of each.

Stores keep three promises. Every write is one conditional write of one row (or, for ``allocate_once``,
one transaction of two rows). Every read is strongly consistent. And a call, save ``allocate`` and
``count``, may be repeated after its answer was lost: it then changes nothing more.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from fanin import names
from fanin.app.batch_store import BatchStore, PartStore
from fanin.app.pattern_ports import Channels, ClaimChecks, Jobs, Queues, Records, Rules
from fanin.app.word_store import WordStore
from fanin.domain.tree import Tree


class Timers(Protocol):
    """One-time alarms that call the timer function with a batch id."""

    def set(self, batch_id: int, at: int) -> None:
        """Set the alarm of a batch, ``at`` in ms; setting it again is no error."""
        ...

    def clear(self, batch_id: int) -> None:
        """Delete it; none being there is no error."""
        ...


class Event(NamedTuple):
    """An event for the bus.

    Attributes:
        id: deterministic, ``<batch>.<state>``, so that a consumer can drop a repeat.
        detail_type: such as ``Batch Completed``.
        detail: JSON object.
        time: ms since the epoch.
        source: who says it; an event of others carries no id of ours.
    """

    id: str
    detail_type: str
    detail: Mapping[str, object]
    time: int
    source: str = names.EVENT_SOURCE


class Events(Protocol):
    """The bus."""

    def publish(self, event: Event) -> str:
        """Put one event, and return the id that the bus gave it.

        Raises:
            Throttled, ServiceUnavailable: the bus did not take it.
        """
        ...


class Clock(Protocol):
    def now(self) -> int:
        """Milliseconds since the epoch."""
        ...


class Random(Protocol):
    def bits(self, n: int) -> int:
        """A random integer of n bits."""
        ...

    def bytes(self, n: int) -> bytes:
        """N unpredictable bytes."""
        ...


@dataclass(frozen=True)
class Defaults:
    """Values for what a caller leaves open; durations in seconds.

    Attributes:
        open_idle_ttl: of batches that are open.
        closed_idle_ttl: of batches that are closed.
        lifetime: of batches.
        reply_to: URL of the queue that the messages of scatters name for replies; empty for none.
    """

    open_idle_ttl: int = 2 * 3600
    closed_idle_ttl: int = 7 * 86_400
    lifetime: int = 30 * 86_400
    reply_to: str = ""


@dataclass(frozen=True)
class Ports:
    """Everything a use case may call, and the shape of the tree."""

    batches: BatchStore
    words: WordStore
    parts: PartStore
    timers: Timers
    events: Events
    records: Records
    directory: Records
    channels: Channels
    queues: Queues
    rules: Rules
    jobs: Jobs
    claims: ClaimChecks
    clock: Clock
    random: Random
    defaults: Defaults = Defaults()
    tree: Tree = Tree()
