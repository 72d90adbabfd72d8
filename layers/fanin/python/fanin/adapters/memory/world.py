"""All ports in memory, put together; and clock, randomness, alarms and bus."""

from __future__ import annotations

import random

from fanin.adapters.memory.accesses import Accesses, OnCall
from fanin.adapters.memory.batches import MemoryBatches
from fanin.adapters.memory.callbacks import MemoryCallbacks
from fanin.adapters.memory.channels import MemoryChannels
from fanin.adapters.memory.inspection import MemoryInspection
from fanin.adapters.memory.parts import MemoryParts
from fanin.adapters.memory.queues import MemoryQueues
from fanin.adapters.memory.records import MemoryRecords
from fanin.adapters.memory.rules import MemoryRules
from fanin.adapters.memory.scatters import MemoryClaims, MemoryJobs
from fanin.adapters.memory.words import MemoryWords
from fanin.app.ports import Defaults, Ports
from fanin.app.ports.events import Event
from fanin.app.ports.system import Clock, Random
from fanin.domain.tree import Tree


class FixedClock:
    """A clock that stands still until a test moves it.

    Attributes:
        at: milliseconds since the epoch.
    """

    def __init__(self, at: int = 1_790_000_000_000) -> None:
        self.at = at

    def now(self) -> int:
        return self.at

    def advance(self, ms: int) -> None:
        self.at += ms


class SeededRandom:
    """Repeatable randomness: for tests only, since salts made of it can be guessed."""

    def __init__(self, seed: int = 0) -> None:
        self._random = random.Random(seed)  # noqa: S311

    def bits(self, n: int) -> int:
        return self._random.getrandbits(n)

    def bytes(self, n: int) -> bytes:
        return self._random.randbytes(n)


class MemoryTimers:
    """A ``Timers`` whose alarms ring when a test calls ``ring``.

    Attributes:
        alarms: batch id → time, ms.
    """

    def __init__(self, accesses: Accesses) -> None:
        self.alarms: dict[int, int] = {}
        self._accesses = accesses

    def check(self) -> None:
        pass

    def set(self, batch_id: int, at: int) -> None:
        self._accesses.send("timers.set", lambda: self.alarms.update({batch_id: at}))

    def clear(self, batch_id: int) -> None:
        self._accesses.send("timers.clear", lambda: self.alarms.pop(batch_id, None))

    def ring(self, now: int) -> list[int]:
        """Remove the alarms that are due, and return their batch ids, the earliest first."""
        due = sorted((at, batch_id) for batch_id, at in list(self.alarms.items()) if at <= now)
        for _, batch_id in due:
            self.alarms.pop(batch_id, None)
        return [batch_id for _, batch_id in due]

    def next_at(self) -> int | None:
        """When the next alarm rings, ms; None if none is set."""
        return min(list(self.alarms.values()), default=None)


class MemoryEvents:
    """An ``Events`` that keeps the events it is given.

    Attributes:
        published: the events, in order, repeats included.
    """

    def __init__(self, accesses: Accesses) -> None:
        self.published: list[Event] = []
        self._accesses = accesses

    def publish(self, event: Event) -> str:
        self._accesses.send("events.publish", lambda: self.published.append(event))
        return f"event-{len(self.published)}"


class Memory:
    """Everything that ``Ports`` names, in memory, with one count of all accesses.

    Args:
        tree: the shape of batches; words have 64 bits by default.
        clock: tells the time.
        random: draws ids and salts.
        on_call: called around each access.
        ties: decides in which order batches are listed that are due at the same time.

    Attributes:
        accesses: counts all rows read and written.
        clock: as given, else a ``FixedClock``.
        random: as given, else a ``SeededRandom``.
    """

    def __init__(
        self,
        *,
        tree: Tree | None = None,
        clock: Clock | None = None,
        random: Random | None = None,
        on_call: OnCall | None = None,
        ties: int = 0,
    ) -> None:
        self.accesses = Accesses(on_call) if on_call else Accesses()
        self.tree = tree or Tree()
        self.clock = clock or FixedClock()
        self.random = random or SeededRandom()
        self.words = MemoryWords(self.tree, self.accesses)
        self.batches = MemoryBatches(self.accesses, ties=ties)
        self.parts = MemoryParts(self.accesses)
        self.records = MemoryRecords("records", self.accesses, self.clock)
        self.directory = MemoryRecords("directory", self.accesses, self.clock)
        self.channels = MemoryChannels(self.accesses, self.clock)
        self.queues = MemoryQueues(self.channels, self.accesses, self.clock)
        self.inspection = MemoryInspection(self.accesses)
        self.rules = MemoryRules(self.accesses)
        self.jobs = MemoryJobs(self.accesses)
        self.redrives = MemoryJobs(self.accesses)
        self.claims = MemoryClaims(self.accesses)
        self.target_jobs = MemoryJobs(self.accesses, "target_jobs.send")
        self.callbacks = MemoryCallbacks(self.accesses)
        self.timers = MemoryTimers(self.accesses)
        self.events = MemoryEvents(self.accesses)

    def ports(self, defaults: Defaults | None = None) -> Ports:
        """The ports for use cases that run on it."""
        return Ports(
            batches=self.batches,
            words=self.words,
            parts=self.parts,
            timers=self.timers,
            events=self.events,
            records=self.records,
            directory=self.directory,
            channels=self.channels,
            queues=self.queues,
            inspection=self.inspection,
            rules=self.rules,
            jobs=self.jobs,
            redrives=self.redrives,
            claims=self.claims,
            target_jobs=self.target_jobs,
            callbacks=self.callbacks,
            clock=self.clock,
            random=self.random,
            defaults=defaults or Defaults(),
            tree=self.tree,
        )
