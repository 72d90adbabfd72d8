"""The time of a service in memory: it stands until somebody waits, or it is the machine's."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final, Protocol

from fanin.adapters.memory import FixedClock
from fanin.adapters.system import SystemClock
from fanin.app.ports.system import Clock

_GLANCE: Final = 0.05
"""Seconds after which somebody who waits in real time looks again whether what they wait for has come."""


class PassingClock(Clock, Protocol):
    """A clock, and a way to let its time pass."""

    def pass_until(self, at: int) -> None:
        """Let time pass, until then at the latest.

        Args:
            at: ms; a time that is over changes nothing.
        """
        ...


class StandingClock(FixedClock):
    """A clock of which no time passes but what somebody waits for."""

    def pass_until(self, at: int) -> None:
        """Be there at once."""
        self.at = max(self.at, at)


class RealClock(SystemClock):
    """The machine's clock."""

    def pass_until(self, at: int) -> None:
        """Sleep for a moment."""
        time.sleep(max(0.0, min(_GLANCE, (at - self.now()) / 1000)))


class ServiceClock:
    """The clock of everybody who uses a service in memory: whoever sleeps lets its time pass.

    Args:
        clock: tells the time.
        wait: lets so many seconds pass, with everything that happens in them.
    """

    def __init__(self, clock: Clock, wait: Callable[[float], None]) -> None:
        self._clock = clock
        self._wait = wait

    def now(self) -> int:
        """Milliseconds since the epoch."""
        return self._clock.now()

    def seconds(self) -> float:
        """Seconds since the epoch, in the place of ``time.time``."""
        return self._clock.now() / 1000

    def monotonic(self) -> float:
        """The same, in the place of ``time.monotonic``."""
        return self.seconds()

    def sleep(self, seconds: float) -> None:
        """Let time pass, in the place of ``time.sleep``."""
        self._wait(seconds)
