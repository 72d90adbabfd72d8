"""A batch that holds failed items, or tolerates some, under a seed: consumers, redrives and releases meet.

Every access may crash its process, lose its answer, or arrive late.
"""

from fractions import Fraction
from itertools import count
from random import Random

from fanin.adapters.memory import FixedClock, Memory, SeededRandom
from fanin.app.ledger.service import LedgerService
from fanin.app.ports.parts import Redriven
from fanin.domain.batch import Batch, Cause, OnFailure, OpenBatch, State
from fanin.domain.failures import Tolerance
from fanin.domain.ids import Group
from fanin.domain.marks import Failure
from fanin.domain.redrives import OrdinalRange, Selection
from fanin.domain.tree import Tree
from tests.stateful import raw_parts
from tests.stateful.actors import Actor, World
from tests.stateful.model import Model, require
from tests.stateful.scheduler import Scheduler
from tests.stateful.simulation import REAPER_MS


class HoldSimulation:
    """One seed's batch, from its opening to its end.

    Args:
        seed: decides everything.

    Attributes:
        ended_by_failures: whether it was cancelled because too much failed.
        released: how many items the releases say that they marked.
        told_as_waiting: whether only held items were left at the end, and that was told.
    """

    def __init__(self, seed: int) -> None:
        self.rng = rng = Random(f"hold/{seed}")
        self.model = Model()
        self.scheduler = Scheduler(
            rng, self.look, crashes=rng.choice((0, 0, 2, 6)), losing=rng.choice((0.0, 0.0, 0.02, 0.1))
        )
        self.clock = FixedClock()
        self.memory = Memory(
            tree=Tree(rng.choice((2, 3, 4, 64))),
            clock=self.clock,
            random=SeededRandom(seed),
            on_call=self.scheduler.on_call,
        )
        self.model.watch(self.memory)
        self.ports = self.memory.ports()
        self.world = World(rng, self.memory, self.model, self.scheduler, self.service, [])
        self.settler = self.world.settler()
        self.exceeded = self.ended_by_failures = False
        self.waited = False
        self.released = 0
        self.releasing = self.told_as_waiting = False
        self.batch_id = -1
        self.tolerance: Tolerance | None = None
        self.names = count()
        self.queue: list[tuple[int, bool]] = []
        # What the actors were told: the model of what is held.
        self.acked: set[int] = set()
        self.failing: dict[int, int] = {}
        self.taken: dict[int, int] = {}

        tolerance = rng.choice(
            (
                None,
                None,
                Tolerance(count=rng.randint(0, 6)),
                Tolerance(percent=rng.choice((20, 50)), min_sample=5),
            )
        )
        on_failure = rng.choice((OnFailure.HOLD, OnFailure.HOLD, OnFailure.DONE))
        row = self.service().open(OpenBatch(on_failure=on_failure, tolerated_failures=tolerance))
        self.batch_id, self.holds, self.tolerance = row.batch_id, on_failure is OnFailure.HOLD, tolerance
        self.group: Group = self.service().add(self.batch_id, rng.randint(1, 24))
        self.model.issued(self.group, None)
        for index in range(self.group.upto):
            self.queue += [(index, rng.random() < 0.35)] * rng.choice((1, 1, 1, 2))

    def service(self) -> LedgerService:
        return LedgerService(self.ports)

    # What is true, from the raw rows.

    def row(self) -> Batch:
        return self.model.rows[self.batch_id]

    def held(self) -> set[int]:
        """Held items: a note, a pending bit, and no redrive that has taken the latest failure."""
        if not self.holds:
            return set()
        notes = raw_parts.notes(self.memory, self.batch_id)
        pending = notes.keys() - self.model.marked(self.row())
        taken = raw_parts.redriven(self.memory, self.batch_id, pending)
        return {n for n in pending if n not in taken or notes[n].failed_at > taken[n].failed_at}

    def only_held(self) -> bool:
        """Whether items are pending, and all of them are held."""
        pending = set(range(self.row().items)) - self.model.marked(self.row())
        return bool(pending) and pending == self.held()

    def look(self) -> None:
        """At every access: is it beyond its tolerance, and if it was ended, had it been?"""
        self.model.look()
        if self.batch_id not in self.model.rows:
            return
        row, held = self.row(), self.held()
        self.waited = self.waited or (row.waited_for and self.only_held())
        if row.waiting_at:
            require(self.waited, f"{row} is told as waiting, and was not")
        if self.tolerance is None:
            return
        failed = len(self.model.failed(row)) + len(held)
        done = len(self.model.marked(row) | held)
        self.exceeded |= self.beyond(failed, done)
        if row.cause is Cause.FAILURES:
            require(self.exceeded, f"{row} was given up within its tolerance {self.tolerance}")
            self.ended_by_failures = True

    def beyond(self, failed: int, done: int) -> bool:
        """The rule of a tolerance in other words."""
        tolerance = self.tolerance
        assert tolerance is not None
        if tolerance.count is not None and failed >= tolerance.count + 1:
            return True
        if tolerance.percent is None or done < 5:
            return False
        return Fraction(failed, done) > Fraction(str(tolerance.percent)) / 100

    # Actors.

    def consumer(self) -> Actor:
        hand: list[tuple[int, bool]] = []

        def run() -> None:
            self.queue.extend(hand)
            hand.clear()
            service = self.service()
            while self.queue:
                self.rng.shuffle(self.queue)
                hand.append(self.queue.pop())
                index, failing = hand[0]
                if failing:
                    self.clock.advance(1)
                    at = self.clock.at
                    service.mark([Failure(self.group[index], f"no price in row {index % 3}")]).whole()
                    self.failing[index] = max(at, self.failing.get(index, 0))
                else:
                    service.mark([self.group[index]]).whole()
                    self.acked.add(index)
                hand.clear()

        return self.world.client("consumer", run)

    def redriver(self) -> Actor:
        """Takes held items, and sends them again; what it took and did not send, it sends when it lives."""
        name = f"redrive {next(self.names)}"
        wanted: dict[int, int] = {}
        sent: set[int] = set()

        def run() -> None:
            service = self.service()
            if not wanted:
                listed = {one.ordinal for one in service.failures(self.batch_id).failures if one.held}
                notes, _ = self.ports.parts.failures(self.batch_id)
                chosen = [note for note in notes if note.ordinal in listed and self.rng.random() < 0.7]
                wanted.update({note.ordinal: note.failed_at for note in chosen})
            marks = {ordinal: Redriven(name, at) for ordinal, at in wanted.items()}
            before = self.ports.parts.redriven(self.batch_id, wanted)
            before = {n: mark for n, mark in before.items() if mark.failed_at < wanted[n]}
            taken = self.ports.parts.mark_redriven(
                self.batch_id, marks, before, expires_at=self.row().expires_at
            )
            for ordinal in sorted(taken - sent):
                self.taken[ordinal] = max(wanted[ordinal], self.taken.get(ordinal, 0))
                self.queue.append((ordinal, self.rng.random() < 0.3))
                sent.add(ordinal)

        return self.world.client("redriver", run)

    def releaser(self) -> Actor:
        ranges = [OrdinalRange(0, self.rng.randint(1, 24))] if self.rng.random() < 0.5 else []
        errors = [f"no price in row {self.rng.randint(0, 2)}"] if self.rng.random() < 0.3 else []

        def run() -> None:
            self.releasing = True
            if self.holds:
                self.released += self.service().release(self.batch_id, Selection(errors, ranges)).released

        return self.world.client("releaser", run)

    # The course of things.

    def play(self) -> None:
        for last in (False, self.rng.random() < 0.5, True):
            actors: dict[str, Actor] = {f"consumer {i}": self.consumer() for i in range(3)}
            actors |= {f"redriver {i}": self.redriver() for i in range(self.rng.randint(0, 2))}
            if self.rng.random() < 0.3:
                actors["releaser"] = self.releaser()
            if last:
                actors["closer"] = self.world.closer(self.batch_id, early=True)
            if self.rng.random() < 0.3:
                actors["reaper"] = self.world.reaper(1)
            self.run(actors)
            self.quiet()
        self.finish()

    def run(self, actors: dict[str, Actor]) -> None:
        settler = {"settler": self.settler}
        self.scheduler.run(
            actors | settler, between=lambda: self.clock.advance(self.rng.choice((1, 50, 31_000)))
        )
        while self.memory.accesses.late:
            self.memory.accesses.arrive()
            self.scheduler.run(settler, between=lambda: None)

    def quiet(self) -> None:
        self.look()
        row, marked, held = self.row(), self.model.marked(self.row()), self.held()
        whole = row.state is State.COMPLETE
        require(not whole or len(marked) == row.items, f"{row} is complete, and items are pending")
        status = self.service().status(self.batch_id, exact=True)
        found = (status.batch.held, status.batch.may_hold_more, status.batch.failed)
        require(found == (len(held), False, len(self.model.failed(row))), f"{found}: {held} are held")
        released = self.releasing or not self.holds or not self.model.failed(row)
        require(released, f"{row}: failures are marked that nobody released")
        require(self.acked <= marked or row.state.terminal, f"{self.acked - marked} are done and pending")
        if not self.scheduler.lost and not row.state.terminal and self.holds:
            # No request came late, so what the actors were told is all there is.
            told = {
                ordinal
                for ordinal, at in self.failing.items()
                if ordinal not in marked and at > self.taken.get(ordinal, 0)
            }
            waiting = {index for index, _ in self.queue}
            require(held - waiting == told - waiting, f"{held} are held, and the actors were told {told}")
        if row.state is State.OPEN:
            require(status.done_min == len(marked), f"{status}: {len(marked)} are done")

    def finish(self) -> None:
        """What is still held is released, what is missing acknowledged: the batch has ended then."""
        service = self.service()
        if self.row().waited_for and self.only_held():
            for _ in range(3):
                self.clock.advance(REAPER_MS)
                service.reap()
            self.look()
            require(self.row().waiting_at, f"{self.row()} waits for held items alone, and nobody was told")
            self.told_as_waiting = True
        if self.holds:
            service.release(self.batch_id)
            require(not self.held() or self.row().state.terminal, f"{self.held()} are held after a release")
        if not self.row().state.terminal:
            service.mark(
                [self.group[n] for n in set(range(self.group.upto)) - self.model.marked(self.row())]
            ).whole()
            service.verify(self.batch_id)
            service.close(self.batch_id)
        self.look()
        row = self.row()
        require(row.state in {State.COMPLETE, State.CANCELLED}, f"{row} has not ended")
        require((row.state is State.CANCELLED) == (row.cause is Cause.FAILURES), f"{row} ended without cause")
