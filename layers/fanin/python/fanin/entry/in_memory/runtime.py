"""The service at work in one process: after each call, and whenever time passes, what follows is done."""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from functools import wraps
from itertools import count
from threading import RLock, local
from typing import TYPE_CHECKING, Any, Final, TypeVar, cast

from fanin.adapters.backoff import Backoff
from fanin.adapters.channels import SqsChannels
from fanin.adapters.memory import Memory, OnCall
from fanin.adapters.memory.sqs import InMemorySqs, Queue, QueueStore
from fanin.adapters.queues import SqsQueues
from fanin.adapters.sqs import SqsQueue
from fanin.app.ports import Ports
from fanin.app.ports.system import Random
from fanin.app.services import Services
from fanin.entry.in_memory.bus import Bus
from fanin.entry.in_memory.clock import PassingClock, ServiceClock
from fanin.entry.in_memory.event_source import EventSource, LambdaHandler, each
from fanin.entry.in_memory.functions import Functions
from fanin.entry.in_memory.sources import TRIES, Alarms, Dead, Feed, Rate, Source

if TYPE_CHECKING:
    from mypy_boto3_sqs import SQSClient

T = TypeVar("T")

RATE_MS: Final = 300_000
"""Time between two runs of the reaper, and of the registrar."""
HIDDEN: Final = 360
"""Seconds for which the service's own queues hide a message: six runs of a function."""
DEAD_LETTERS: Final = "-dead-letters"
_BUFFERS: Final = "fanin-buffer-"


def _nothing(_call: str, _moment: str) -> None:
    pass


class Runtime:
    """The service, and what AWS does around a deployed one: streams, queues, alarms, rates, rules.

    What follows from a call is done before the call returns, in its thread. Where another thread is at it
    already, that one does it too. A function's work may be found half done by others, as on AWS.

    Args:
        clock: tells the time, and lets it pass.
        random: makes ids and salts.
        on_call: called before and after each access to a store, a queue, the bus or an alarm.

    Attributes:
        on_call: the same; may be set at any time.
        clock: for whoever uses the service.
        services: the service, for callers.
        sqs: a client of its queues, for callers.
        ack_queue_url: the queue of acknowledgements that need no answer.
        bus: what was told.
        dead: what nobody could handle.
        memory: the stores.
        queues: all queues.
    """

    def __init__(self, clock: PassingClock, random: Random, on_call: OnCall | None = None) -> None:
        self.on_call = on_call or _nothing
        self.memory = Memory(clock=clock, random=random, on_call=self._tell)
        self.queues = QueueStore(clock, random)
        self.clock = ServiceClock(clock, self.wait)
        self.dead: list[Dead] = []
        self._time = clock
        self._lock = RLock()
        self._working = False
        self._asked = 0
        self._requests = count(1)
        self._thread = local()
        self._client = InMemorySqs(self.queues, self.memory.accesses, self.wait)
        self.sqs = cast(
            "SQSClient", around(InMemorySqs(self.queues, self.memory.accesses, self.wait), self.call)
        )
        self.ack_queue_url = self._own_queue("fanin-acks")
        jobs, replies = self._own_queue("fanin-jobs"), self._own_queue("fanin-replies")
        ports = self._ports(jobs, replies)
        functions = Functions(ports, self.dead)
        self.bus = Bus(self.memory.rules, functions.services, self.dead)
        self._sources = self._streams(functions, clock)
        for url, handle in (
            (self.ack_queue_url, functions.acks),
            (jobs, functions.scatter),
            (replies, functions.replies),
        ):
            self.consume(url, each(handle))
        self._dead_letters = each(functions.dead_letters)
        self.services = _followed(Services(ports), self.call)

    def queue(
        self, name: str, *, max_receives: int | None = None, attributes: dict[str, str], tags: dict[str, str]
    ) -> Queue:
        """Make a queue.

        Args:
            name: its own.
            max_receives: deliveries of a message until its item is failed; None delivers it for ever.
            attributes: of the queue.
            tags: of the queue.
        """
        with self.queues.lock:
            if max_receives is not None:
                base, dot, fifo = name.partition(".fifo")
                grave = self.queues.create(f"{base}{DEAD_LETTERS}{dot}{fifo}", {}, {})
                policy = {"deadLetterTargetArn": grave.arn, "maxReceiveCount": max_receives}
                attributes = {**attributes, "RedrivePolicy": json.dumps(policy)}
                self.consume(grave.url, self._dead_letters)
            return self.queues.create(name, attributes, tags)

    def consume(self, url: str, handler: LambdaHandler, *, most: int = 10) -> None:
        """Hand the messages of a queue to a function from now on."""
        self._sources = (*self._sources, EventSource(self.queues, url, handler, most=most))

    @contextmanager
    def call(self) -> Iterator[None]:
        """Around a call of the service: what is due comes before it, what follows from it after it."""
        if getattr(self._thread, "calling", False):
            yield  # a call of the service within another: both end before anything follows
            return
        self.settle()
        self._thread.calling = True
        try:
            yield
        finally:
            self._thread.calling = False
            self.settle()

    def settle(self) -> None:
        """Do everything that is due, unless somebody is at it: then they do this too."""
        self._asked = asked = next(self._requests)
        while self._lock.acquire(blocking=False):
            try:
                if self._working:
                    return  # further up in this thread
                asked = self._asked
                self._work()
            finally:
                self._lock.release()
            if asked == self._asked:
                return

    def wait(self, seconds: float, ready: Callable[[], bool] = lambda: False) -> None:
        """Let time pass, and do in order what is due meanwhile.

        Args:
            seconds: how long at the most.
            ready: ends the wait.
        """
        until = self._time.now() + round(seconds * 1000)
        while not ready():
            due = self._catch_up()
            now = self._time.now()
            if now >= until or ready():
                return
            self._time.pass_until(until if due is None else min(until, max(now, due)))

    def _catch_up(self) -> int | None:
        """Do everything that is due, also within a function that waits; when there is more to do, ms."""
        if not self._lock.acquire(blocking=False):
            return None
        working = self._working
        try:
            self._work()
            return min((at for source in self._sources if (at := source.due()) is not None), default=None)
        finally:
            self._working = working
            self._lock.release()

    def _work(self) -> None:
        self._working = True
        try:
            while any(source.run() for source in self._sources):
                pass
        finally:
            self._working = False

    def _tell(self, call: str, moment: str) -> None:
        self.on_call(call, moment)

    def _own_queue(self, name: str) -> str:
        """A queue of the service; what dies in it waits for people."""
        grave = self.queues.create(name + DEAD_LETTERS, {}, {})
        policy = {"deadLetterTargetArn": grave.arn, "maxReceiveCount": TRIES}
        attributes = {"VisibilityTimeout": str(HIDDEN), "RedrivePolicy": json.dumps(policy)}
        return self.queues.create(name, attributes, {}).url

    def _ports(self, jobs: str, replies: str) -> Ports:
        def client() -> SQSClient:
            return cast("SQSClient", self._client)

        ports, backoff = self.memory.ports(), Backoff(sleep=self.wait)
        return replace(
            ports,
            channels=SqsChannels(client, threads=1, backoff=backoff),
            queues=SqsQueues(lambda: _BUFFERS, client),
            jobs=SqsQueue(lambda: jobs, client, backoff=backoff),
            defaults=replace(ports.defaults, reply_to=replies),
        )

    def _streams(self, functions: Functions, clock: PassingClock) -> tuple[Source, ...]:
        memory, dead = self.memory, self.dead

        def registered() -> int | None:
            return clock.now() if functions.registered else None

        return (
            Feed("notifier", memory.batches.changes, functions.notifier, clock, dead),
            Feed("settler", memory.words.finished, functions.settler, clock, dead),
            Feed("directory", memory.directory.changes, functions.directory, clock, dead),
            Feed("bus", memory.events.published, self.bus.pass_on, clock, dead),
            Feed("rules", self.bus.calls, lambda call: call(), clock, dead),
            Alarms(memory.timers, functions.timer, clock, dead),
            Rate("reaper", RATE_MS, functions.reaper, clock, memory.batches.next_due),
            Rate("registrar", RATE_MS, functions.registrar, clock, registered),
        )


def around(service: T, call: Callable[[], AbstractContextManager[None]]) -> T:
    """Make every public method of an object run within ``call``."""
    for name, method in inspect.getmembers(service, inspect.ismethod):
        if not name.startswith("_"):
            setattr(service, name, _within(method, call))
    return service


def _within(method: Callable[..., T], call: Callable[[], AbstractContextManager[None]]) -> Callable[..., T]:
    @wraps(method)
    def within(*arguments: Any, **options: Any) -> T:
        with call():
            return method(*arguments, **options)

    return within


def _followed(services: Services, call: Callable[[], AbstractContextManager[None]]) -> Services:
    for service in (
        services.ledger,
        services.scatters,
        services.frames,
        services.buffers,
        services.directory,
        services.routing,
    ):
        around(service, call)
    return services
