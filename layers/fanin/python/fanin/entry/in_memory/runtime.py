"""The service at work in one process: its stores and queues, and the functions that they trigger."""

import json
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, Final, cast

from fanin.adapters.backoff import Backoff
from fanin.adapters.channels import SqsChannels, SqsQueue
from fanin.adapters.inspection import AwsQueueInspection
from fanin.adapters.memory import Memory, OnCall
from fanin.adapters.memory.accesses import nothing
from fanin.adapters.memory.sqs import InMemorySqs, Queue, QueueStore
from fanin.adapters.queues import SqsQueues
from fanin.adapters.received_messages import ReceivedMessages
from fanin.app.api import Fanin
from fanin.app.directory.registrar import Registrar
from fanin.app.ports import Ports
from fanin.app.ports.system import Random
from fanin.app.services import Services
from fanin.domain.batch import Batch
from fanin.domain.targets import EVERY_HOST
from fanin.entry.in_memory.clock import PassingClock, ServiceClock
from fanin.entry.in_memory.dispatcher import Dispatcher
from fanin.entry.in_memory.event_source import Consumers, EventSource, LambdaHandler, each
from fanin.entry.in_memory.functions import Functions
from fanin.entry.in_memory.sources import TRIES, Alarms, Bus, Dead, Feed, Rate
from fanin.names import ACK_TRIES, TARGET_TRIES

if TYPE_CHECKING:
    from mypy_boto3_sqs import SQSClient

RATE_MS: Final = 300_000
"""Time between two runs of the reaper, and of the registrar."""
HIDDEN: Final = 360
"""Visibility timeout of the service's own queues, seconds."""
DEAD_LETTERS: Final = "-dead-letters"
_BUFFERS: Final = "fanin-buffer-"


class Runtime:
    """The service, and what AWS does around a deployed one: streams, queues, alarms, rates, rules.

    Everything that follows from a call is done before the call returns.

    Args:
        clock: tells the time, and lets it pass.
        random: makes ids and salts.
        on_call: called before and after each access to a store, a queue, the bus or an alarm.

    Attributes:
        on_call: the same; may be set at any time.
        clock: for users of the service.
        services: the service, for callers.
        sqs: a client for its queues, for callers.
        ack_queue_url: the queue of ``via="queue"`` and ``ack_later``.
        bus: what was published.
        dead: what could not be handled.
        memory: the stores.
        queues: all queues.
    """

    def __init__(self, clock: PassingClock, random: Random, on_call: OnCall | None = None) -> None:
        self.on_call = on_call or nothing
        self.memory = Memory(clock=clock, random=random, on_call=self._tell)
        self.queues = QueueStore(clock, random)
        self.dead: list[Dead] = []
        self._consumers = Consumers()
        self._dispatcher = Dispatcher(clock)
        self.clock = ServiceClock(clock, self._dispatcher.wait)
        self.sqs = cast("SQSClient", self._dispatcher.after_each_call(self._client()))
        self.ack_queue_url = self._own_queue("acks", ACK_TRIES)
        tries = {"jobs": TRIES, "replies": TRIES, "redrives": TRIES, "targets": TARGET_TRIES}
        urls = {name: self._own_queue(name, number) for name, number in tries.items()}
        buffers_dead = self.queues.create(f"fanin-buffers{DEAD_LETTERS}", {}, {})
        # Not the callers' client: a send by a use case must not run functions before the use case returns.
        own = cast("SQSClient", self._client())
        ports, received = self._ports(own, urls, buffers_dead.arn), ReceivedMessages(lambda: own)
        put_back = partial(received.put_back, seconds=HIDDEN)
        functions = Functions(ports, self.dead, self._bury_ack, put_back, received.postpone)
        self.bus = Bus(self.memory.rules, functions.services, self.dead)
        self._add_streams(functions, clock)
        self.consume(self.ack_queue_url, functions.acks)
        self.consume(urls["jobs"], each(functions.scatter))
        self.consume(urls["replies"], each(functions.replies))
        self.consume(urls["redrives"], each(functions.redriver))
        self.consume(urls["targets"], each(functions.targets))
        self.consume(buffers_dead.url, each(functions.buffer_dead_letters))
        self._dead_letters = each(functions.dead_letters)
        self.services = self._for_callers(Services(ports))

    def queue(
        self, name: str, *, max_receives: int | None = None, attributes: dict[str, str], tags: dict[str, str]
    ) -> Queue:
        """Make a queue.

        Args:
            name: its name.
            max_receives: how often a message is received before its item is failed; None for no limit.
            attributes: of the queue.
            tags: of the queue.
        """
        with self.queues.lock:
            if max_receives is not None:
                base, dot, fifo = name.partition(".fifo")
                grave = self.queues.create(f"{base}{DEAD_LETTERS}{dot}{fifo}", {}, {})
                attributes = attributes | _redrive(grave, max_receives)
                self.consume(grave.url, self._dead_letters)
            return self.queues.create(name, attributes, tags)

    def consume(self, url: str, handler: LambdaHandler, *, most: int = 10) -> None:
        """Hand the messages of a queue to a function from now on."""
        self._dispatcher.add(EventSource(self.queues, url, handler, most=most))
        self._consumers.add(url, handler)

    def settle(self) -> None:
        """Do everything that is due."""
        self._dispatcher.settle()

    def _tell(self, call: str, moment: str) -> None:
        self.on_call(call, moment)

    def _client(self) -> InMemorySqs:
        return InMemorySqs(self.queues, self.memory.accesses, self._dispatcher.wait)

    def _own_queue(self, name: str, tries: int) -> str:
        """Make a queue of the service; nobody consumes its dead letters."""
        grave = self.queues.create(f"fanin-{name}{DEAD_LETTERS}", {}, {})
        attributes = {"VisibilityTimeout": str(HIDDEN)} | _redrive(grave, tries)
        return self.queues.create(f"fanin-{name}", attributes, {}).url

    def _bury_ack(self, body: str) -> None:
        with self.queues.lock:
            acks = self.queues.find(self.ack_queue_url)
            if acks and acks.dead_letters:
                acks.dead_letters.send(body, {})

    def _ports(self, own: "SQSClient", urls: Mapping[str, str], buffers_dead: str) -> Ports:
        consumers = cast("Any", self._consumers)
        ports, backoff = self.memory.ports(), Backoff(sleep=self._dispatcher.wait)

        def queue(name: str) -> SqsQueue:
            return SqsQueue(lambda: urls[name], lambda: own, backoff=backoff)

        return replace(
            ports,
            channels=SqsChannels(lambda: own, threads=1, backoff=backoff),
            queues=SqsQueues(lambda: _BUFFERS, lambda: own, dead_letters=lambda: buffers_dead),
            inspection=AwsQueueInspection(
                ports.clock, lambda: own, lambda: consumers, lambda: consumers, threads=1
            ),
            jobs=queue("jobs"),
            redrives=queue("redrives"),
            target_jobs=queue("targets"),
            defaults=replace(ports.defaults, reply_to=urls["replies"], webhook_hosts=EVERY_HOST),
        )

    def _add_streams(self, functions: Functions, clock: PassingClock) -> None:
        memory, dead, ledger = self.memory, self.dead, functions.services.ledger

        def follow(change: tuple[Batch | None, Batch], *, again: bool = False) -> object:
            return ledger.follow(*change, again=again)

        def registered() -> int | None:
            return clock.now() if functions.registered else None

        self._dispatcher.add(
            Feed("notifier", memory.batches.changes, follow, clock, dead, partial(follow, again=True)),
            Feed("settler", memory.words.finished, lambda word: ledger.heal([word]), clock, dead),
            Feed("directory", memory.directory.changes, functions.directory, clock, dead),
            Feed("bus", memory.events.published, self.bus.pass_on, clock, dead),
            Feed("rules", self.bus.calls, lambda call: call(), clock, dead),
            Alarms(memory.timers, ledger.meet_deadline, clock, dead),
            Rate("reaper", RATE_MS, ledger.reap, clock, memory.batches.next_due),
            Rate("registrar", RATE_MS, lambda: Registrar(functions.ports).sweep(), clock, registered),
        )

    def _for_callers(self, services: Services) -> Services:
        for name in (name for name, one in vars(Fanin).items() if isinstance(one, property)):
            self._dispatcher.after_each_call(getattr(services, name))
        return services


def _redrive(grave: Queue, max_receives: int) -> dict[str, str]:
    policy = {"deadLetterTargetArn": grave.arn, "maxReceiveCount": max_receives}
    return {"RedrivePolicy": json.dumps(policy)}
