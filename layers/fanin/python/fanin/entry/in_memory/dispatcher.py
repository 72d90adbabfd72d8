"""Runs the work that is due: after each call of the service, and while time passes."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from inspect import ismethod
from itertools import count
from threading import Lock, RLock, get_ident, local
from typing import Final, TypeVar

from fanin.entry.in_memory.clock import PassingClock
from fanin.entry.in_memory.sources import Source

T = TypeVar("T")

_GLANCE: Final = 0.001  # seconds
_GLANCES: Final = 200
"""How often a thread that waits looks whether others still work, before it lets time pass all the same."""


class Dispatcher:
    """Runs the functions that its sources trigger, in the threads of those who call or wait.

    One thread at a time runs them. Another thread whose call has consequences meanwhile leaves them to it and
    returns, as it would on AWS.

    Args:
        clock: tells the time, and lets it pass.
    """

    def __init__(self, clock: PassingClock) -> None:
        self._clock = clock
        self._sources: tuple[Source, ...] = ()
        self._lock = RLock()
        self._running = False
        self._tickets = count(1)
        self._latest = 0
        self._thread = local()
        self._busy = 0
        self._counting = Lock()
        self._until: dict[int, int] = {}

    def add(self, *sources: Source) -> None:
        """Add sources; those added first go first."""
        self._sources += sources

    def after_each_call(self, service: T) -> T:
        """Make each public method of an object run what is due before it, and what follows after it."""
        for name in dir(service):
            if not name.startswith("_") and ismethod(method := getattr(service, name)):
                setattr(service, name, self.call()(method))
        return service

    @contextmanager
    def call(self) -> Iterator[None]:
        """Surround a call. A call within another one runs nothing: the outer call is not finished yet."""
        if getattr(self._thread, "calling", False):
            yield
            return
        self.settle()
        self._thread.calling = True
        self._count(1)
        try:
            yield
        finally:
            self._count(-1)
            self._thread.calling = False
            self.settle()

    def settle(self) -> None:
        """Run everything that is due, unless it is being run already: then that run includes it."""
        self._latest = next(self._tickets)
        while self._lock.acquire(blocking=False):
            try:
                if self._running:
                    return  # further up in this thread's stack
                seen = self._latest
                self._run()
            finally:
                self._lock.release()
            if seen == self._latest:
                return  # else another thread came while the lock was held, and left its work here

    def wait(self, seconds: float, ready: Callable[[], bool] = lambda: False) -> None:
        """Let time pass, and run in order what is due meanwhile.

        Time passes when all threads wait, and then no further than until the first of them goes on: a thread
        that works must not find that its leases are over. A thread that is busy for long is not waited for,
        since it may be waiting for this one.

        Args:
            seconds: how long to wait.
            ready: ends the wait early.
        """
        until = self._clock.now() + round(seconds * 1000)
        calling = int(getattr(self._thread, "calling", False))
        self._count(-calling)
        outer = self._until.get(get_ident())
        self._until[get_ident()] = until
        try:
            while not ready():
                due = self._catch_up()
                now = self._clock.now()
                if now >= until or ready():
                    return
                self._let_others_work()
                first = min(at for at in list(self._until.values()) if at > now)
                self._clock.pass_until(first if due is None else min(first, max(now, due)))
        finally:
            if outer is None:
                del self._until[get_ident()]
            else:
                self._until[get_ident()] = outer
            self._count(calling)

    def _count(self, busy: int) -> None:
        with self._counting:
            self._busy += busy

    def _let_others_work(self) -> None:
        for _ in range(_GLANCES):
            if self._busy <= 0:
                return
            time.sleep(_GLANCE)

    def _catch_up(self) -> int | None:
        """Run everything that is due, even within a function that waits.

        Returns:
            When more work is due, ms; None if none is scheduled, or another thread runs it.
        """
        if not self._lock.acquire(blocking=False):
            return None
        try:
            self._run()
            return min((at for source in self._sources if (at := source.due()) is not None), default=None)
        finally:
            self._lock.release()

    def _run(self) -> None:
        before, self._running = self._running, True
        try:
            while any(source.run() for source in self._sources):
                pass
        finally:
            self._running = before
