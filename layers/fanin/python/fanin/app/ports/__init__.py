"""What the use cases need from the world. Adapters implement these Protocols; nothing here does I/O.

Each module has the Protocols of one part of the world; ``Ports`` holds an implementation of each.

Stores keep three promises. Every write that moves a batch or clears a bit is one conditional write of one
row, except ``allocate_once``, a transaction of two rows. Every read is strongly consistent, except the
listing ``BatchStore.page``. A call whose answer was lost may be repeated without further effect, except
``allocate``, ``allocate_counted`` and ``count``.
"""

from dataclasses import dataclass

from fanin.app.ports.batches import BatchStore
from fanin.app.ports.events import Events, Rules
from fanin.app.ports.parts import PartStore
from fanin.app.ports.queues import Callbacks, Channels, Jobs, QueueInspection, Queues
from fanin.app.ports.records import ClaimChecks, Records
from fanin.app.ports.system import Clock, Random, Timers
from fanin.app.ports.words import WordStore
from fanin.domain.batch import STALL_AFTER
from fanin.domain.tree import Tree


@dataclass(frozen=True)
class Defaults:
    """Values for what a caller does not specify; durations in seconds.

    Attributes:
        open_idle_ttl: without activity until an open batch is orphaned.
        closed_idle_ttl: the same for a closed batch.
        lifetime: until the hard end of a batch.
        stall_after: without activity until a live batch counts as stalled; 0 for never.
        reply_to: URL of the queue for replies, which a scatter's messages name; empty if there is none.
        targets: whether this process knows the queue of jobs for targets.
        webhook_hosts: hosts that webhooks may name, separated by commas; empty allows none.
        region: region of AWS, whose prices costs are estimated with; empty if it is not known.
        event_prefix: what the ids of events begin with, so that no two deployments send the same id.
        opened_by: who opens batches where no caller is known: the name of a program on the tables.
    """

    open_idle_ttl: int = 2 * 3600
    closed_idle_ttl: int = 7 * 86_400
    lifetime: int = 30 * 86_400
    stall_after: int = STALL_AFTER
    reply_to: str = ""
    targets: bool = True
    webhook_hosts: str = ""
    region: str = ""
    event_prefix: str = ""
    opened_by: str = ""


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
    inspection: QueueInspection
    rules: Rules
    jobs: Jobs
    redrives: Jobs
    claims: ClaimChecks
    target_jobs: Jobs
    callbacks: Callbacks
    clock: Clock
    random: Random
    defaults: Defaults = Defaults()
    tree: Tree = Tree()
