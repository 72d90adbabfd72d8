"""What the use cases need of the world. Adapters implement these Protocols; nothing here does I/O.

Each module has the Protocols of one part of the world; ``Ports`` holds one of each.

Stores keep three promises. Every write is one conditional write of one row (or, for ``allocate_once``,
one transaction of two rows). Every read is strongly consistent. And a call, save ``allocate`` and
``count``, may be repeated after its answer was lost: it then changes nothing more.
"""

from __future__ import annotations

from dataclasses import dataclass

from fanin.app.ports.batches import BatchStore, PartStore
from fanin.app.ports.channels import Channels, Jobs
from fanin.app.ports.claims import ClaimChecks
from fanin.app.ports.events import Events
from fanin.app.ports.queues import Queues
from fanin.app.ports.records import Records
from fanin.app.ports.rules import Rules
from fanin.app.ports.system import Clock, Random
from fanin.app.ports.timers import Timers
from fanin.app.ports.words import WordStore
from fanin.domain.tree import Tree


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
