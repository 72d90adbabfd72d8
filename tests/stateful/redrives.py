"""Redrives under a seed: who presses, workers and consumers, interleaved and crashing at every step.

Replay a seed with its trace:

    python -m tests.stateful.redrives SEED
"""

import sys
from collections.abc import Callable, Mapping
from contextlib import suppress
from random import Random

from fanin import names
from fanin.adapters.memory import FixedClock, Memory, SeededRandom
from fanin.app.ledger.service import LedgerService
from fanin.app.ports.parts import IN_ROW, REDRIVE, FailureRow, Redriven
from fanin.app.ports.words import WordKey
from fanin.app.redrives.records import LEASE_MS
from fanin.app.redrives.redrive import RedriveService
from fanin.domain import ids
from fanin.domain.batch import LIVE, Batch, OpenBatch, State
from fanin.domain.marks import Failure
from fanin.domain.redrives import OrdinalRange, Redrive, Redriving
from fanin.domain.tree import Tree
from fanin.errors import BatchGone, BatchNotFound, InvalidRequest, Throttled
from tests.lost_answers import LostAnswers
from tests.stateful.model import require
from tests.stateful.scheduler import Scheduler

QUEUE = "https://sqs/work"
SMALL = "https://sqs/small"
READS = ("read", "page", "failures", "messages", "redriven")


class RedrivesSimulation:
    """One seed's failures, and those who redrive them with selections that overlap.

    Args:
        seed: decides everything.
        trace: gets a line for each access, when a seed is replayed.
    """

    def __init__(self, seed: int, trace: Callable[[str], None] | None = None) -> None:
        self.rng = rng = Random(seed)
        self.clock = FixedClock()
        self.scheduler = Scheduler(rng, lambda: None, crashes=rng.choice((0, 1, 3, 8)), trace=trace)
        self.memory = Memory(
            tree=Tree(rng.choice((2, 3, 64))),
            clock=self.clock,
            random=SeededRandom(seed),
            on_call=self.scheduler.on_call,
        )
        self.losing = rng.choice((0.0, 0.02, 0.1))
        self.repeating: set[str] = set()
        self.answers = LostAnswers(self.memory, self.loses)
        self.ports = self.memory.ports()
        self.memory.channels.queues |= {QUEUE: [], SMALL: []}
        self.memory.channels.refusing[SMALL] = "too large"
        self.count = rng.choice((1, 4, 7, 12))
        self.page = rng.choice((1, 2, 3, 50))
        self.without = {n for n in range(self.count) if rng.random() < 0.1}
        self.small = {n for n in range(self.count) if rng.random() < 0.15}
        self.batch = self.fail()
        self.marks = watch(self.memory, self.taken_again)
        self.calm = False
        self.ending = rng.choice((0, 0, 1, 2, 4))
        self.ended: set[int] = set()
        self.removed: set[int] = set()
        self.selections = [self.select() for _ in range(rng.choice((1, 2, 3)))]
        self.pressing = len(self.selections)
        self.presses, self.patience, self.left = 0, rng.choice((1, 2, 4, 1_000, 1_000, 1_000)), False

    def loses(self, call: str) -> Callable[[], None] | None:
        """Whether the answer of a write is lost, the first time; others go on until the SDK repeats it."""
        me = self.scheduler.name
        if self.scheduler.acts and me in self.repeating:
            self.repeating.discard(me)
            return None
        reads = any(call.partition(".")[2].startswith(read) for read in READS)
        if not self.scheduler.acts or reads or self.rng.random() >= self.losing:
            return None
        self.repeating.add(me)
        return self.scheduler.pause

    def select(self) -> Redrive:
        start = self.rng.randrange(self.count)
        ranges = (OrdinalRange(start, self.count), OrdinalRange(0, start + 1))
        return Redrive(ranges=self.rng.choice(((), ranges[:1], ranges[1:])))

    def fail(self) -> Batch:
        """An ended batch, every item of which has failed."""
        ledger = LedgerService(self.ports)
        batch = ledger.open(OpenBatch(user_key="mine"))
        group = ledger.add(batch.batch_id, self.count)
        notes = [
            FailureRow(
                n, item, "x", 1, 1, SMALL if n in self.small else QUEUE, IN_ROW * (n not in self.without)
            )
            for n, item in enumerate(group)
        ]
        self.ports.parts.put_failures(batch.batch_id, notes, expires_at=batch.expires_at)
        messages = {n: b'{"body": "%d"}' % n for n in range(self.count) if n not in self.without}
        self.ports.parts.put_messages(batch.batch_id, messages, expires_at=batch.expires_at)
        ledger.mark([Failure(item, "x") for item in group]).whole()
        return ledger.close(batch.batch_id)

    def service(self) -> RedriveService:
        """A process that starts now."""
        return RedriveService(LedgerService(self.ports), page=self.page, at_once=1)

    def redrives(self) -> list[Redriving]:
        if self.batch.batch_id in self.removed:
            return []
        return list(self.service().redrives(self.batch.batch_id).redrives)

    def play(self) -> None:
        """Run everybody until nothing is left to do, and look at it."""
        actors: dict[str, Callable[[], None]] = {
            f"press-{n}": lambda request=request: self.press(request)
            for n, request in enumerate(self.selections)
        }
        actors |= {"worker-1": self.work, "worker-2": self.work, "consumer": self.consume}
        actors["ender"] = self.end
        self.scheduler.run(actors, between=lambda: self.clock.advance(self.rng.choice((1, 500, LEASE_MS))))
        self.quiet()
        self.finish()

    def press(self, request: Redrive) -> None:
        """Press until it is finished, unless whoever presses leaves before."""
        with suppress(BatchGone, BatchNotFound):
            while True:
                self.presses += 1
                if self.presses > self.patience:
                    self.left = True
                    break
                try:
                    if self.service().redrive(self.batch.batch_id, request).finished:
                        break
                except Throttled:
                    pass
                self.scheduler.pause()
        self.pressing -= 1

    def end(self) -> None:
        """End batches at any moment, in any way, and remove some of them."""
        while self.pressing and self.ending:
            self.scheduler.pause()
            rows = [row for row in self.memory.batches._rows.values() if row.retry_of == self.batch.batch_id]
            if not rows or self.rng.random() < 0.9:
                continue
            batch_id = self.rng.choice(rows).batch_id
            if self.rng.random() < 0.05:
                batch_id = self.batch.batch_id
            self.ending -= 1
            self.ended.add(batch_id)
            with suppress(BatchGone, BatchNotFound):
                self.end_one(batch_id, self.rng.choice((State.CANCELLED, State.ORPHANED, State.TIMED_OUT)))

    def end_one(self, batch_id: int, state: State) -> None:
        now = self.clock.now()
        self.ports.batches.end(batch_id, state, now=now, sources=LIVE)
        if batch_id == self.batch.batch_id or self.rng.random() < 0.3:
            self.removed.add(batch_id)
            LedgerService(self.ports).remove(batch_id)
            if self.rng.random() < 0.5 and not self.repeating:
                del self.memory.batches._rows[batch_id]  # as DynamoDB does in its own time, which is longer

    def taken_again(self, mark: Redriven) -> None:
        """A mark is about to be replaced."""
        require(not (self.calm and self.done(mark.item)), f"{mark} is done, and taken again")

    def work(self) -> None:
        """Do jobs, each perhaps twice, until nobody presses any more."""
        waiting = self.memory.redrives.waiting
        while self.scheduler.wait(lambda: waiting or not self.pressing) and self.pressing:
            self.scheduler.pause()
            if not waiting:
                continue
            job = waiting[0] if self.rng.random() < 0.2 else waiting.pop(0)
            until = self.clock.now() + self.rng.choice((0, 1_000))
            self.service().work(job["batch_id"], job["redrive"], job["owner"], until=until)

    def consume(self) -> None:
        """Acknowledge what was sent, some of it while the redrive goes on."""
        while self.scheduler.wait(lambda: self.undone() or not self.pressing) and self.pressing:
            self.scheduler.pause()
            if (items := self.undone()) and self.rng.random() < 0.3:
                with suppress(BatchGone, BatchNotFound):
                    LedgerService(self.ports).mark([self.rng.choice(items)]).whole()

    def sent(self) -> dict[str, str]:
        """Item id → body, of every message that was sent."""
        return {
            str(message.attributes[names.ITEM_ATTRIBUTE]): message.body
            for message in self.memory.channels.queues[QUEUE]
        }

    def undone(self) -> list[str]:
        return sorted(item for item in self.sent() if not self.done(item))

    def done(self, item: str) -> bool:
        """Whether the bit of an item is clear, even if its batch was removed."""
        key, bit = self.bit(item)
        return not self.memory.words._words.get(key, self.memory.tree.full) >> bit & 1

    def failed(self, item: str) -> bool:
        key, bit = self.bit(item)
        return bool(self.memory.words._failed.get(key, 0) >> bit & 1)

    def bit(self, item: str) -> tuple[WordKey, int]:
        block, ordinal = ids.parse_item(item)
        number, bit = divmod(ordinal, self.memory.tree.width)
        return WordKey(block.batch_id, 0, number), bit

    def lives(self, batch_id: int) -> bool:
        row = self.memory.batches._rows.get(batch_id)
        return row is not None and not row.state.terminal and not row.gone(self.clock.now())

    def quiet(self) -> None:
        """Nobody works: each kept failure is takeable, or under way in a live batch, or done; and only one.

        Raises:
            Broken: an invariant does not hold.
        """
        self.calm = True
        self.clock.advance(LEASE_MS)
        if self.batch.batch_id in self.removed:
            return
        sent = self.sent()
        require(sent.keys() <= self.marks, f"sent, and not taken: {sent.keys() - self.marks}")
        marks = self.ports.parts.redriven(self.batch.batch_id, range(self.count))
        free = {n for n in range(self.count) if n not in marks} - self.without
        records = self.ports.records.page(str(self.batch.batch_id), prefix=REDRIVE).records
        dead = {
            (record.name, n)
            for record in records
            if not record.value["done"]
            for n, _ in record.value["page"]["plan"]
        }
        for n, mark in marks.items():
            if self.done(mark.item):
                continue
            batch_id = batch_of(mark.item)
            if not self.lives(batch_id) or (mark.redrive, n) in dead:
                free.add(n)
            else:
                require(mark.item in sent, f"{n} is under way, and was not sent: {mark}")
                require(sent[mark.item] == str(n), f"{n} was sent as {sent[mark.item]}")
        found = self.service().redrive(self.batch.batch_id, Redrive(queue_url=QUEUE, dry_run=True))
        require(found.items == len(free), f"{free} are takeable, and {found.items} are found to be")

    def finish(self) -> None:
        """Redrive and do whatever is left; at last each failure that kept its message is done, once."""
        if self.batch.batch_id in self.removed:
            return
        idle = 0
        while idle < 2:
            items = 0
            LedgerService(self.ports).heal(self.memory.words.finished)  # as the stream does after a crash
            for batch_id in [row.batch_id for row in self.memory.batches._rows.values()]:
                with suppress(BatchGone, BatchNotFound, InvalidRequest):
                    self.clock.advance(LEASE_MS)
                    found = self.service().redrive(batch_id, Redrive(queue_url=QUEUE))
                    items += found.items
                    while not found.finished:
                        self.clock.advance(LEASE_MS)
                        found = self.service().redrive(batch_id, Redrive(queue_url=QUEUE))
                        items += found.items
            for item in sorted(self.sent()):
                if self.lives(batch_of(item)):
                    LedgerService(self.ports).mark([item]).whole()
            for row in list(self.memory.batches._rows.values()):
                if (self.ended or self.left) and self.lives(
                    row.batch_id
                ):  # of a worker that came late to a page
                    LedgerService(self.ports).cancel(row.batch_id)
            idle = 0 if items else idle + 1
        self.check()

    def check(self) -> None:
        """Look at what came out.

        Raises:
            Broken: an invariant does not hold.
        """
        for n in set(range(self.count)) - self.without:
            batch_id, ordinal, item = self.batch.batch_id, n, ""
            while not item or self.failed(item):
                marks = self.ports.parts.redriven(batch_id, [ordinal])
                require(ordinal in marks or batch_id in self.removed, f"{n} is lost: {item}")
                if ordinal not in marks:
                    break
                item = marks[ordinal].item
                require(self.done(item), f"{n} is not done: {marks[ordinal]}")
                block, ordinal = ids.parse_item(item)
                batch_id = block.batch_id
            else:
                require(self.sent().get(item) == str(n), f"{n} is done as {item}, which was not sent")
        for row in self.memory.batches._rows.values():
            require(row.state.terminal, f"the items are done, and the batch is not: {row}")


def watch(memory: Memory, replaced: Callable[[Redriven], None] = lambda _mark: None) -> set[str]:
    """The items under which redrives have tried to take failures; it grows.

    Args:
        memory: the stores.
        replaced: gets each mark that is about to be replaced by that of another item.
    """
    named: set[str] = set()
    take = memory.parts.mark_redriven

    def watched(
        batch_id: int, marks: Mapping[int, Redriven], before: Mapping[int, Redriven], *, expires_at: int
    ) -> set[int]:
        for ordinal in marks.keys() & before.keys():
            if marks[ordinal].item != before[ordinal].item:
                replaced(before[ordinal])
        named.update(mark.item for mark in marks.values())
        return take(batch_id, marks, before, expires_at=expires_at)

    memory.parts.mark_redriven = watched
    return named


def batch_of(item: str) -> int:
    """The batch of an item id."""
    return ids.parse_item(item)[0].batch_id


def simulate(seed: int, trace: Callable[[str], None] | None = None) -> RedrivesSimulation:
    """Play a seed."""
    played = RedrivesSimulation(seed, trace)
    played.play()
    return played


if __name__ == "__main__":
    simulate(int(sys.argv[1]), print)
