"""Batches whose failed items have kept their messages."""

import json
from collections import Counter
from collections.abc import Callable, Collection, Mapping

import pytest

from fanin import names
from fanin.app.ports.parts import IN_ROW, FailureRow
from fanin.app.ports.queues import Outgoing
from fanin.app.redrives.records import LEASE_MS
from fanin.app.redrives.redrive import RedriveService
from fanin.domain.batch import Batch, OnFailure
from fanin.domain.failures import KeptMessage
from fanin.domain.limits import MAX_MARKS, chunks
from fanin.domain.marks import WEIGHT, Failure
from fanin.wire.messages import KEPT_MESSAGE
from tests.unit.app.conftest import World

QUEUE, FIFO = "https://sqs/work", "https://sqs/work.fifo"
SMALL = "https://sqs/small"
"""A queue that refuses each message."""


class Failed(World):
    """A world with queues, whose failures keep their messages."""

    def __init__(self, width: int = 4) -> None:
        super().__init__(width)
        self.memory.channels.queues |= {QUEUE: [], FIFO: [], SMALL: []}
        self.memory.channels.refusing[SMALL] = "too large"

    def later(self, passing: int, call: str, moment: str, action: Callable[[], object]) -> None:
        """Do something once, when so many such accesses have passed."""
        for _ in range(passing):
            self.at(call, moment, lambda: None)
        self.at(call, moment, action)

    def worker_dies(self) -> None:
        """Its job is gone, and its lease ends."""
        self.memory.redrives.waiting.clear()
        self.clock.advance(LEASE_MS)

    def service(self, page: int = 3, at_once: int = 100) -> RedriveService:
        """A process that starts now."""
        return RedriveService(self.fresh(), page=page, at_once=at_once)

    def failures(
        self,
        count: int,
        *,
        reasons: Mapping[int, str] | None = None,
        sources: Mapping[int, str] | None = None,
        without: Collection[int] = (),
        groups: Mapping[int, str] | None = None,
        live: bool = False,
        **request: object,
    ) -> Batch:
        """A batch of which every item has failed; a live one holds them: they are pending, and noted."""
        batch, (group,) = self.batch(count, **request, on_failure=OnFailure.HOLD if live else OnFailure.DONE)
        items = list(group)
        if not live:
            for some in chunks(items, max_items=MAX_MARKS // WEIGHT):
                self.ledger.mark([Failure(item, "x") for item in some]).whole()
        self.note(batch, items, reasons=reasons, sources=sources, without=without, groups=groups)
        if not live:
            self.ledger.close(batch.batch_id)
        return self.row(batch)

    def note(
        self,
        batch: Batch,
        items: list[str],
        *,
        reasons: Mapping[int, str] | None = None,
        sources: Mapping[int, str] | None = None,
        without: Collection[int] = (),
        groups: Mapping[int, str] | None = None,
    ) -> None:
        """Write notes and messages of items, as whoever fails them does."""
        reasons, sources, groups = reasons or {}, sources or {}, groups or {}
        self.clock.advance(1)
        at = self.clock.now()
        rows = [
            FailureRow(
                n, item, reasons.get(n, "x"), 1, at, sources.get(n, QUEUE), "" if n in without else IN_ROW
            )
            for n, item in enumerate(items)
        ]
        self.ports.parts.update_failures(batch.batch_id, rows, expires_at=batch.expires_at)
        messages = {
            n: json.dumps(KEPT_MESSAGE.encode(KeptMessage(f"body {n}", {}, groups.get(n)))).encode()
            for n in range(len(items))
            if n not in without
        }
        self.ports.parts.put_messages(batch.batch_id, messages, again=True, expires_at=batch.expires_at)

    def new(self, batch: Batch) -> Batch:
        """The batch that retries another one, as it is now."""
        (found,) = (row for row in self.memory.batches._rows.values() if row.retry_of == batch.batch_id)
        return self.fresh().status(found.batch_id).batch

    def noted(self, batch: Batch) -> FailureRow:
        """The only failure of a batch."""
        (note,), _ = self.ports.parts.failures(batch.batch_id)
        return note

    def sent(self, queue: str = QUEUE) -> list[Outgoing]:
        return self.memory.channels.queues[queue]

    def bodies(self, queue: str = QUEUE) -> Counter[str]:
        return Counter(message.body for message in self.sent(queue))

    def items(self, queue: str = QUEUE) -> dict[str, set[str]]:
        """The item ids under which each message was sent, by its body."""
        found: dict[str, set[str]] = {}
        for message in self.sent(queue):
            found.setdefault(message.body, set()).add(str(message.attributes[names.ITEM_ATTRIBUTE]))
        return found

    def work(self) -> None:
        """Do the jobs that wait."""
        while self.memory.redrives.waiting:
            job = self.memory.redrives.waiting.pop(0)
            service = self.service(at_once=1)
            service.work(job["batch_id"], job["redrive"], job["owner"], until=self.clock.now())

    def ack_all(self, queue: str = QUEUE) -> None:
        """Consumers handle everything that was sent."""
        if items := sorted({item for found in self.items(queue).values() for item in found}):
            self.fresh().mark(items).whole()


@pytest.fixture
def failed() -> Failed:
    return Failed()
