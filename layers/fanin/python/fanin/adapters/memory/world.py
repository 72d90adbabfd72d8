"""All ports in memory, put together; and clock, randomness, alarms and bus."""

import random
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields
from typing import Any, NamedTuple

from fanin.adapters.memory.accesses import Accesses, OnCall
from fanin.adapters.memory.batches import MemoryBatches
from fanin.adapters.memory.parts import MemoryParts
from fanin.adapters.memory.queues import MemoryChannels, MemoryInspection, MemoryQueues
from fanin.adapters.memory.records import MemoryRecords
from fanin.adapters.memory.words import MemoryWords
from fanin.app.ports import Defaults, Ports
from fanin.app.ports.events import Event
from fanin.app.ports.queues import ChannelNotice
from fanin.app.ports.system import Clock, Random
from fanin.domain import patterns
from fanin.domain.claim_checks import ClaimCheck
from fanin.domain.targets import Target
from fanin.domain.tree import Tree
from fanin.errors import ServiceUnavailable, TargetRefused


class MemoryRules:
    """A ``Rules`` that refuses the patterns that EventBridge refuses.

    Attributes:
        patterns: route → pattern.
    """

    def __init__(self, accesses: Accesses) -> None:
        self.patterns: dict[str, Mapping[str, Any]] = {}
        self._accesses = accesses

    def check(self, pattern: Mapping[str, Any]) -> None:
        patterns.check(pattern)
        patterns.check_operators(pattern)

    def matching(self, event: Mapping[str, Any]) -> list[str]:
        """The routes whose rules an event matches."""
        return [route for route, one in self.patterns.items() if patterns.matches(one, event)]

    def put(self, route: str, pattern: Mapping[str, Any]) -> None:
        self.check(pattern)
        self._accesses.send("rules.put", lambda: self.patterns.update({route: pattern}))

    def delete(self, route: str) -> None:
        self._accesses.send("rules.delete", lambda: self.patterns.pop(route, None))


class Callback(NamedTuple):
    """What a target was told.

    Attributes:
        target: who.
        event: of the end.
        succeeded: whether the batch ended complete and no item failed.
    """

    target: Target
    event: Event
    succeeded: bool


class MemoryCallbacks:
    """A ``Callbacks`` that keeps what targets are told.

    Attributes:
        told: in order, repeats included.
        down: tokens, ids and URLs that take nothing for now.
        refusing: tokens, ids and URLs that take nothing for good.
    """

    def __init__(self, accesses: Accesses) -> None:
        self.told: list[Callback] = []
        self.down: set[str] = set()
        self.refusing: set[str] = set()
        self._accesses = accesses

    def call(self, target: Target, notice: ChannelNotice) -> None:
        place = target.task_token or target.callback_id or target.url or ""
        if place in self.refusing:
            raise TargetRefused("the target refuses")
        if place in self.down:
            raise ServiceUnavailable("the target is down")
        told = Callback(target, notice.event, notice.succeeded)
        self._accesses.send("callbacks.call", lambda: self.told.append(told))


class MemoryJobs:
    """A ``Jobs`` that keeps the jobs it is sent.

    Args:
        accesses: counts jobs.
        call: name of its accesses.

    Attributes:
        waiting: the jobs, in order.
    """

    def __init__(self, accesses: Accesses, call: str = "jobs.send") -> None:
        self.waiting: list[Mapping[str, Any]] = []
        self._accesses = accesses
        self._call = call

    def send(self, messages: Iterable[Mapping[str, object]]) -> None:
        for message in messages:
            self._accesses.send(self._call, lambda: self.waiting.append(message))  # noqa: B023


class MemoryClaims:
    """A ``ClaimChecks`` in a dict. Tests say which objects were uploaded through a URL.

    Attributes:
        uploaded: keys of the objects that were uploaded so.
        objects: key → content of the objects that the service itself stored.
    """

    def __init__(self, accesses: Accesses) -> None:
        self.uploaded: set[str] = set()
        self.objects: dict[str, bytes] = {}
        self._accesses = accesses

    def upload(self, key: str, *, size: int, content_type: str) -> ClaimCheck:
        headers = {"Content-Type": content_type, "Content-Length": str(size)}
        return ClaimCheck(key, f"memory://claims/{key}", headers, 0)

    def download(self, key: str) -> str:
        return f"memory://claims/{key}"

    def put(self, key: str, content: bytes) -> None:
        self._accesses.send("claims.put", lambda: self.objects.update({key: content}))

    def put_all(self, contents: Mapping[str, bytes]) -> None:
        for key, content in contents.items():
            self.put(key, content)

    def delete(self, keys: Sequence[str]) -> None:
        for key in keys:
            self._accesses.send("claims.delete", lambda: self.objects.pop(key, None))  # noqa: B023

    def load(self, keys: Sequence[str]) -> Mapping[str, bytes]:
        return {key: self.objects[key] for key in keys if key in self.objects}

    def exists(self, key: str) -> bool:
        return key in self.uploaded or key in self.objects


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
        self.parts = MemoryParts(self.accesses)
        self.batches = MemoryBatches(self.accesses, self.parts, ties=ties)
        self.records = MemoryRecords("records", self.accesses, self.clock)
        self.directory = MemoryRecords("directory", self.accesses, self.clock)
        self.channels = MemoryChannels(self.accesses, self.clock)
        self.queues = MemoryQueues(self.channels, self.accesses, self.clock, SeededRandom())
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
        stores: dict[str, Any] = {
            field.name: getattr(self, field.name) for field in fields(Ports) if field.name != "defaults"
        }
        return Ports(**stores, defaults=defaults or Defaults())
