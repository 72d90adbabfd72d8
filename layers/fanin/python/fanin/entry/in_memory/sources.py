"""What triggers functions in memory: the counterparts of streams, alarms, rates and the rules of the bus."""

import json
import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final, Generic, NamedTuple, Protocol, TypeAlias, TypeVar

from fanin import names
from fanin.adapters.memory import MemoryRules, MemoryTimers
from fanin.adapters.memory.sqs.queue import ACCOUNT, REGION
from fanin.app.directory.routing import Routed
from fanin.app.ports.events import Event
from fanin.app.ports.system import Clock
from fanin.app.services import Services
from fanin.errors import ChannelRefused, InvalidRequest
from fanin.wire.json_types import encode_time

logger = logging.getLogger("fanin")

T = TypeVar("T")
TRIES: Final = 10
"""How often a record is tried before it becomes a dead letter."""
PAUSE_MS: Final = 180_000
"""Milliseconds between two tries of a record, except that the second try follows the first at once."""


class Source(Protocol):
    """Triggers a function, now or at some time."""

    def due(self) -> int | None:
        """When it triggers next, ms; a past time means now, None means that nothing is scheduled."""

    def run(self) -> bool:
        """Run the function for one piece of work; False if nothing is due."""


class Dead(NamedTuple):
    """A record, message or event that could not be handled; on AWS an alarm would go off.

    Attributes:
        where: name of the function, such as ``notifier``.
        what: the record, message or event.
    """

    where: str
    what: object


@dataclass
class Feed(Generic[T]):
    """Hands records to a function, in order. One that fails is tried again, and does not hold up the others.

    Attributes:
        name: of the function.
        arrivals: the records; the list grows at its end.
        handle: the function, for one record; if it raises, the record is tried again.
        clock: tells when the next try is due.
        dead: collects the records that failed too often.
        retry: the function, for a record that failed before; by default the same.
    """

    name: str
    arrivals: Sequence[T]
    handle: Callable[[T], object]
    clock: Clock
    dead: list[Dead]
    retry: Callable[[T], object] | None = None
    _seen: int = 0
    _again: list[tuple[int, int, T]] = field(default_factory=list)  # when it is next, how often it was, what

    def due(self) -> int | None:
        if self._seen < len(self.arrivals):
            return self.clock.now()
        return min((at for at, _, _ in self._again), default=None)

    def run(self) -> bool:
        now = self.clock.now()
        for place, (at, tries, record) in enumerate(self._again):
            if at <= now:
                del self._again[place]
                self._try(record, tries)
                return True
        if self._seen == len(self.arrivals):
            return False
        self._seen += 1
        self._try(self.arrivals[self._seen - 1], 0)
        return True

    def _try(self, record: T, tries: int) -> None:
        handle = self.retry if self.retry and tries else self.handle
        try:
            handle(record)
        except Exception:  # whatever it is, the records behind must go on
            logger.warning("%s failed and is called again", self.name, exc_info=True)
            if tries + 1 == TRIES:
                self.dead.append(Dead(self.name, record))
            else:
                self._again.append((self.clock.now() + (PAUSE_MS if tries else 0), tries + 1, record))
        except BaseException:  # the process ends, and the record was not handled
            self._again.append((self.clock.now(), tries, record))
            raise


class Alarms(Feed[int]):
    """Calls the timer for each batch whose alarm rings.

    Args:
        timers: the alarms.
        handle: the timer, for a batch id.
        clock: tells which alarms are due.
        dead: collects the batches on which the timer failed too often.
    """

    def __init__(
        self, timers: MemoryTimers, handle: Callable[[int], object], clock: Clock, dead: list[Dead]
    ) -> None:
        self._timers = timers
        self._ringing: list[int] = []
        super().__init__("timer", self._ringing, handle, clock, dead)

    def due(self) -> int | None:
        return min((at for at in (super().due(), self._timers.next_at()) if at is not None), default=None)

    def run(self) -> bool:
        self._ringing += self._timers.ring(self.clock.now())
        return super().run()


@dataclass
class Rate:
    """Calls a function at a fixed rate.

    Attributes:
        name: of the function.
        every: ms between two calls.
        call: the function; if it raises, its next call is at the usual time.
        clock: tells the time.
        needed: when a call will next find something to do, ms; None if it will not. Earlier calls
            are skipped, so that a test passes a long time quickly.
    """

    name: str
    every: int
    call: Callable[[], object]
    clock: Clock
    needed: Callable[[], int | None]

    def __post_init__(self) -> None:
        self._next = self.clock.now() + self.every

    def due(self) -> int | None:
        needed = self.needed()
        if needed is None:
            return None
        left_out = -(-max(0, needed - self._next) // self.every)
        return self._next + left_out * self.every

    def run(self) -> bool:
        now = self.clock.now()
        if now < self._next:
            return False
        self._next += ((now - self._next) // self.every + 1) * self.every
        needed = self.needed()
        if needed is None or needed > now:
            return False
        try:
            self.call()
        except Exception:  # the next call sees to it
            logger.warning("%s failed and is called again at its rate", self.name, exc_info=True)
        return True


Call: TypeAlias = Callable[[], None]


class Bus:
    """Delivers events as the bus of a deployed service does, by its own rules and those of routes.

    Args:
        rules: the rules of routes.
        services: the use cases behind the router and the registrar.
        dead: collects events that the registrar cannot handle.

    Attributes:
        told: the events, in order, as subscribers get them.
        unrouted: events of others that no route sent on, or that nobody took.
        calls: the calls of functions that they trigger, in order.
    """

    def __init__(self, rules: MemoryRules, services: Services, dead: list[Dead]) -> None:
        self.told: list[Event] = []
        self.unrouted: list[Event] = []
        self.calls: list[Call] = []
        self._rules = rules
        self._services = services
        self._dead = dead

    def pass_on(self, event: Event) -> None:
        """Publish an event, and queue the calls that it triggers."""
        bus_id = f"event-{len(self.told) + 1}"
        detail = json.loads(json.dumps({**event.detail, "id": event.id} if event.id else event.detail))
        told = event._replace(id=event.id or bus_id, detail=detail)
        self.told.append(told)
        envelope = _envelope(told, bus_id)
        routing = self._services.routing
        for route in self._rules.matching(envelope):
            self.calls.append(partial(self._send, told, partial(routing.route, route, envelope)))
        if told.detail_type in names.INSTANCE_EVENTS:
            self.calls.append(partial(self._follow, told))
        elif told.source != names.EVENT_SOURCE:
            self.calls.append(partial(self._send, told, partial(routing.stray, envelope)))

    def _send(self, told: Event, send: Callable[[], Routed]) -> None:
        if send().unrouted:
            self.unrouted.append(told)

    def _follow(self, told: Event) -> None:
        try:
            self._services.directory.follow(told.detail_type, told.detail)
        except (InvalidRequest, ChannelRefused):
            self._dead.append(Dead("registrar", told))


def _envelope(event: Event, bus_id: str) -> dict[str, Any]:
    """An event as EventBridge delivers it."""
    return {
        "version": "0",
        "id": bus_id,
        "detail-type": event.detail_type,
        "source": event.source,
        "account": ACCOUNT,
        "time": encode_time(event.time),
        "region": REGION,
        "resources": [],
        "detail": event.detail,
    }
