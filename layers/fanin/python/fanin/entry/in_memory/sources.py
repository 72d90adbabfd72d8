"""What triggers functions in memory: the counterparts of streams, alarms, rates and the rules of the bus."""

import json
import logging
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, Generic, NamedTuple, Protocol, TypeAlias, TypeVar

from fanin import names
from fanin.adapters.memory import MemoryRules, MemoryTimers
from fanin.adapters.memory.sqs.queue import ACCOUNT, REGION
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


class Feed(Generic[T]):
    """Hands records to a function, in order. One that fails is tried again, and does not hold up the others.

    Args:
        name: of the function.
        arrivals: the records; the list grows at its end.
        handle: the function, for one record; if it raises, the record is tried again.
        clock: tells when the next try is due.
        dead: collects the records that failed too often.
        retry: the function, for a record that failed before; by default the same.
    """

    def __init__(
        self,
        name: str,
        arrivals: Sequence[T],
        handle: Callable[[T], object],
        clock: Clock,
        dead: list[Dead],
        *,
        retry: Callable[[T], object] | None = None,
    ) -> None:
        self._name = name
        self._arrivals = arrivals
        self._handle = handle
        self._retry = retry or handle
        self._clock = clock
        self._dead = dead
        self._seen = 0
        self._again: list[tuple[int, int, T]] = []  # when to try it next, how often it was, the record

    def due(self) -> int | None:
        if self._seen < len(self._arrivals):
            return self._clock.now()
        return min((at for at, _, _ in self._again), default=None)

    def run(self) -> bool:
        now = self._clock.now()
        for place, (at, tries, record) in enumerate(self._again):
            if at <= now:
                del self._again[place]
                self._try(record, tries)
                return True
        if self._seen == len(self._arrivals):
            return False
        self._seen += 1
        self._try(self._arrivals[self._seen - 1], 0)
        return True

    def _try(self, record: T, tries: int) -> None:
        try:
            (self._retry if tries else self._handle)(record)
        except Exception:  # whatever it is, the records behind must go on
            logger.warning("%s failed and is called again", self._name, exc_info=True)
            if tries + 1 == TRIES:
                self._dead.append(Dead(self._name, record))
            else:
                self._again.append((self._clock.now() + (PAUSE_MS if tries else 0), tries + 1, record))
        except BaseException:  # the process ends, and the record was not handled
            self._again.append((self._clock.now(), tries, record))
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
        self._ringing += self._timers.ring(self._clock.now())
        return super().run()


class Rate:
    """Calls a function at a fixed rate.

    Args:
        name: of the function.
        every: ms between two calls.
        call: the function; if it raises, its next call is at the usual time.
        clock: tells the time.
        needed: when a call will next find something to do, ms; None if it will not. Earlier calls
            are skipped, so that a test passes a long time quickly.
    """

    def __init__(
        self,
        name: str,
        every: int,
        call: Callable[[], object],
        clock: Clock,
        needed: Callable[[], int | None],
    ) -> None:
        self._name = name
        self._every = every
        self._call = call
        self._clock = clock
        self._needed = needed
        self._next = clock.now() + every

    def due(self) -> int | None:
        needed = self._needed()
        if needed is None:
            return None
        left_out = -(-max(0, needed - self._next) // self._every)
        return self._next + left_out * self._every

    def run(self) -> bool:
        now = self._clock.now()
        if now < self._next:
            return False
        self._next += ((now - self._next) // self._every + 1) * self._every
        needed = self._needed()
        if needed is None or needed > now:
            return False
        try:
            self._call()
        except Exception:  # the next call sees to it
            logger.warning("%s failed and is called again at its rate", self._name, exc_info=True)
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
        for route in self._rules.matching(envelope):
            self.calls.append(lambda route=route: self._route(route, told, envelope))  # type: ignore[misc]
        if told.detail_type in names.INSTANCE_EVENTS:
            self.calls.append(lambda: self._follow(told))
        elif told.source != names.EVENT_SOURCE:
            self.calls.append(lambda: self._stray(told, envelope))

    def _route(self, route: str, told: Event, envelope: Mapping[str, Any]) -> None:
        if self._services.routing.route(route, envelope).unrouted:
            self.unrouted.append(told)

    def _stray(self, told: Event, envelope: Mapping[str, Any]) -> None:
        if self._services.routing.stray(envelope).unrouted:
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
