"""What sets functions off in memory, in the place of streams, alarms and rates."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import Final, Generic, NamedTuple, Protocol, TypeVar

from fanin.adapters.memory import MemoryTimers
from fanin.app.ports.system import Clock

logger = logging.getLogger("fanin")

T = TypeVar("T")
TRIES: Final = 10
"""How often a record is tried; then it is a dead letter."""
PAUSE_MS: Final = 180_000
"""Time between two tries of a record but the first two, which follow at once: six runs of a function."""


class Source(Protocol):
    """Has work for a function, now or later."""

    def due(self) -> int | None:
        """When there is work next, ms, or a time that is over; None if nothing is known to come."""
        ...

    def run(self) -> bool:
        """Do one piece of the work that is due; False if there is none."""
        ...


class Dead(NamedTuple):
    """A record, message or event that nobody could handle; on AWS an alarm would tell.

    Attributes:
        where: whose it was, such as ``notifier``.
        what: the record.
    """

    where: str
    what: object


class Feed(Generic[T]):
    """Hands a function what arrives, in order. What fails holds up nothing behind it and is tried again.

    Args:
        name: of the function.
        arrivals: grows at its end.
        handle: the function, for one record; whatever it raises, the record comes again.
        clock: tells when.
        dead: takes the records that failed too often.
    """

    def __init__(
        self, name: str, arrivals: Sequence[T], handle: Callable[[T], object], clock: Clock, dead: list[Dead]
    ) -> None:
        self._name = name
        self._arrivals = arrivals
        self._handle = handle
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
            self._handle(record)
        except Exception:  # whatever it is, the records behind must go on
            logger.warning("%s failed and is called again", self._name, exc_info=True)
            if tries + 1 == TRIES:
                self._dead.append(Dead(self._name, record))
            else:
                self._again.append((self._clock.now() + (PAUSE_MS if tries else 0), tries + 1, record))


class Alarms(Feed[int]):
    """Hands the timer the batches whose alarms ring.

    Args:
        timers: the alarms.
        handle: the timer, for a batch id.
        clock: tells what rings.
        dead: takes the batches that the timer failed on too often.
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
    """Calls a function again and again.

    Args:
        name: of the function.
        every: ms between two calls.
        call: the function; what it raises is forgotten until its next call.
        clock: tells the time.
        needed: when a call next finds something to do, ms; None if that is not in sight. Calls before then
            are left out, so that a long time passes fast.
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
