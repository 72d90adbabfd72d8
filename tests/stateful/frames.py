"""Frames under a seed: sender, receivers and the functions behind them, interleaved, crashing at every step.

What a crash leaves is what outlives a process: the stores, the repeat buffer, the messages of a queue, of
which some are lost and some come twice. Replay a seed with its trace:

    python -m tests.stateful.frames SEED
"""

import json
import sys
from collections.abc import Callable, Sequence
from random import Random

from fanin.adapters.backoff import Backoff
from fanin.adapters.memory import FixedClock, Memory, SeededRandom
from fanin.app.frames import FrameService
from fanin.app.ledger.service import LedgerService
from fanin.app.services import Patterns, Services
from fanin.client.consuming.acknowledging import LedgerAcknowledger
from fanin.client.frames.envelopes import Envelope, Notice
from fanin.client.frames.receiver import Delivery, Disposition, IdempotentReceiver
from fanin.client.frames.repeat_buffer import MemoryRepeatBuffer
from fanin.client.frames.repeater import Repeater
from fanin.client.tracker import Tracker
from fanin.domain.batch import State
from fanin.domain.frames import OpenFrame
from fanin.domain.tree import Tree
from tests.stateful.model import require
from tests.stateful.scheduler import Scheduler

CHANNEL = "https://sqs/replies"
LEASE = 10
STEPS = (1, 1, 50, 100)  # milliseconds; a stalled receiver must be able to outrun its lease
LEAP = 40_000


class FrameSimulation:
    """One seed's world, from the first payload to a buffer that is empty again.

    Args:
        seed: decides everything.
        ttl: of the frames, in seconds; a short one is missed now and then, and the frame given up.
        trace: gets a line for each access, when a seed is replayed.
    """

    def __init__(self, seed: int, *, ttl: int, trace: Callable[[str], None] | None = None) -> None:
        self.rng = rng = Random(f"frames/{seed}")
        crashes = rng.choice((0, 1, 3, 8))
        self.scheduler = Scheduler(rng, lambda: None, crashes=crashes, trace=trace)
        self.clock = FixedClock()
        self.memory = Memory(
            tree=Tree(rng.choice((2, 3, 64))),
            clock=self.clock,
            random=SeededRandom(seed),
            on_call=self.scheduler.on_call,
        )
        self.memory.channels.queues[CHANNEL] = []
        self.template = OpenFrame(rng.choice((1, 3, 10)), reply_to=CHANNEL, ttl=ttl)
        self.queue: list[Envelope] = []
        self.buffer = MemoryRepeatBuffer()
        self.payloads = [str(number).encode() for number in range(rng.randint(1, 25))]
        self.effects: dict[str, bytes] = {}
        self.holders: dict[str, int] = {}
        self.overlaps: list[str] = []
        self.sending = True
        self.finished = self.announced = 0

    def process(self) -> tuple[LedgerService, FrameService]:
        """A process that starts now."""
        ports = self.memory.ports()
        ledger = LedgerService(ports, Patterns(ports))
        return ledger, FrameService(ledger)

    def seconds(self) -> float:
        return self.clock.at / 1000

    # Actors.

    def sender(self) -> None:
        """Puts everything, and repeats until the buffer is empty."""
        repeater = Repeater(
            self.process()[1],
            self.transport,
            self.buffer,
            template=self.template,
            notices=self.notices,
            backoff=Backoff(base=5, cap=20, fraction=self.rng.random),
            clock=self.seconds,
        )
        while self.payloads:
            repeater.put(self.payloads[0])
            self.payloads.pop(0)
            if self.rng.random() < 0.2:
                repeater.flush()
        while self.buffer.usage.envelopes:
            repeater.flush()
            repeater.tick()
            self.scheduler.pause()
        self.sending = False

    def transport(self, envelopes: Sequence[Envelope]) -> None:
        for envelope in envelopes:
            self.scheduler.on_call("send", "before")
            self.queue += [envelope] * self.rng.choices((0, 1, 2), (0.1, 0.8, 0.1))[0]

    def notices(self) -> list[Notice]:
        messages = self.memory.channels.queues[CHANNEL]
        bodies = [json.loads(message.body) for message in messages]
        messages.clear()
        return [Notice(body["type"], body["frame_id"]) for body in bodies]

    def receiver(self) -> Callable[[], None]:
        held: list[Envelope] = []

        def run() -> None:
            self.queue.extend(held)
            held.clear()
            ledger, frames = self.process()
            receiver = IdempotentReceiver(
                frames,
                self.handle,
                LedgerAcknowledger(Tracker(Services(ledger.ports))),
                lease=LEASE,
                clock=self.seconds,
            )
            while self.scheduler.wait(lambda: self.queue or not self.sending) and self.queue:
                self.rng.shuffle(self.queue)
                held.extend(self.queue.pop() for _ in range(min(3, len(self.queue))))
                dispositions = receiver.receive(held)
                again = [e for e, r in zip(held, dispositions, strict=True) if r is Disposition.REDELIVER]
                held.clear()
                self.queue += again
                self.scheduler.pause()

        return run

    def handle(self, delivery: Delivery) -> None:
        if self.holders.get(delivery.item, 0) > self.seconds():
            self.overlaps.append(delivery.item)  # an error raised here would only bring it again
        self.holders[delivery.item] = delivery.fencing_token
        for _ in range(self.rng.randint(0, 3)):
            self.scheduler.on_call("handle", "before")
        self.effects.setdefault(delivery.item, delivery.payload)
        self.scheduler.on_call("handle", "after")
        if self.seconds() < delivery.fencing_token:
            del self.holders[delivery.item]

    def functions(self) -> None:
        """Behind the streams and the rate schedule: settler, notifier and reaper in one."""
        ledger, _ = self.process()
        while self.sending:
            finished = self.memory.words.finished[self.finished : self.finished + 3]
            ledger.heal(finished)
            self.finished += len(finished)
            for old, new in self.memory.batches.changes[self.announced : self.announced + 3]:
                ledger.follow(old, new)
                self.announced += 1
            if self.rng.random() < 0.1:
                ledger.reap()
            self.scheduler.pause()

    def play(self) -> None:
        """Run everyone until the sender has nothing left.

        Raises:
            Broken: an invariant does not hold.
            Stuck: they do not come to an end.
        """
        sent = list(self.payloads)
        actors: dict[str, Callable[[], None]] = {"sender": self.sender, "functions": self.functions}
        actors |= {f"receiver {n}": self.receiver() for n in range(self.rng.randint(1, 3))}
        self.scheduler.run(actors, between=self.advance)
        require(not self.overlaps, f"{self.overlaps} were handled by two at once")
        require(set(self.effects.values()) == set(sent), f"{self.effects} of {sent} had an effect")
        rows = {new.batch_id: new for _, new in self.memory.batches.changes}.values()
        if not any(row.state is State.TIMED_OUT for row in rows):
            require(len(self.effects) == len(sent), f"{self.effects}: more effects than payloads")

    def advance(self) -> None:
        self.clock.advance(LEAP if self.rng.random() < 0.003 else self.rng.choice(STEPS))


def simulate(seed: int, *, ttl: int = 86_400, trace: Callable[[str], None] | None = None) -> FrameSimulation:
    """Play one seed; an error says how to replay it."""
    played = FrameSimulation(seed, ttl=ttl, trace=trace)
    try:
        played.play()
    except AssertionError as error:
        error.add_note(f"replay it: python -m tests.stateful.frames {seed} {ttl}")
        raise
    return played


if __name__ == "__main__":
    simulate(int(sys.argv[1]), ttl=int(sys.argv[2]), trace=print)
