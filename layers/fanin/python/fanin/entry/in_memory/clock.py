"""The clocks of a service in memory: one that moves only when code waits, and the machine's."""

import time
from collections.abc import Callable
from typing import Final, Protocol

from fanin.adapters.memory import FixedClock
from fanin.adapters.system import SystemClock
from fanin.app.ports.system import Clock

_GLANCE: Final = 0.05
"""Seconds between two checks of whether what is waited for has come, in real time."""


class PassingClock(Clock, Protocol):
    """A clock, and a way to let its time pass."""

    def pass_until(self, at: int) -> None:
        """Let time pass, at most until ``at``.

        Args:
            at: ms; nothing happens if it is in the past.
        """


class StandingClock(FixedClock):
    """A clock that moves only when somebody waits."""

    def pass_until(self, at: int) -> None:
        """Jump there."""
        self.at = max(self.at, at)


class RealClock(SystemClock):
    """The machine's clock."""

    def pass_until(self, at: int) -> None:
        """Sleep for a moment."""
        time.sleep(max(0.0, min(_GLANCE, (at - self.now()) / 1000)))


class ServiceClock:
    """The clock for users of a service in memory: sleeping moves it, and runs what is due meanwhile.

    Args:
        clock: tells the time.
        wait: lets so many seconds pass.
    """

    def __init__(self, clock: Clock, wait: Callable[[float], None]) -> None:
        self._clock = clock
        self._wait = wait

    def now(self) -> int:
        """Milliseconds since the epoch."""
        return self._clock.now()

    def seconds(self) -> float:
        """Seconds since the epoch; replaces ``time.time``."""
        return self._clock.now() / 1000

    def monotonic(self) -> float:
        """The same; replaces ``time.monotonic``."""
        return self.seconds()

    def sleep(self, seconds: float) -> None:
        """Let time pass; replaces ``time.sleep``."""
        self._wait(seconds)
