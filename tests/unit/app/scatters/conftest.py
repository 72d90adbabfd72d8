"""What tests of scatters share: a world with queues to scatter to, and a worker."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import pytest

from fanin import names
from fanin.app.ledger.service import LedgerService
from fanin.app.ports.events import Event
from fanin.app.ports.queues import Outgoing
from fanin.app.scatters.service import ScatterService
from fanin.app.services import Patterns
from fanin.domain.batch import Batch
from fanin.domain.ids import issue
from fanin.domain.scatter import Recipient, Reply, ReplyReceipt, Scatter, Scattered
from tests.unit.app.conftest import Crash, World

REPLY_TO = "https://sqs/replies"
NOW = 1_790_000_000_000
BATCH = Batch(7, b"s", NOW, NOW, expires_at=2**40, open_idle_ttl=60, closed_idle_ttl=60)
"""A batch that is about to be opened."""


class Fleet(World):
    """A world with queues to scatter to, and a worker.

    Attributes:
        scatters: the use cases, of the process that lives on.
    """

    def __init__(self) -> None:
        super().__init__()
        self.ports = replace(self.ports, defaults=replace(self.ports.defaults, reply_to=REPLY_TO))
        self.ledger = self.fresh()
        self.scatters = ScatterService(self.ledger)

    def fresh(self) -> LedgerService:
        return LedgerService(self.ports, Patterns(self.ports))

    @contextmanager
    def dying(self, call: str, moment: str) -> Iterator[None]:
        """Let whoever works in this block die there."""
        self.crash_at(call, moment)
        with pytest.raises(Crash):
            yield

    def recipients(self, n: int) -> list[Recipient]:
        for i in range(n):
            self.memory.channels.queues.setdefault(f"https://sqs/car-{i}", [])
        return [Recipient(f"car {i}", f"https://sqs/car-{i}") for i in range(n)]

    def start(self, n: int, **options: Any) -> Scattered:
        return self.scatters.start(Scatter("report!", self.recipients(n), **options))

    def ask(self, n: int, **options: Any) -> Batch:
        """The batch of a scatter to ``n`` recipients, of one queue; its jobs are dropped."""
        self.recipients(1)
        to = [Recipient(f"car {i}", "https://sqs/car-0") for i in range(n)]
        started = self.scatters.start(Scatter("x", to, **options))
        self.memory.jobs.waiting.clear()
        return self.row(started.batch)

    def nth(self, batch: Batch, i: int) -> str:
        """The item id of a recipient."""
        return f"{issue(batch.batch_id, 0, batch.items, batch.salt).prefix}:{i}"

    def work(self) -> None:
        """Do all jobs that wait, as the worker does."""
        jobs = self.memory.jobs.waiting
        while jobs:
            job = jobs[0]
            ScatterService(self.fresh()).work(job["batch_id"], job["chunk"], job["wave"])
            jobs.pop(0)

    def got(self, i: int) -> list[Outgoing]:
        return self.memory.channels.queues[f"https://sqs/car-{i}"]

    def item(self, i: int) -> str:
        return self.got(i)[-1].attributes[names.ITEM_ATTRIBUTE]

    def reply(self, i: int, payload: object = "ok") -> ReplyReceipt:
        return self.scatters.reply([Reply(self.item(i), payload)])[0]

    def ring(self, seconds: int) -> None:
        """Let time pass, and the alarms ring that are due then."""
        self.clock.advance(seconds * 1000)
        for batch_id in self.memory.timers.ring(self.clock.at):
            self.fresh().meet_deadline(batch_id)

    def told(self, scattered: Scattered) -> Event:
        """What the notifier tells of its end."""
        self.fresh().announce(self.row(scattered.batch))
        return self.memory.events.published[-1]

    def said(self, scattered: Scattered, limit: int = 100) -> dict[str, object]:
        """The replies, by recipient, over all pages."""
        cursor: str | None = None
        found: dict[str, object] = {}
        while True:
            page = self.scatters.replies(scattered.batch.batch_id, cursor=cursor, limit=limit)
            found |= {reply.name: reply.payload for reply in page.replies}
            cursor = page.cursor
            if cursor is None:
                return found


@pytest.fixture
def fleet() -> Fleet:
    return Fleet()
