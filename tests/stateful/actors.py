"""The actors of the simulation. Each is built with its durable input, and returns what it runs.

What a closure keeps outlives a crash, as a queue or a caller's own store would; what it makes when it runs
is lost, above all the process's cache of batches.
"""

import json
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from itertools import accumulate, pairwise
from random import Random
from typing import Any, NamedTuple, TypeAlias
from uuid import UUID

from fanin.adapters.memory import Memory
from fanin.app.ledger.service import LedgerService
from fanin.app.ports.parts import SentRow
from fanin.app.ports.words import WordKey
from fanin.domain.batch import Batch, CloseWhen, State
from fanin.domain.ids import Group, ItemKey, KeyedItem, parse_prefix
from fanin.domain.marks import Failure, Receipt
from fanin.domain.reports import Missing
from fanin.entry.queues import acknowledge
from fanin.errors import (
    BatchClosed,
    BatchGone,
    BatchNotFound,
    FaninError,
    InvalidItemId,
    InvalidRequest,
    ItemDone,
    LimitReached,
    MaxItemsReached,
    Throttled,
)
from fanin.wire.json_text import compact
from fanin.wire.marks import MARKS
from tests.stateful.model import Model, ordinal_of, ordinals_of, require
from tests.stateful.scheduler import Crash, Death, Scheduler
from tests.stateful.values import ValuesModel

Actor = Callable[[], None]
Verdicts: TypeAlias = tuple[Sequence[Receipt], Mapping[int, Exception], Collection[int]]
"""Receipts, what is refused by place, and what is left."""


class Message(NamedTuple):
    """What a consumer finds in the queue: marks, as they are on the wire."""

    entries: tuple[Any, ...]


class Fault(NamedTuple):
    """A mark that no ledger may take: nobody issued its item, or its batch does not know its totals."""

    entry: Any
    error: type[FaninError]


@dataclass
class World:
    """What the actors share.

    Attributes:
        service: gives a process: a new one, or one that several actors share as threads.
        queue: messages to consume, in no order.
        gone: an item of a batch that was removed.
        values: what items bring to the totals of their batches; None for batches without totals.
        producing: producers that have not finished.
        clients: actors on whose end the functions behind the streams may stop.
        deaths: how many clients of each kind have died.
        sent: how many marks were made.
        faults: what must be refused, by its JSON; each is another, and in one message.
        reported: how often each of them was refused or parked.
        grows: the batches that drain when they are closed, each with the most items that may add to it.
        given_out: batch and ordinal of what items have added, and sent.
    """

    rng: Random
    memory: Memory
    model: Model
    scheduler: Scheduler
    service: Callable[[], LedgerService]
    queue: list[Message]
    gone: str = ""
    values: ValuesModel | None = None
    producing: int = 0
    clients: int = 0
    deaths: Counter[str] = field(default_factory=Counter)
    sent: int = 0
    faults: dict[str, Fault] = field(default_factory=dict)
    reported: Counter[str] = field(default_factory=Counter)
    grows: dict[int, int] = field(default_factory=dict)
    given_out: set[tuple[int, int]] = field(default_factory=set)

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
                except (BatchClosed, MaxItemsReached):
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
            entries = [self.entry(item) for item in items]
            if rng.random() < 0.25:
                entries = [{"group": group.prefix, "from": at, "to": stop}, *entries[: rng.choice((0, 0, 2))]]
            if rng.random() < 0.2:
                entries += [self.entry(rng.choice(items), failing=0.5) for _ in range(2)]
            if rng.random() < 0.05:
                entries.append({"group": group.prefix, "from": at, "to": stop})
            if rng.random() < 0.2:
                self.queue.append(Message(tuple(self.entry(item, failing=0.5) for item in items)))
            if rng.random() < 0.15:
                entries.insert(rng.randint(0, len(entries)), self.fault(group))
            self.queue.append(Message(tuple(entries)))
            at = stop
        if rng.random() < 0.1:
            self.queue.append(Message(({"group": group.prefix, "from": 0, "to": None},)))

    def entry(self, item: str, failing: float = 0.1) -> Any:
        """A mark of an item, done or failed."""
        return {"failed": item, "reason": "it would not"} if self.rng.random() < failing else item

    def fault(self, group: Group) -> Any:
        """A mark that must be refused, unlike any other."""
        rng = self.rng
        self.sent += 1
        n, good = self.sent, rng.choice(group)
        batch_id, _, name = group.prefix.partition(":")
        forged = UUID(int=UUID(name).int ^ 1 << rng.randrange(50))
        fault = rng.choice(
            (
                Fault(f"nonsense {n}", InvalidItemId),
                Fault(f"{group.prefix}:{group.upto + n}", InvalidItemId),
                Fault({"item": f"{batch_id}:{forged}:0", "totals": {"size": n}}, InvalidItemId),
                Fault({"failed": f"{int(batch_id) ^ 1 << 40}:{name}:0", "attempts": n}, BatchNotFound),
                Fault({"failed": self.gone, "attempts": n}, BatchGone),
                Fault({"item": good, "totals": {"unheard_of": n}}, InvalidRequest),
                Fault({"failed": good, "totals": {"unheard_of": n}}, InvalidRequest),
                Fault({"item": good, "totals": {"size": n + 0.5}}, InvalidRequest),
                Fault({"item": good, "and": n}, InvalidRequest),
                Fault({"group": group.prefix, "from": 0, "to": group.upto + n}, InvalidRequest),
                Fault({"batch_id": int(batch_id), "count": n}, InvalidRequest),
                Fault(n, InvalidRequest),
            )
        )
        self.faults[compact(fault.entry)] = fault
        return fault.entry

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
                for message in [one for one in held if not self.grow(service, one)]:
                    held.remove(message)
                    self.queue.append(message)
                left = self.mark(service, held) if held else []
                held.clear()
                self.queue.extend(left)

        return self.client("consumer", run)

    def grow(self, service: LedgerService, message: Message) -> bool:
        """Add what the items of a message bring; False if the message is to come again."""
        for entry in message.entries:
            item = entry.get("item", entry.get("failed")) if isinstance(entry, dict) else entry
            if isinstance(item, str) and compact(entry) not in self.faults:
                try:
                    self.grow_by(service, item, *ordinal_of(item))
                except Throttled:
                    return False
        return True

    def grow_by(self, service: LedgerService, item: str, batch_id: int, ordinal: int) -> None:
        """Add what an item brings, the same in each delivery: a number of items, or keys."""
        drawn = Random(f"grows/{ordinal}")
        count = drawn.choice((0, 0, 1, 1, 2, 5)) if ordinal < self.grows.get(batch_id, 0) else 0
        keys = [ItemKey(f"key {drawn.randrange(30)}") for _ in range(count * (drawn.random() < 0.5))]
        try:
            if keys:
                self.send_keyed(service, batch_id, service.add_keys(batch_id, keys, item=item).items)
            elif count:
                group = service.add(batch_id, count, item=item)
                self.model.issued(group, item)
                self.send_noted(service, [] if group.sent else [group])
        except ItemDone:
            begun = self.model.batches[batch_id].begun
            require(ordinal in begun, f"{item} is said to be done, and nobody has marked it")
        except BatchClosed:
            require(self.model.rows[batch_id].state is not State.OPEN, f"{item} was refused too early")
        except MaxItemsReached:
            row = self.model.rows[batch_id]
            require(row.items + count > (row.max_items or 0), f"{row} has room for {count}")

    def send_keyed(self, service: LedgerService, batch_id: int, items: Sequence[KeyedItem]) -> None:
        """Tell the model of the items of keys, and send those that the ledger says are to be sent."""
        for one in items:
            prefix, _, _ = one.item.rpartition(":")
            self.model.issued(Group(batch_id, prefix.partition(":")[2], 1), f"key/{one.key}")
        groups = [Group(batch_id, one.item.split(":")[1], 1) for one in items if one.send]
        self.send_noted(service, groups)

    def send_noted(self, service: LedgerService, groups: Sequence[Group]) -> None:
        """Send what items have added, and note that."""
        for group in groups:
            self.send(group)
            block = parse_prefix(group.prefix)
            self.given_out |= {(block.batch_id, n) for n in range(block.first, block.stop)}
        for group in groups:
            block = parse_prefix(group.prefix)
            row = SentRow("queue", block.first, block.stop, 0, 0)
            service.ports.parts.put_sent(block.batch_id, row, expires_at=1)

    def mark(self, service: LedgerService, messages: Sequence[Message]) -> list[Message]:
        """Mark what messages name, in one request or as the function of the ack queue, and tell the model.

        Returns:
            What is left of them.
        """
        entries = [entry for message in messages for entry in message.entries]
        good = {place: entry for place, entry in enumerate(entries) if compact(entry) not in self.faults}
        values = self.values
        lost = self.scheduler.lost[self.scheduler.name]
        named = [MARKS.decode({"marks": [entry]})[0] for entry in good.values()]
        marks = dict(zip(good, named, strict=True))
        self.model.begin(named)
        with values.bringing(named, self.model.rows) if values else nullcontext(named) as brought:
            for place, mark in zip(good, brought, strict=True):
                entries[place] = MARKS.encode([mark])["marks"][0]
            try:
                call = self.over_the_queue if self.rng.random() < 0.5 else self.directly
                receipts, refused, left = call(service, entries, [len(one.entries) for one in messages])
            except (Crash, FaninError):
                self.model.lost(named)
                raise
        for place, error in refused.items():
            fault = self.faults.get(compact(entries[place]))
            require(fault, f"{entries[place]} was refused: {error!r}")
            require(isinstance(error, fault.error), f"{fault} was refused as {error!r}")
            self.reported[compact(entries[place])] += 1
        settled = [mark for place, mark in marks.items() if place not in left]
        unsettled = [mark for place, mark in marks.items() if place in left]
        require(len(settled) + len(left) + len(refused) == len(entries), f"{entries}: not each has a verdict")
        self.model.lost(unsettled)
        if self.scheduler.lost[self.scheduler.name] > lost or unsettled:
            self.model.lost(settled)  # the repeat may have met its own bits
        self.model.answered(receipts, settled)
        return [Message((entries[place],)) for place in left]

    @staticmethod
    def directly(service: LedgerService, entries: Sequence[Any], _: Sequence[int]) -> Verdicts:
        marked = service.mark(MARKS.decode({"marks": entries}))
        require(not marked.unknown, f"{marked} of exact batches")
        return marked.receipts, marked.refused, marked.left.keys()

    @staticmethod
    def over_the_queue(service: LedgerService, entries: Sequence[Any], sizes: Sequence[int]) -> Verdicts:
        """Hand messages to the function of the ack queue; what it parks, and what comes again, by place."""
        bounds = [0, *accumulate(sizes)]
        messages: list[Any] = [
            {"messageId": str(n), "body": compact({"marks": entries[start:stop]})}
            for n, (start, stop) in enumerate(pairwise(bounds))
        ]
        handled = acknowledge(messages, service)
        refused, left = dict[int, Exception](), dict[int, Exception]()
        for found, verdicts in (
            ([*handled.poison, *handled.refused], refused),
            ([*handled.again, *handled.rests], left),
        ):
            for message, error in found:
                if not isinstance(error, FaninError):
                    raise error
                n, said = int(message["messageId"]), json.loads(message["body"])["marks"]
                for entry in said:
                    places = (at for at in range(bounds[n], bounds[n + 1]) if entries[at] == entry)
                    verdicts[next(at for at in places if at not in refused and at not in left)] = error
        return handled.receipts, refused, left

    def closer(self, batch_id: int, *, early: bool) -> Actor:
        def run() -> None:
            if not early:
                self.scheduler.wait(lambda: not self.producing)
            self.service().close(batch_id, when=self.when(batch_id))

        return self.client("closer", run)

    def when(self, batch_id: int) -> CloseWhen:
        return CloseWhen.DRAINED if batch_id in self.grows else CloseWhen.NOW

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
                    listed |= ordinals_of(found.items)[1]
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
        """Fed by the stream of batches, at least once."""
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
                elif old and new.told_since(old) and not new.state.terminal:
                    service.tell(old, new)
                at += 1

        return run

    def announce(self, service: LedgerService, batch: Batch) -> None:
        """Tell of an ended batch; its parent's item is marked by nobody else, and only if it was used."""
        used = batch.items or batch.closed_at is not None or batch.state is State.CANCELLED
        parent = [batch.parent_item] if batch.parent_item and used else []
        self.model.begin(parent if batch.state is State.COMPLETE else [Failure(item) for item in parent])
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
