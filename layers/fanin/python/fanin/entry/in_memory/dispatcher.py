"""Runs the work that is due: after each call of the service, and while time passes."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from itertools import count
from threading import RLock, local
from typing import Any, TypeVar

from fanin.entry.in_memory.clock import PassingClock
from fanin.entry.in_memory.sources import Source

T = TypeVar("T")


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

    def add(self, *sources: Source) -> None:
        """Add sources; those added first go first."""
        self._sources += sources

    def after_each_call(self, service: T) -> T:
        """Make each public method of an object run what is due before it, and what follows after it."""
        for name, method in inspect.getmembers(service, inspect.ismethod):
            if not name.startswith("_"):
                setattr(service, name, self._within_call(method))
        return service

    def _within_call(self, method: Callable[..., T]) -> Callable[..., T]:
        @wraps(method)
        def within(*arguments: Any, **options: Any) -> T:
            with self.call():
                return method(*arguments, **options)

        return within

    @contextmanager
    def call(self) -> Iterator[None]:
        """Surround a call. A call within another one runs nothing: the outer call is not finished yet."""
        if getattr(self._thread, "calling", False):
            yield
            return
        self.settle()
        self._thread.calling = True
        try:
            yield
        finally:
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

        Args:
            seconds: how long to wait.
            ready: ends the wait early.
        """
        until = self._clock.now() + round(seconds * 1000)
        while not ready():
            due = self._catch_up()
            now = self._clock.now()
            if now >= until or ready():
                return
            self._clock.pass_until(until if due is None else min(until, max(now, due)))

    def _catch_up(self) -> int | None:
        """Run everything that is due, even within a function that waits.

        Returns:
            When more work is due, ms; None if none is scheduled, or another thread runs it.
        """
        if not self._lock.acquire(blocking=False):
            return None
        running = self._running
        try:
            self._run()
            return min((at for source in self._sources if (at := source.due()) is not None), default=None)
        finally:
            self._running = running
            self._lock.release()

    def _run(self) -> None:
        self._running = True
        try:
            while any(source.run() for source in self._sources):
                pass
        finally:
            self._running = False
