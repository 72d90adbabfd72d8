"""A ledger under a seed: producers, consumers and all the functions, interleaved and crashing at every step.

Replay a seed with its trace:

    python -m tests.stateful.simulation WIDTH SEED
"""

import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from random import Random

from fanin.adapters.memory import FixedClock, Memory, OnCall, SeededRandom
from fanin.app.ledger.reading import STATUS_READS
from fanin.app.ledger.service import LedgerService
from fanin.app.ports import Defaults, Ports
from fanin.app.ports.words import Clear, Cleared, WordStore
from fanin.domain.batch import Batch, OnDeadline, OpenBatch, State
from fanin.domain.limits import MAX_ROWS
from fanin.domain.reports import Missing
from fanin.domain.tree import Tree
from fanin.errors import FaninError
from tests.stateful import raw_parts
from tests.stateful.actors import Actor, Message, World
from tests.stateful.model import Model, ordinal_of, ordinals_of, require
from tests.stateful.scheduler import Scheduler
from tests.stateful.values import NAMES, ValuesModel

Trace = Callable[[str], None]
Double = Callable[[Memory, OnCall], Ports]
TOTALS = 0.5
"""How many worlds have batches with totals."""
RESULTS = 0.3
"""How many worlds have batches with results."""
DRAINING = 0.5
"""How many of the batches without a limit drain when they are closed."""
REAPER_MS = 300_000
"""Milliseconds between two runs of the reaper."""
MOST_RUNS = 50
"""Runs of the reaper within which it ends every batch, although many of its own calls fail."""


class ShuffledWords:
    """A ``WordStore`` whose parallel writes take effect in any order, and in part if the process dies.

    Args:
        words: the store.
        rng: decides the order.
        offer: told of each write before it is sent.
    """

    def __init__(self, words: WordStore, rng: Random, offer: Callable[[Clear], None]) -> None:
        self._words = words
        self._rng = rng
        self._offer = offer
        self.read, self.read_tallied = words.read, words.read_tallied
        self.read_failed = words.read_failed

    def clear(self, clears: Sequence[Clear]) -> list[Cleared]:
        for clear in clears:
            self._offer(clear)
        order = self._rng.sample(range(len(clears)), len(clears))
        answers = dict(zip(order, self._words.clear([clears[i] for i in order]), strict=True))
        return [answers[i] for i in range(len(clears))]


class Simulation:
    """One seed's world, from opening its batches to the events of their ends.

    Args:
        width: bits in a word.
        seed: decides everything else.
        trace: gets a line for each access, when a seed is replayed.
        settled: whether the stream of finished words comes; without it, the dead are left to the reaper and
            the timer.
        double: makes the ports on a memory, to keep a second store beside it; gets the hook for each access.
    """

    def __init__(
        self,
        width: int,
        seed: int,
        trace: Trace | None = None,
        *,
        settled: bool = True,
        double: Double | None = None,
    ) -> None:
        self.rng = rng = Random(f"{width}/{seed}")
        self.model = Model()
        crashes = rng.choice((0, 0, 1, 3, 8))
        losing = rng.choice((0.0, 0.0, 0.01, 0.05, 0.2))
        dying = rng.choice((0.0, 0.0, 0.5, 1.0))
        throttles = rng.choice((0, 0, 5, 40))
        self.scheduler = Scheduler(
            rng,
            self.model.look,
            crashes=crashes,
            losing=losing,
            dying=dying,
            throttles=throttles,
            trace=trace,
        )
        self.clock = FixedClock()
        self.memory = Memory(
            tree=Tree(width),
            clock=self.clock,
            random=SeededRandom(seed),
            on_call=None if double else self.scheduler.on_call,
            ties=seed,
        )
        self.model.watch(self.memory)
        self.drawn = drawn = Random(f"totals/{width}/{seed}")
        self.growing = Random(f"growing/{width}/{seed}")
        self.passing = Random(f"milestones/{width}/{seed}")
        self.totals = NAMES if drawn.random() < TOTALS else ()
        self.results = drawn.random() < RESULTS
        self.values = ValuesModel(drawn, lambda: self.scheduler.name)
        self.values.watch(self.memory)
        ports = double(self.memory, self.scheduler.on_call) if double else self.memory.ports()
        self.ports = replace(
            ports,
            defaults=Defaults(open_idle_ttl=120, closed_idle_ttl=600, lifetime=86_400),
            words=ShuffledWords(ports.words, rng, self.values.offer),
        )
        self.settled = settled
        self.wild = rng.random() < 0.5
        self.threads = rng.choice((0.0, 0.0, 0.5, 1.0))
        self.passed_by = 0
        self.shared = self.threaded()
        self.world = World(rng, self.memory, self.model, self.scheduler, self.service, [], values=self.values)
        self.world.gone = self.remove()
        self.batches = self.open()
        self.timer, self.settler, self.notifier = (
            self.world.timer(),
            self.world.settler(),
            self.world.notifier(),
        )

    def service(self) -> LedgerService:
        """A process that starts now, or another thread of one that runs already."""
        if self.rng.random() < self.threads:
            return self.shared
        return self.values.watch_parents(LedgerService(self.ports))

    def threaded(self) -> LedgerService:
        """A process with threads: they may overtake each other on the way to its cache, too."""
        service = self.values.watch_parents(LedgerService(self.ports))
        known = service._known
        remember = known.remember

        def overtaken(batch: Batch) -> Batch:
            self.scheduler.on_call("known.remember", "begin")
            row = remember(batch)
            self.scheduler.on_call("known.remember", "end")
            return row

        known.remember = overtaken
        return service

    def open(self) -> list[int]:
        """Open the batches; the second may be nested in the first."""
        rng, service, parent = self.rng, self.service(), None
        opened: list[int] = []
        for _ in range(rng.choice((1, 1, 2))):
            deadline = self.clock.at + rng.randint(1, 100_000) if self.wild and rng.random() < 0.4 else None
            row = service.open(
                OpenBatch(
                    user_key="simulated",
                    deadline=deadline,
                    on_deadline=rng.choice(tuple(OnDeadline)),
                    limit=rng.choice((None, None, None, 5, 30)),
                    parent_item=parent,
                    totals=self.totals,
                    results=self.results,
                    max_items=self.growing.choice((None, 100)),
                    milestones=self.passing.choice(((), (50,), (10, 25, 99), (25, 50, 75, 100))),
                )
            )
            opened.append(row.batch_id)
            if row.limit is None and self.growing.random() < DRAINING:
                self.world.grows[row.batch_id] = self.growing.choice((10, 40))
            if rng.random() < 0.3 and not parent:
                group = service.add(row.batch_id, 1)
                self.model.issued(group, None)
                parent = group[0]
        self.nested = parent is not None and len(opened) > 1
        if parent and not self.nested:
            self.world.queue.append(Message((parent,)))
        return opened

    def remove(self) -> str:
        """An item of a batch that was removed."""
        service = LedgerService(self.ports)
        batch_id = service.open(OpenBatch()).batch_id
        item = service.add(batch_id, 1)[0]
        service.cancel(batch_id)
        service.remove(batch_id)
        return item

    def play(self) -> None:
        """Run rounds of actors to a quiet point each, then finish what is left, and check the ends.

        Raises:
            Broken: an invariant does not hold.
            Stuck: the actors do not come to an end.
        """
        rounds = self.rng.randint(1, 3)
        for number in range(rounds):
            self.run(self.cast(last=number == rounds - 1))
            self.quiet()
        if self.world.deaths and (self.rng.random() < 0.7 or not self.settled):
            self.heal()
        else:
            for batch_id in reversed(self.batches):
                self.sweep(batch_id)
                self.run({})
                self.quiet()
        self.ends()

    def run(self, clients: dict[str, Actor]) -> None:
        """Run clients, and with them the functions behind streams and alarms; the notifier ends last.

        Afterwards no request is on its way.
        """
        functions = {"timer": self.timer, "notifier": self.notifier}
        if self.settled:
            functions["settler"] = self.settler
        mortal = clients.keys() - {"reaper"}
        self.scheduler.run(clients | functions, between=self.advance, mortal=mortal)
        while self.memory.accesses.late:
            self.memory.accesses.arrive()
            self.scheduler.run(functions, between=self.advance)
        self.scheduler.run({"notifier": self.notifier}, between=self.advance)
        while self.memory.accesses.late:
            self.memory.accesses.arrive()

    def cast(self, *, last: bool) -> dict[str, Actor]:
        """The actors of one round."""
        rng, world = self.rng, self.world
        actors: dict[str, Actor] = {}
        for b, batch_id in enumerate(self.batches):
            for i in range(rng.randint(1, 2)):
                actors[f"producer {b}.{i}"] = world.producer(batch_id, self.plan(batch_id))
            if last or rng.random() < 0.1:
                for i in range(rng.choice((1, 1, 2))):
                    actors[f"closer {b}.{i}"] = world.closer(batch_id, early=rng.random() < 0.3)
            if rng.random() < 0.4:
                actors[f"reader {b}"] = world.reader(batch_id, rng.randint(1, 3))
            if rng.random() < 0.04:
                actors[f"canceller {b}"] = world.canceller(batch_id)
        for i in range(rng.randint(1, 4)):
            actors[f"consumer {i}"] = world.consumer()
        if self.wild:
            actors["reaper"] = world.reaper(rng.randint(1, 8))
        return actors

    def plan(self, batch_id: int) -> list[tuple[int, str | None]]:
        """What a producer adds: counts, some under a key that another producer uses as well."""
        rng, limit = self.rng, self.model.rows[batch_id].limit
        plan: list[tuple[int, str | None]] = []
        most = min(limit or 1000, 3 * self.memory.tree.width if rng.random() < 0.8 else 40)
        for i in range(rng.randint(0, 3)):
            if rng.random() < 0.4:
                plan.append((1 + i, f"key {i}"))
            else:
                plan.append((rng.randint(1, most), None))
        return plan

    def advance(self) -> None:
        """Let a late request arrive, and move the clock: mostly a little, now and then past what caches and
        idle times allow.
        """
        if self.memory.accesses.late:
            self.memory.accesses.arrive()
        steps = (1, 50, 1_000, 31_000, 70_000, 130_000) if self.wild else (1, 1, 50)
        self.clock.advance(self.rng.choice(steps))

    def quiet(self) -> None:
        """Nobody runs, and whoever crashed has tried again or died: now all is known exactly.

        Where nobody died, a closed batch has completed if all its items are done. The dead are made up for by
        the settler alone, as long as no closer died and every word that is written ends as 0: the stream of
        finished words has no others. A range may write the last word of any level, without one below it.
        """
        self.model.look()
        reading = LedgerService(self.ports)
        for batch_id in self.batches:
            batch, known = self.model.rows[batch_id], self.model.batches[batch_id]
            done, every = self.model.marked(batch), set(range(batch.items))
            whole = batch.state is State.COMPLETE and not batch.partial
            self.check_keys(batch, done)
            require(known.sure <= done <= known.begun, f"{known.sure} <= {done} <= {known.begun}?")
            require(whole <= (done == every), f"{batch} is complete, and {every - done} are pending")
            if not batch.state.terminal:
                exactly = self.world.deaths or done == known.sure
                require(exactly, f"{batch}: {done} are done, {known.sure} were acknowledged")
                healed = self.settled and not self.world.deaths["closer"] and self.streamed(batch)
                stuck = (healed or not self.world.deaths) and batch.waited_for and done == every
                require(not stuck, f"{batch} is stuck: all are done")
            listed = self.missing(reading, batch_id)
            require(listed == every - done, f"{batch}: missing lists {listed}, not {every - done}")
            exact = reading.status(batch_id, exact=True)
            require(exact.done_min == exact.done_max == len(done), f"{exact}: {len(done)} are done")
            failed = len(self.model.failed(batch))
            counted, more = exact.batch.failed, exact.batch.failed_more
            require(counted <= failed if more else counted == failed, f"{exact}: {failed} have failed")
            # Where sums of failures are not whole, each note may take two of the reads that are left.
            root = self.memory.tree.root_level(batch.items) if batch.items else 0
            words = sum(self.memory.tree.last(level, batch.items) + 1 for level in range(root + 1))
            readable = words + 2 * self.model.noted(batch) + STATUS_READS < MAX_ROWS
            require(not (more and readable), f"{exact}: all {failed} failures can be counted")
            bounds = reading.status(batch_id)
            least, more = bounds.batch.failed, bounds.batch.failed_more
            require(least <= failed if more else least == failed, f"{bounds}: {failed} have failed")
            alone = batch.items <= self.memory.tree.width
            require(not (more and alone), f"{bounds}: one word tells it all")
            require(bounds.done_min <= len(done) <= bounds.done_max, f"{bounds}: {len(done)} are done")
            self.values.check(exact.batch, exact=True, what=f"{exact}")
            self.values.check(bounds.batch, exact=False, what=f"{bounds}")
            self.values.check(batch, exact=whole, what=f"{batch}")
            for listed_row in reading.list(batch.state).batches if batch.totals else ():
                self.values.check(listed_row, exact=False, what=f"listed: {listed_row}")
            if batch.results:
                self.values.check_results(
                    batch_id, self.read_results(reading, batch_id), done - self.model.failed(batch)
                )
            verdict = reading.verify(batch_id, repair=False)
            self.values.check(verdict.batch, exact=True, what=f"{verdict}")
            require(verdict.pending == len(every - done), f"{verdict}: {every - done} are pending")
            excused = self.world.deaths or batch.state.terminal
            healthy = not verdict.disagreements or (excused and not whole)
            require(healthy, f"{batch}: {verdict.disagreements}")

    def streamed(self, batch: Batch) -> bool:
        """Whether every word that somebody writes is 0 when it is done, so that the stream has it."""
        tree, n = self.memory.tree, batch.items
        levels = tree.root_level(n) if self.model.batches[batch.batch_id].ranged else 0
        return not any(tree.residue(level, tree.last(level, n), n) for level in range(levels + 1) if n)

    def missing(self, service: LedgerService, batch_id: int) -> set[int]:
        listed, page = set[int](), Missing((), "0")
        while page.cursor is not None:
            page = service.missing(batch_id, cursor=page.cursor, limit=3)
            for found in page.ranges:
                _, ordinals = ordinals_of(found.items)
                require(ordinals == set(range(found.start, found.stop)), f"{found} names {ordinals}")
                listed |= ordinals
        return listed

    def check_keys(self, batch: Batch, done: set[int]) -> None:
        """Each key has an item, and each item of a key was sent by whoever added it.

        Who added them may have been told only that their item, or the batch, had ended meanwhile: another
        delivery of that item has failed it, or the batch was cancelled, or its deadline came, between two
        attempts to add them.
        """
        batch_id, known = batch.batch_id, self.model.batches[batch.batch_id]
        rows = raw_parts.keys(self.memory, batch_id, batch.items)
        keyed = {ordinal_of(f"{g.prefix}:0")[1] for key, g in known.keys.items() if key[:4] == "key/"}
        require(keyed <= rows.keys() and batch.keyed == len(rows), f"{batch}: {keyed} of {rows} have keys")
        unsent = keyed - {n for b, n in self.world.given_out if b == batch_id} - known.begun
        lost = {n for n in unsent if rows[n].by not in done}
        cut = batch.partial or batch.state in {State.TIMED_OUT, State.CANCELLED}
        require(cut or self.world.deaths["consumer"] or not lost, f"{batch}: nobody sent {lost}")

    def read_results(self, service: LedgerService, batch_id: int) -> dict[int, object]:
        page = service.results(batch_id, limit=3)
        listed = {one.ordinal: one.result for one in page.results}
        while page.cursor is not None:
            page = service.results(batch_id, cursor=page.cursor, limit=3)
            listed |= {one.ordinal: one.result for one in page.results}
        return listed

    def sweep(self, batch_id: int) -> None:
        """Acknowledge what was lost, as an operator would, and close."""
        service = LedgerService(self.ports)
        while not service.status(batch_id).batch.state.terminal:
            for found in service.missing(batch_id, limit=1000).ranges:
                group = found.group
                if self.rng.random() < 0.5:
                    items = tuple(f"{group}:{i}" for i in range(found.start, found.stop))
                    self.world.mark(service, [Message(items)])
                else:
                    entry = {"group": group, "from": found.start, "to": found.stop}
                    self.world.mark(service, [Message((entry,))])
            ended = service.close(batch_id, when=self.world.when(batch_id))
            require(ended.state is State.COMPLETE, f"{ended} is closed, and nothing is missing")

    def heal(self) -> None:
        """Nobody repeats what the dead left: time passes, and the functions alone end every batch."""
        before = {b: self.model.rows[b] for b in self.batches}
        done = {b: len(self.model.marked(row)) == row.items for b, row in before.items()}
        for _ in range(MOST_RUNS):
            self.clock.advance(REAPER_MS)
            self.run({"reaper": self.world.reaper(1)})
            if all(self.model.rows[b].state.terminal for b in before):
                break
        self.quiet()
        for b, row in before.items():
            after = self.model.rows[b]
            require(after.state.terminal, f"{after} is never ended")
            if row.waited_for and done[b]:
                whole = after.state is State.COMPLETE and not after.partial
                require(whole, f"{after}, although it was closed and all its items were done")

    def failed_children(self, batch_id: int) -> set[int]:
        """The items of a batch whose nested batches completed with failures."""
        rows = [row for row in self.model.rows.values() if row.parent_item and row.state is State.COMPLETE]
        ledger = LedgerService(self.ports)
        failed = [row for row in rows if not ledger.status(row.batch_id).batch.succeeded]
        places = (ordinal_of(str(row.parent_item)) for row in failed)
        return {ordinal for parent, ordinal in places if parent == batch_id}

    def tellings(self, batch: Batch) -> None:
        """What was told of a batch, each by its id, and nothing more once its end was told."""
        own = [one for one in self.memory.events.published if one.id.startswith(f"{batch.batch_id}.")]
        ids = list(dict.fromkeys(one.id.partition(".")[2] for one in own))
        *early, end = ids
        require(end == batch.state, f"{batch} was announced as {ids}")
        failed = next(one.detail["failed"] for one in own if one.id.endswith(f".{end}"))
        require(not failed or "failing" in early, f"{failed} failed, and only {ids} were told")
        require("failing" not in early or self.model.failed(batch), f"{ids} were told, and nothing failed")
        passed = {f"progress.{one}" for one in batch.milestones}
        whole = batch.state is State.COMPLETE and not batch.partial
        told = {one for one in early if one.startswith("progress")}
        require(told <= passed and (told == passed or not whole), f"{batch}: {told} of {passed} were told")
        require(set(early) <= {"failing", *passed}, f"{batch} was told as {ids}")
        if told and told != passed:
            self.passed_by += 1

    def ends(self) -> None:
        """One end and one event for each batch, and everyone who was first was told so once.

        What a ledger may not take was reported once, but for what a consumer held when it died.
        """
        reported, faults = self.world.reported, self.world.faults
        require(all(times == 1 for times in reported.values()), f"reported more than once: {reported}")
        require(
            self.world.deaths["consumer"] or reported.keys() == faults.keys(),
            f"{faults.keys() - reported.keys()} were never reported",
        )
        service = LedgerService(self.ports)
        for batch_id in self.batches:
            batch, known = self.model.rows[batch_id], self.model.batches[batch_id]
            self.tellings(batch)
            told = known.named - known.silent - known.ranged
            require(all(known.firsts[i] == 1 for i in told), f"{batch}: nobody was first for some of {told}")
            failed, page = set[int](), service.failures(batch_id, limit=1000)
            while failed.update(found.ordinal for found in page.failures) or page.cursor:
                page = service.failures(batch_id, limit=1000, cursor=page.cursor)
            require(known.first_failed <= failed, f"{known.first_failed - failed} failed, and are not listed")
            possible = (known.failing | self.failed_children(batch_id)) - known.first_acked
            require(failed <= possible, f"{failed - possible} are listed as failed, and were not first")


def simulate(width: int, seed: int, trace: Trace | None = None, *, settled: bool = True) -> Simulation:
    """Play one seed; see ``Simulation``.

    Raises:
        Broken: an invariant does not hold.
        Stuck: the actors do not come to an end.
        FaninError: the ledger refused what it must not refuse.
    """
    simulation = Simulation(width, seed, trace, settled=settled)
    try:
        simulation.play()
    except (AssertionError, FaninError) as error:
        error.add_note(f"replay it: python -m tests.stateful.simulation {width} {seed}")
        raise
    return simulation


if __name__ == "__main__":
    simulate(int(sys.argv[1]), int(sys.argv[2]), print)
