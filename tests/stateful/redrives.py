"""Redrives under a seed: who presses, workers and consumers, interleaved and crashing at every step.

Replay a seed with its trace:

    python -m tests.stateful.redrives SEED
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from contextlib import suppress
from random import Random

from fanin import names
from fanin.adapters.memory import FixedClock, Memory, SeededRandom
from fanin.app.ledger.service import LedgerService
from fanin.app.ports.parts import IN_ROW, FailureRow
from fanin.app.redrives.records import LEASE_MS
from fanin.app.redrives.redrive import RedriveService
from fanin.domain import ids
from fanin.domain.batch import Batch, OpenBatch, State
from fanin.domain.marks import Failure
from fanin.domain.redrives import OrdinalRange, Redrive, Redriving
from fanin.domain.tree import Tree
from fanin.errors import BatchGone, Throttled
from tests.lost_answers import LostAnswers
from tests.stateful.model import require
from tests.stateful.scheduler import Scheduler

QUEUE = "https://sqs/work"
SMALL = "https://sqs/small"
READS = ("read", "page", "failures", "messages", "redriven")


class Redriven:
    """One seed's failures, and those who redrive them with selections that overlap.

    Args:
        seed: decides everything.
        trace: gets a line for each access, when a seed is replayed.
    """

    def __init__(self, seed: int, trace: Callable[[str], None] | None = None) -> None:
        self.rng = rng = Random(seed)  # noqa: S311
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
        self.cancelling = rng.choice((0, 0, 1, 2))
        self.cancelled: set[int] = set()
        self.removed: set[int] = set()
        self.stops: dict[str, int] = {}
        self.selections = [self.select() for _ in range(rng.choice((1, 2, 3)))]
        self.pressing = len(self.selections)

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
        ledger.mark([Failure(item, "x") for item in group]).whole()
        notes = [
            FailureRow(
                n, item, "x", 1, 1, SMALL if n in self.small else QUEUE, IN_ROW * (n not in self.without)
            )
            for n, item in enumerate(group)
        ]
        self.ports.parts.put_failures(batch.batch_id, notes, expires_at=batch.expires_at)
        messages = {n: b'{"body": "%d"}' % n for n in range(self.count) if n not in self.without}
        self.ports.parts.put_messages(batch.batch_id, messages, expires_at=batch.expires_at)
        return ledger.close(batch.batch_id)

    def service(self) -> RedriveService:
        """A process that starts now."""
        return RedriveService(LedgerService(self.ports), page=self.page, at_once=1)

    def redrives(self) -> list[Redriving]:
        return list(self.service().redrives(self.batch.batch_id).redrives)

    def play(self) -> None:
        """Run everybody until nothing is left to do, and look at it."""
        actors: dict[str, Callable[[], None]] = {
            f"press-{n}": lambda request=request: self.press(request)  # type: ignore[misc]
            for n, request in enumerate(self.selections)
        }
        actors |= {"worker-1": self.work, "worker-2": self.work, "consumer": self.consume}
        actors["canceller"] = self.cancel
        self.scheduler.run(actors, between=lambda: self.clock.advance(self.rng.choice((1, 500, LEASE_MS))))
        self.press_rest()
        self.consume_rest()
        self.check()

    def press(self, request: Redrive) -> None:
        """Press until it is finished."""
        while True:
            try:
                if self.service().redrive(self.batch.batch_id, request).finished:
                    break
            except Throttled:
                pass
            self.scheduler.pause()
        self.pressing -= 1

    def press_rest(self) -> None:
        """Press for what was left when new batches were cancelled, until nothing is left."""
        for request in self.selections:
            for _ in range(50):
                self.clock.advance(LEASE_MS)
                found = self.service().redrive(self.batch.batch_id, request)
                if found.finished and not found.items:
                    break
            else:
                require(False, f"it finds failures again and again: {found}")

    def cancel(self) -> None:
        """Cancel new batches, and remove some of them, while their redrives go on."""
        while self.pressing and self.cancelling:
            self.scheduler.pause()
            running = [one for one in self.redrives() if not one.finished and one.batch_id is not None]
            if not running or self.rng.random() < 0.5:
                continue
            batch_id = self.rng.choice(running).batch_id or 0
            if batch_id not in self.cancelled:
                self.cancelling -= 1
                self.cancelled.add(batch_id)
            with suppress(BatchGone):
                self.end(batch_id)
            after = {one.name: one.items for one in self.redrives() if one.batch_id == batch_id}
            self.stops |= {name: items + 2 * self.page for name, items in after.items()}

    def end(self, batch_id: int) -> None:
        ledger = LedgerService(self.ports)
        ledger.cancel(batch_id)
        if self.rng.random() < 0.5:
            self.removed.add(batch_id)
            ledger.remove(batch_id)

    def work(self) -> None:
        """Do jobs, each perhaps twice, until nobody presses any more."""
        waiting = self.memory.redrives.waiting
        while self.pressing:
            self.scheduler.pause()
            if not waiting:
                continue
            job = waiting[0] if self.rng.random() < 0.2 else waiting.pop(0)
            until = self.clock.now() + self.rng.choice((0, 1_000))
            self.service().work(job["batch_id"], job["redrive"], job["owner"], until=until)

    def consume(self) -> None:
        """Acknowledge what was sent, some of it while the redrive goes on."""
        while self.pressing:
            self.scheduler.pause()
            items = self.sent()
            if items and self.rng.random() < 0.3:
                with suppress(BatchGone):
                    LedgerService(self.ports).mark([self.rng.choice(sorted(items))]).whole()

    def consume_rest(self) -> None:
        if items := sorted(item for item in self.sent() if batch_of(item) not in self.removed):
            LedgerService(self.ports).mark(items).whole()

    def sent(self) -> dict[str, str]:
        """Item id → body, of every message that was sent."""
        return {
            str(message.attributes[names.ITEM_ATTRIBUTE]): message.body
            for message in self.memory.channels.queues[QUEUE]
        }

    def check(self) -> None:
        """Look at what came out.

        Raises:
            Broken: an invariant does not hold.
        """
        bodies = [body for item, body in self.sent().items() if batch_of(item) not in self.removed]
        require(len(bodies) == len(set(bodies)), f"a failure was sent under two item ids: {bodies}")
        redrives = [one for one in self.redrives() if one.batch_id is not None]
        wanted = {n for n in range(self.count) if any(one.takes(n, "x") for one in self.selections)}
        wanted -= self.without
        require(sum(one.items for one in redrives) == len(wanted), f"the counts do not add up: {redrives}")
        for one in redrives:
            most = self.stops.get(one.name, one.items)
            require(one.items <= most, f"it went on after its batch was cancelled: {one}, not {most}")
        self.check_batches([one.batch_id or 0 for one in redrives], wanted)
        sent = {int(body) for body in self.sent().values()}
        require(sent == wanted - self.small, f"lost, or sent unasked: {sent ^ (wanted - self.small)}")

    def check_batches(self, redriven: list[int], wanted: set[int]) -> None:
        kept: list[bytes] = []
        rows = [row for row in self.memory.batches._rows.values() if row.retry_of is not None]
        require({*redriven} <= {row.batch_id for row in rows}, f"a redrive has no batch: {rows}")
        items = sum(row.items for row in rows)
        require(items == len(wanted) or self.removed, f"what was taken and what has an item differ: {rows}")
        for row in rows:
            require(row.retry_of == self.batch.batch_id, f"the chain is lost: {row}")
            if row.batch_id in self.cancelled:
                continue
            # A worker that comes late to a page whose batch was removed adds its items to another.
            late = self.removed and row.state is State.OPEN and row.batch_id not in redriven
            require(row.state is State.COMPLETE or late, f"the items are done, and the batch is not: {row}")
            notes, _ = self.ports.parts.failures(row.batch_id)
            require(all(note.kept == IN_ROW for note in notes), f"a message was not kept: {notes}")
            kept += self.ports.parts.messages(row.batch_id, [note.ordinal for note in notes]).values()
        require(len(set(kept)) == len(kept), f"a message was kept twice: {kept}")
        missing = len(wanted & self.small) - len(kept)
        require(missing == 0 or self.cancelled, f"refused, and not kept: {kept}")


def batch_of(item: str) -> int:
    """The batch of an item id."""
    return ids.parse_item(item)[0].batch_id


def simulate(seed: int, trace: Callable[[str], None] | None = None) -> Redriven:
    """Play a seed."""
    played = Redriven(seed, trace)
    played.play()
    return played


if __name__ == "__main__":
    simulate(int(sys.argv[1]), print)
