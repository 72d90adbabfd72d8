"""The actors of the simulation. Each is built with its durable input, and returns what it runs.

What a closure keeps outlives a crash, as a queue or a caller's own store would; what it makes when it runs
is lost, above all the process's cache of batches.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass, field
from random import Random
from typing import NamedTuple

from fanin.adapters.memory import Memory
from fanin.app.ledger.service import LedgerService
from fanin.app.ports.words import WordKey
from fanin.domain.acks import Failure, ItemRange, Receipt, Result
from fanin.domain.batch import Batch, State
from fanin.domain.ids import Group
from fanin.domain.reports import Missing
from fanin.errors import BatchClosed, LimitReached, PartlyMarked, ServiceUnavailable, Throttled
from tests.stateful.model import Model, ordinals_of, require
from tests.stateful.scheduler import Crash, Death, Scheduler
from tests.stateful.values import ValuesModel

Actor = Callable[[], None]


class Message(NamedTuple):
    """What a consumer finds in the queue: items to acknowledge or to fail, or a range of them."""

    items: tuple[str, ...] = ()
    span: ItemRange | None = None
    failing: bool = False


@dataclass
class World:
    """What the actors share.

    Attributes:
        service: gives a process: a new one, or one that several actors share as threads.
        queue: messages to consume, in no order.
        values: what items bring to the totals of their batches; None for batches without totals.
        producing: producers that have not finished.
        clients: actors on whose end the functions behind the streams may stop.
        deaths: how many clients of each kind have died.
    """

    rng: Random
    memory: Memory
    model: Model
    scheduler: Scheduler
    service: Callable[[], LedgerService]
    queue: list[Message]
    values: ValuesModel | None = None
    producing: int = 0
    clients: int = 0
    deaths: Counter[str] = field(default_factory=Counter)

    def client(self, kind: str, run: Actor) -> Actor:
        """An actor that the functions behind the streams outlive; what it holds when it dies is lost."""
        self.clients += 1
        self.producing += kind == "producer"

        def wrapped() -> None:
            try:
                run()
            except Death:
                self.deaths[kind] += 1
            self.clients -= 1
            self.producing -= kind == "producer"

        return wrapped

    # Clients.

    def producer(self, batch_id: int, plan: list[tuple[int, str | None]]) -> Actor:
        """Adds items and sends their ids; without a key, a repeat after a crash adds them twice."""
        patience = 30

        def run() -> None:
            nonlocal patience
            service = self.service()
            while plan:
                count, key = plan[0]
                try:
                    group = service.add(batch_id, count, key=key)
                except BatchClosed:
                    plan.clear()
                    continue
                except (LimitReached, Throttled):
                    patience -= 1
                    if patience:
                        self.scheduler.pause()
                    else:
                        plan.clear()
                    continue
                plan.pop(0)
                self.model.issued(group, key)
                self.send(group)

        return self.client("producer", run)

    def send(self, group: Group) -> None:
        """Put the items of a group into messages: singly, in bulk, as ranges, some of them twice."""
        rng, at = self.rng, 0
        while at < group.upto:
            stop = min(group.upto, at + rng.choice((1, 1, 2, 5, 20)))
            items = list(group[at:stop])
            rng.shuffle(items)
            message = Message(tuple(items), failing=rng.random() < 0.15)
            if rng.random() < 0.25:
                message = Message(span=ItemRange(group.prefix, at, stop))
            self.queue.append(message)
            if rng.random() < 0.2:
                self.queue.append(message._replace(failing=rng.random() < 0.5))
            at = stop
        if rng.random() < 0.1:
            self.queue.append(Message(span=ItemRange(group.prefix)))

    def consumer(self) -> Actor:
        """Takes messages and marks their items; what it holds in a crash is delivered again."""
        held: list[Message] = []

        def run() -> None:
            self.queue.extend(held)
            held.clear()
            service = self.service()
            while self.scheduler.wait(lambda: self.queue or not self.producing) and self.queue:
                self.rng.shuffle(self.queue)
                held.extend(self.queue.pop() for _ in range(min(self.rng.randint(1, 4), len(self.queue))))
                self.mark(service, held)
                held.clear()

        return self.client("consumer", run)

    def mark(self, service: LedgerService, messages: list[Message]) -> None:
        """Acknowledge and fail the items of messages in bulk, and tell the model."""
        for failing in (False, True):
            items = [item for m in messages if m.failing is failing and not m.span for item in m.items]
            spans = [] if failing else [m.span for m in messages if m.span]
            if not items and not spans:
                continue
            self.model.begin(items, spans, failing=failing)
            lost = self.scheduler.lost[self.scheduler.name]
            try:
                receipts = self.tell(service, items, spans, failing=failing)
            except (Crash, ServiceUnavailable, PartlyMarked):
                self.model.lost(items)
                raise
            if self.scheduler.lost[self.scheduler.name] > lost:
                self.model.lost(items)  # the repeat may have met its own bits
            self.model.answered(receipts, items, spans, failing=failing)

    def tell(
        self, service: LedgerService, items: list[str], spans: list[ItemRange], *, failing: bool
    ) -> list[Receipt]:
        """Make the call; each item may bring values to the totals of its batch."""
        values = self.values
        with values.bringing(items, self.has_totals) if values else nullcontext({}) as brought:
            if failing:
                return service.fail(
                    [Failure(item, "it would not", totals=brought.get(item, {})) for item in items]
                )
            plain = [item for item in items if item not in brought]
            results = [Result(item, brought[item]) for item in items if item in brought]
            return service.ack(plain, ranges=spans, results=results)

    def has_totals(self, batch_id: int) -> bool:
        return bool(self.model.rows[batch_id].totals)

    def closer(self, batch_id: int, *, early: bool) -> Actor:
        def run() -> None:
            if not early:
                self.scheduler.wait(lambda: not self.producing)
            self.service().close(batch_id)

        return self.client("closer", run)

    def canceller(self, batch_id: int) -> Actor:
        return self.client("canceller", lambda: void(self.service().cancel(batch_id)))

    def reader(self, batch_id: int, times: int) -> Actor:
        """Reads in any way there is; what it is told must lie between what is sure and what is begun."""
        left = times

        def run() -> None:
            nonlocal left
            while left:
                left -= 1
                self.read(batch_id)

        return self.client("reader", run)

    def read(self, batch_id: int) -> None:
        service, known = self.service(), self.model.batches[batch_id]
        before, sure = self.model.rows[batch_id].items, set(known.sure)
        way = self.rng.choice(("status", "exact", "missing", "verify"))
        if way == "missing":
            limit, listed, page = self.rng.choice((1, 2, 1000)), set[int](), Missing((), "0")
            while page.cursor is not None:
                page = service.missing(batch_id, cursor=page.cursor, limit=limit)
                for found in page.ranges:
                    listed |= ordinals_of(ItemRange(found.group))[1]
            require(not listed & sure, f"missing lists {listed & sure}, which are done")
            unlisted = set(range(before)) - known.begun - listed
            require(not unlisted, f"missing does not list {unlisted}")
            return
        if way == "verify":
            verdict = service.verify(batch_id, repair=self.rng.random() < 0.5)
            early = any(text.startswith("the batch is complete") for text in verdict.disagreements)
            require(not early, f"verify: {verdict.disagreements}")
            n, low, high = before, before - verdict.pending, verdict.batch.items - verdict.pending
        else:
            least = None if self.values is None else self.values.expected(batch_id)["size"]
            progress = service.status(batch_id, exact=way == "exact")
            if self.values is not None and progress.batch.totals_exact and not progress.batch.all_done:
                size, most = progress.batch.totals["size"], self.values.expected(batch_id)["size"]
                require(least <= size <= most, f"{way}: the totals have {size}, between {least} and {most}")
            n, low, high = progress.batch.items, progress.done_min, progress.done_max
        begun = sum(ordinal < n for ordinal in known.begun)
        require(low <= begun, f"{way}: at least {low} are done, but {begun} are begun")
        require(high >= len(sure), f"{way}: at most {high} are done, but {len(sure)} are")

    # The functions behind streams, alarms and schedules.

    def fed(self, more: Callable[[], object]) -> object:
        """Wait for records; falsy when there are none and all clients have finished."""
        self.scheduler.wait(lambda: more() or not self.clients)
        return more()

    def settler(self) -> Actor:
        """Fed by the stream of finished words, at least once."""
        at, feed = 0, self.memory.words.finished

        def more() -> bool:
            return at < len(feed)

        def run() -> None:
            nonlocal at
            service = self.service()
            while self.fed(more):
                stop = min(len(feed), at + 3)  # the feed grows while these are healed
                records: list[WordKey] = feed[max(0, at - 1) : stop]
                service.heal(records)
                at = stop

        return run

    def notifier(self) -> Actor:
        """Fed by the stream of ended batches, at least once."""
        at, feed = 0, self.memory.batches.changes

        def more() -> bool:
            return at < len(feed)

        def run() -> None:
            nonlocal at
            service = self.service()
            while self.fed(more):
                old, new = feed[at]
                if new.state.terminal and old and not old.state.terminal:
                    self.announce(service, new)
                at += 1

        return run

    def announce(self, service: LedgerService, batch: Batch) -> None:
        """Tell of an ended batch; its parent's item is marked by nobody else, and only if it was used."""
        used = batch.items or batch.closed_at is not None or batch.state is State.CANCELLED
        parent = [batch.parent_item] if batch.parent_item and used else []
        self.model.begin(parent, failing=batch.state is not State.COMPLETE)
        self.model.lost(parent)
        service.announce(batch)
        self.model.settled(parent)

    def timer(self) -> Actor:
        """Rung by the alarms."""
        ringing: list[int] = []

        def due() -> list[int]:
            ringing.extend(self.memory.timers.ring(self.memory.clock.now()))
            return ringing

        def run() -> None:
            while self.fed(due):
                self.service().meet_deadline(ringing[0])
                ringing.pop(0)

        return run

    def reaper(self, times: int) -> Actor:
        left = times

        def run() -> None:
            nonlocal left
            while left:
                left -= 1
                self.scheduler.pause()
                self.service().reap()

        return self.client("reaper", run)


def void(_: object) -> None:
    """Drop an answer."""
