"""Failures under a seed, from the first to the last: kept, held, sent again, released, and sent again.

Consumers fail items with their messages, people press and release, the batch ends meanwhile, and what it
leaves is redriven until all is done. Every access may crash its process, lose its answer, or arrive late.

Replay a seed with its trace:

    python -m tests.stateful.failures_world SEED
"""

import sys
from collections.abc import Callable
from random import Random

from fanin import names
from fanin.adapters.memory import FixedClock, Memory, SeededRandom
from fanin.app.failures import forget
from fanin.app.ledger.service import LedgerService
from fanin.app.ports.parts import IN_ROW, FailureRow
from fanin.app.ports.queues import Outgoing
from fanin.app.ports.words import WordKey
from fanin.app.redrives.records import LEASE_MS
from fanin.app.redrives.redrive import RedriveService
from fanin.domain.batch import Batch, OnFailure, OpenBatch, State
from fanin.domain.failures import KeptMessage
from fanin.domain.marks import Failure
from fanin.domain.redrives import OrdinalRange, Redrive
from fanin.domain.tree import Tree
from fanin.errors import Throttled
from fanin.wire.messages import unpack
from tests.stateful import raw_parts
from tests.stateful.actors import Actor
from tests.stateful.model import Broken, Model, ordinal_of, require
from tests.stateful.redrives import watch
from tests.stateful.scheduler import Scheduler

QUEUE = "https://sqs/work"
SMALL = "https://sqs/small"
LARGE = "x" * 9_000
"""Makes a message too large for a row, so that it goes to the bucket."""


class FailuresSimulation:
    """One seed's batch, and the batches in which its failures are tried again.

    Args:
        seed: decides everything.
        trace: gets a line for each access, when a seed is replayed.

    Attributes:
        crossed: whether items were redriven both before and after the end of the batch.
        again: how many failures came from a batch that was itself a redrive.
    """

    def __init__(self, seed: int, trace: Callable[[str], None] | None = None) -> None:
        self.rng = rng = Random(f"failures/{seed}")
        self.model = Model()
        self.scheduler = Scheduler(
            rng,
            self.look,
            crashes=rng.choice((0, 0, 2, 6)),
            losing=rng.choice((0.0, 0.0, 0.02, 0.1)),
            trace=trace,
        )
        self.clock = FixedClock()
        self.memory = Memory(
            tree=Tree(rng.choice((2, 3, 64))),
            clock=self.clock,
            random=SeededRandom(seed),
            on_call=self.scheduler.on_call,
        )
        self.model.watch(self.memory)
        self.marks = watch(self.memory)
        self.ports = self.memory.ports()
        self.memory.channels.queues |= {QUEUE: [], SMALL: []}
        self.memory.channels.refusing[SMALL] = "too large"
        self.seen, self.busy = 0, 0
        self.todo: list[Outgoing] = []
        self.eager = rng.choice((0.2, 0.5, 0.8))
        self.page = rng.choice((1, 2, 3, 50))
        self.crossed, self.again = False, 0
        self.ended: set[int] = set()

        self.holds = rng.random() < 0.8
        on_failure = OnFailure.HOLD if self.holds else OnFailure.DONE
        self.batch_id = self.ledger().open(OpenBatch(on_failure=on_failure)).batch_id
        group = self.ledger().add(self.batch_id, rng.randint(1, 8))
        self.items = list(group)
        self.small = {str(n) for n in range(len(self.items)) if rng.random() < 0.15}
        for n, item in enumerate(self.items):
            body = f"{n}{LARGE if rng.random() < 0.2 else ''}"
            self.todo.append(Outgoing(QUEUE, body, {names.ITEM_ATTRIBUTE: item}))

    # Processes that start now.

    def ledger(self) -> LedgerService:
        return LedgerService(self.ports)

    def redrives(self) -> RedriveService:
        return RedriveService(self.ledger(), page=self.page, at_once=1)

    # Actors.

    def consumer(self, failing: float) -> Actor:
        """Acknowledges and fails what is in the queue; what it holds in a crash is delivered again."""
        hand: list[Outgoing] = []

        def run() -> None:
            self.todo.extend(hand)
            hand.clear()
            service = self.ledger()
            while self.delivered() or self.busy:
                if not self.todo:
                    self.scheduler.pause()
                    continue
                self.rng.shuffle(self.todo)
                hand.append(self.todo.pop())
                self.handle(service, hand[0], fails=self.rng.random() < failing)
                hand.clear()

        return run

    def delivered(self) -> int:
        """Take over what was sent since; how many messages wait."""
        sent = self.memory.channels.queues[QUEUE]
        self.todo += sent[self.seen :]
        self.seen = len(sent)
        return len(self.todo)

    def handle(self, service: LedgerService, message: Outgoing, *, fails: bool) -> None:
        item = str(message.attributes[names.ITEM_ATTRIBUTE])
        if not fails:
            service.mark([item]).whole()
            return
        source = SMALL if body_of(message.body) in self.small else QUEUE
        failure = Failure(item, f"row {self.rng.randint(0, 2)}", KeptMessage(message.body), source=source)
        service.mark([failure]).whole()

    def presser(self, batch_id: int) -> Actor:
        """Presses until its redrive is finished."""
        start = self.rng.randrange(len(self.items))
        request = self.rng.choice(
            (
                Redrive(),
                Redrive(ranges=[OrdinalRange(0, start + 1)]),
                Redrive(errors=["row"]),
                Redrive(queue_url=QUEUE),
            )
        )

        def run() -> None:
            while True:
                self.scheduler.pause()
                try:
                    if self.redrives().redrive(batch_id, request).finished:
                        return
                except Throttled:
                    continue

        return self.ends(run)

    def worker(self) -> Actor:
        """Does jobs, some of them twice."""

        def run() -> None:
            waiting = self.memory.redrives.waiting
            while self.busy:
                self.scheduler.pause()
                if waiting:
                    job = waiting[0] if self.rng.random() < 0.2 else waiting.pop(0)
                    self.redrives().work(job["batch_id"], job["redrive"], job["owner"], until=self.clock.at)

        return run

    def releaser(self) -> Actor:
        upto = self.rng.randint(1, len(self.items))

        def run() -> None:
            self.scheduler.pause()
            self.ledger().release(self.batch_id, Redrive(ranges=[OrdinalRange(0, upto)]))

        return self.ends(run)

    def ender(self) -> Actor:
        """Ends the batch, or closes it."""
        end = self.rng.choice(("cancel", "close"))

        def run() -> None:
            for _ in range(self.rng.randint(0, 12)):
                self.scheduler.pause()
            service = self.ledger()
            (service.cancel if end == "cancel" else service.close)(self.batch_id)

        return self.ends(run)

    def orphaner(self) -> Actor:
        """Ends batches that redrive others, at any moment."""
        left = self.rng.choice((0, 0, 1, 3))

        def run() -> None:
            nonlocal left
            while self.busy and left:
                self.scheduler.pause()
                live = [row for row in self.model.rows.values() if row.retry_of and not row.state.terminal]
                if not live or self.rng.random() < 0.9:
                    continue
                left -= 1
                row = self.rng.choice(live)
                state, now = State.CANCELLED, self.clock.now()
                if row.state is State.OPEN and self.rng.random() < 0.5:
                    self.clock.advance(row.open_idle_ttl * 1_000 + 100_000)
                    state, now = State.ORPHANED, self.clock.now()
                self.ended.add(row.batch_id)
                self.ports.batches.end(row.batch_id, state, now=now, sources=(row.state,), quiet=row)

        return run

    def ends(self, run: Actor) -> Actor:
        """An actor for whose end the consumers and workers wait."""
        self.busy += 1

        def wrapped() -> None:
            run()
            self.busy -= 1

        return wrapped

    # The course of things.

    def play(self) -> None:
        if self.rng.random() < 0.8:
            self.run({"consumer": self.consumer(0.7)})
        actors = {f"consumer {n}": self.consumer(1 - self.eager) for n in range(2)}
        if self.holds:
            actors |= {f"press {n}": self.presser(self.batch_id) for n in range(self.rng.randint(1, 3))}
            if self.rng.random() < 0.4:
                actors["releaser"] = self.releaser()
        if self.rng.random() < 0.5:
            actors["ender"] = self.ender()
        self.run(actors | {"worker 1": self.worker(), "worker 2": self.worker()})
        before = len(self.memory.channels.queues[QUEUE])
        self.quiet()
        if not self.row(self.batch_id).state.terminal:
            self.ledger().cancel(self.batch_id)
        actors = {f"press {n}": self.presser(self.batch_id) for n in range(self.rng.randint(1, 3))}
        actors |= {"consumer": self.consumer(0.4), "worker 1": self.worker(), "worker 2": self.worker()}
        actors["orphaner"] = self.orphaner()
        self.run(actors)
        self.crossed = 0 < before < len(self.memory.channels.queues[QUEUE])
        self.finish()

    def run(self, actors: dict[str, Actor]) -> None:
        self.scheduler.run(actors, between=lambda: self.clock.advance(self.rng.choice((1, 500, LEASE_MS))))
        while self.memory.accesses.late:
            self.memory.accesses.arrive()
        self.look()

    def quiet(self) -> None:
        """Nobody works, and no message is on its way: what failed and is pending is held, and not taken."""
        row = self.row(self.batch_id)
        if row.state.terminal or self.delivered():
            return
        held = {one.ordinal for one in self.ledger().failures(self.batch_id).failures if one.held}
        require(held == self.held(row), f"{held} are held, and {self.held(row)} are pending and have failed")

    def finish(self) -> None:
        """Redrive whatever has failed, until nothing is left to redrive; then all must be done."""
        for _ in range(20):
            self.clock.advance(LEASE_MS)
            sent = 0
            for batch_id, row in list(self.model.rows.items()):
                if self.ended and not row.state.terminal:  # of a worker that came late to a page
                    self.ended.add(batch_id)
                    self.ledger().cancel(batch_id)
                found = self.redrives().redrive(batch_id, Redrive(queue_url=QUEUE))
                while not found.finished:
                    self.clock.advance(LEASE_MS)
                    found = self.redrives().redrive(batch_id, Redrive(queue_url=QUEUE))
                sent += found.items
                self.again += found.items * (batch_id != self.batch_id)
            self.consumer(0.0)()
            if not sent:
                break
        self.check()

    # What is true, from the raw rows.

    def row(self, batch_id: int) -> Batch:
        return self.model.rows[batch_id]

    def look(self) -> None:
        """At every access: whatever reads as failed or held has its note and its message."""
        self.model.look()
        for batch_id, row in self.model.rows.items():
            if row.gone(self.clock.at):
                continue
            notes = raw_parts.notes(self.memory, batch_id)
            for ordinal in self.failed(row) | self.held(row):
                note = notes.get(ordinal)
                if note is None or not self.message(batch_id, note):
                    raise Broken(f"{ordinal} of {row}: {note}")

    def message(self, batch_id: int, note: FailureRow) -> KeptMessage | None:
        if note.kept == IN_ROW:
            content = raw_parts.message(self.memory, batch_id, note.ordinal)
        else:
            content = self.memory.claims.objects.get(note.kept)
        return None if content is None else unpack(content)

    def failed(self, row: Batch) -> set[int]:
        width, failed = self.memory.tree.width, self.memory.words._failed
        return {
            ordinal
            for ordinal in range(row.items)
            if failed.get(WordKey(row.batch_id, 0, ordinal // width), 0) >> ordinal % width & 1
        }

    def held(self, row: Batch) -> set[int]:
        if row.on_failure is not OnFailure.HOLD or row.state.terminal:
            return set()
        notes = raw_parts.notes(self.memory, row.batch_id)
        return set(notes) - self.model.marked(row)

    def check(self) -> None:
        """Look at what came out.

        Raises:
            Broken: an invariant does not hold.
        """
        ids: dict[str, set[str]] = {str(n): {item} for n, item in enumerate(self.items)}
        for message in self.memory.channels.queues[QUEUE]:
            ids[body_of(message.body)].add(str(message.attributes[names.ITEM_ATTRIBUTE]))
        sent = {item for found in ids.values() for item in found}
        for batch_id, row in self.model.rows.items():
            if batch_id == self.batch_id:
                continue
            # Whatever a redrive took was sent, or has failed in the new batch with its message.
            if batch_id in self.ended:
                continue
            require(row.state is State.COMPLETE, f"the items are done, and the batch is not: {row}")
            require(len(self.model.marked(row)) == row.items, f"{row} is complete, and items are pending")
            notes = raw_parts.notes(self.memory, batch_id)
            for ordinal, note in notes.items():
                if ordinal in self.failed(row) and (message := self.message(batch_id, note)):
                    ids[body_of(message.body)].add(note.item)
            known = {ordinal_of(item)[1] for item in sent if ordinal_of(item)[0] == batch_id}
            marks = [ordinal_of(mark.item) for mark in raw_parts.all_redriven(self.memory)]
            lost = {ordinal for at, ordinal in marks if at == batch_id} - known - self.failed(row)
            require(not lost, f"items {lost} of {row} were neither sent nor failed")
        for body, found in ids.items():
            self.check_one(body, found)
        gone = self.row(self.batch_id)
        self.ledger().remove(self.batch_id)
        require(forget(self.ports, gone) is None, "a page of messages was left")
        notes = raw_parts.notes(self.memory, self.batch_id).values()
        left = [note for note in notes if self.message(self.batch_id, note)]
        require(not left, f"messages are kept of a batch that is gone: {left}")

    def check_one(self, body: str, items: set[str]) -> None:
        """A failure is sent only under items for which it was taken; and at last it is done."""
        done = False
        for item in items:
            batch_id, ordinal = ordinal_of(item)
            row = self.row(batch_id)
            if batch_id == self.batch_id:
                require(item == self.items[int(body)], f"{body} was sent as {item}")
            else:
                require(item in self.marks, f"{body} was sent as {item}, and not taken")
            done |= ordinal in self.model.marked(row) - self.failed(row)
        failed = raw_parts.notes(self.memory, self.batch_id).keys()
        if not self.holds:
            failed &= self.failed(self.row(self.batch_id))
        require(done or int(body) not in failed, f"the failure of {body} is lost: {items}")


def body_of(text: str) -> str:
    """The number in the body of a message."""
    return text.rstrip("x")


def simulate(seed: int, trace: Callable[[str], None] | None = None) -> FailuresSimulation:
    """Play a seed."""
    simulation = FailuresSimulation(seed, trace)
    try:
        simulation.play()
    except AssertionError as error:
        error.add_note(f"seed {seed}")
        raise
    return simulation


if __name__ == "__main__":
    simulate(int(sys.argv[1]), print)
