"""A scatter under a seed: its caller, recipients and functions, interleaved and crashing at every step.

Replay a seed with its trace:

    python -m tests.stateful.scatters SEED
"""

import sys
from collections.abc import Callable
from random import Random

from fanin import names
from fanin.adapters.memory import FixedClock, Memory, SeededRandom
from fanin.app.ledger.service import LedgerService
from fanin.app.ports import Ports
from fanin.app.ports.events import Event
from fanin.app.ports.queues import Outgoing
from fanin.app.scatters.service import ScatterService
from fanin.app.services import Patterns
from fanin.domain.batch import Batch, Kind, State
from fanin.domain.ids import parse_prefix
from fanin.domain.scatter import Recipient, Reply, Scatter
from fanin.domain.tree import Tree
from fanin.errors import CorrelationIdAlive, Throttled
from tests.lost_answers import LostAnswers
from tests.stateful.model import require
from tests.stateful.scheduler import Scheduler

Actor = Callable[[], None]
TIMEOUT = 20
SURPRISE = "the queue refuses messages (KMS.Surprise)"
READS = {
    "batches.read",
    "directory.read",
    "parts.failures",
    "records.read",
    "words.read",
    "words.read_failed",
}


class Gathering:
    """One seed's scatter, from its start to the event of its end.

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
        self.ports: Ports = self.memory.ports()
        n = rng.choice((0, 1, 2, 3, 3, 5, 9))
        self.recipients = [Recipient(f"{i}", f"https://sqs/{i}") for i in range(n)]
        self.memory.channels.queues.update({to.channel: [] for to in self.recipients})
        self.odd = rng.choice((None, None, rng.randrange(n))) if n else None
        if self.odd is not None:
            self.memory.channels.refusing[self.recipients[self.odd].channel] = SURPRISE
        self.request = Scatter(
            "report!",
            self.recipients,
            correlation_id="mine",
            timeout=TIMEOUT,
            max_retries=rng.choice((0, 1, 2)),
            quorum=rng.choice((None, None, 1, 0.5, 3)),
        )
        self.said: dict[int, set[str]] = {}
        self.first: dict[int, str] = {}
        self.items: dict[int, set[str]] = {}
        self.sent: list[Outgoing] = []

    def loses(self, call: str) -> Callable[[], None] | None:
        """Whether the answer of a write is lost; then others go on, until the SDK repeats it.

        That of its repeat is not, since the SDK gives up after a few.
        """
        if self.scheduler.acts and self.scheduler.name in self.repeating:
            self.repeating.discard(self.scheduler.name)
            return None
        if not self.scheduler.acts or call in READS or self.rng.random() >= self.losing:
            return None
        self.repeating.add(self.scheduler.name)
        return self.scheduler.pause

    def services(self) -> tuple[LedgerService, ScatterService]:
        """A process that starts now."""
        ledger = LedgerService(self.ports, Patterns(self.ports))
        return ledger, ScatterService(ledger)

    @property
    def rows(self) -> dict[int, Batch]:
        """The scatters that were opened."""
        return {new.batch_id: new for _, new in self.memory.batches.changes if new.kind is Kind.SCATTER}

    @property
    def over(self) -> bool:
        """Whether there are scatters, and each has ended and was told of."""
        told = {event.id.partition(".")[0] for event in self.memory.events.published}
        return bool(self.rows) and all(str(batch_id) in told for batch_id in self.rows)

    def play(self) -> None:
        """Run everybody until the end is told, and look at it.

        Raises:
            Broken: an invariant does not hold.
            Stuck: the actors do not come to an end.
        """
        actors: dict[str, Actor] = {"caller": self.caller}
        actors |= {"worker": self.worker(), "timer": self.timer(), "notifier": self.notifier()}
        actors |= {f"recipient {to.name}": self.recipient(i) for i, to in enumerate(self.recipients)}
        self.scheduler.run(actors, between=lambda: self.clock.advance(self.rng.choice((1, 100, 5_000))))
        for batch_id, row in self.rows.items():
            self.check(batch_id, row)

    # Who takes part. What a closure keeps outlives a crash; a message is gone when it was handled.

    def caller(self) -> None:
        """Starts the scatter, and tries again until one is there."""
        while not self.rows:
            try:
                self.services()[1].start(self.request)
            except (CorrelationIdAlive, Throttled):
                self.clock.advance(1_000)
                self.scheduler.pause()

    def worker(self) -> Actor:
        """Does the jobs, in any order, each at least once."""
        jobs = self.memory.jobs.waiting

        def run() -> None:
            while self.until(lambda: jobs):
                job = self.rng.choice(jobs)
                self.services()[1].send(job["batch_id"], job["chunk"], job["wave"])
                if job in jobs and self.rng.random() < 0.9:
                    jobs.remove(job)

        return run

    def timer(self) -> Actor:
        """Rung by the alarms; now and then the reaper finds what an alarm came too early for."""
        ringing: list[int] = []

        def due() -> list[int]:
            ringing.extend(self.memory.timers.ring(self.clock.at))
            return ringing

        def run() -> None:
            self.scheduler.wait(lambda: self.rows)
            while not self.over:
                if due():
                    self.services()[0].meet_deadline(ringing[0])
                    ringing.pop(0)
                elif self.rng.random() < 0.01:
                    self.services()[0].reap()
                else:
                    self.clock.advance(100)
                    self.scheduler.pause()

        return run

    def notifier(self) -> Actor:
        """Fed by the stream of ended batches, at least once."""
        at, feed = 0, self.memory.batches.changes

        def more() -> bool:
            return at < len(feed)

        def run() -> None:
            nonlocal at
            while self.until(more):
                old, new = feed[at]
                if new.state.terminal and (old is None or not old.state.terminal):
                    self.services()[0].announce(new)
                at += 1

        return run

    def recipient(self, i: int) -> Actor:
        """Replies to its messages: at once, to a later one only, twice with other words, or never."""
        inbox = self.memory.channels.queues[self.recipients[i].channel]
        deaf = self.rng.choice((0, 0, 0, 1, 99))
        chatty = self.rng.random() < 0.3
        read = 0

        def more() -> bool:
            return read < len(inbox)

        def run() -> None:
            nonlocal read
            while self.until(more):
                item = inbox[read].attributes[names.ITEM_ATTRIBUTE]
                self.items.setdefault(i, set()).add(item)
                if read >= deaf:
                    self.answer(i, item, f"{read}" if chatty else "report")
                read += 1

        return run

    def answer(self, i: int, item: str, words: str) -> None:
        self.said.setdefault(i, set()).add(words)
        (receipt,) = self.services()[1].reply([Reply(item, words)])
        if receipt.first:
            require(i not in self.first, f"two replies of {i} were the first")
            self.first[i] = words

    def until(self, ready: Callable[[], object]) -> bool:
        """Wait for something to do; False when all is over."""
        self.scheduler.wait(lambda: ready() or self.over)
        return not self.over

    # What must hold in the end.

    def check(self, batch_id: int, row: Batch) -> None:
        _, scatters = self.services()
        status = scatters.status(batch_id)
        require(row.state is State.COMPLETE, f"{row} ended otherwise")
        require(row.items == len(self.recipients), f"{row} has not all recipients")
        require(row.retries <= self.request.max_retries, f"{row} was sent again too often")
        told = [event for event in self.memory.events.published if event.id == f"{batch_id}.complete"]
        require(bool(told), f"{row} was not told of")
        require({event.detail_type for event in told} == {"Gather Ready"}, f"told as {told}")
        enough = status.quorum is not None and status.received >= status.quorum
        waited = row.retries == self.request.max_retries
        require(not status.missing or enough or waited, f"{status} was given up too early")
        require(row.partial or not status.missing, f"{status} is not partial")
        for items in self.items.values():
            blocks = {parse_prefix(item.rpartition(":")[0]).batch_id for item in items}
            require(len(items) == len(blocks), f"a recipient got {items}")
        failed = {one.ordinal: one.reason for one in scatters.failed_recipients(batch_id).recipients}
        odd = {} if self.odd is None else {self.odd: f"{self.odd}: {SURPRISE}"}
        require(failed.items() <= odd.items(), f"{failed} failed, though only {odd} could")
        self.check_replies(scatters, batch_id, told[-1])

    def check_replies(self, scatters: ScatterService, batch_id: int, event: Event) -> None:
        listed: dict[int, object] = {}
        cursor: str | None = None
        while True:
            page = scatters.replies(batch_id, cursor=cursor, limit=7)
            for reply in page.replies:
                require(reply.ordinal > max(listed, default=-1), f"{reply} is listed out of order")
                listed[reply.ordinal] = reply.payload
            cursor = page.cursor
            if cursor is None:
                break
        status = scatters.status(batch_id)
        require(len(listed) == status.received, f"{len(listed)} replies are listed, {status}")
        told = event.detail["received"]
        # Replies that cross the end may count though the event could not know.
        require(isinstance(told, int) and told <= len(listed), f"told of {told}, listed {len(listed)}")
        for ordinal, payload in listed.items():
            require(payload in self.said.get(ordinal, ()), f"{ordinal} never said {payload}")
        for ordinal, words in self.first.items():
            require(listed.get(ordinal) == words, f"{ordinal} was first with {words}, listed is {listed}")


def simulate(seed: int, trace: Callable[[str], None] | None = None) -> Gathering:
    """Play one seed.

    Raises:
        Broken: an invariant does not hold.
        Stuck: the actors do not come to an end.
    """
    gathering = Gathering(seed, trace)
    try:
        gathering.play()
    except AssertionError as error:
        error.add_note(f"replay it: python -m tests.stateful.scatters {seed}")
        raise
    return gathering


if __name__ == "__main__":
    simulate(int(sys.argv[1]), print)
