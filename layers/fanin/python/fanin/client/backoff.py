"""Waiting before another try."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True)
class Backoff:
    """Exponential backoff with full jitter, so that callers who failed together do not return together.

    See "Exponential Backoff And Jitter", AWS Architecture Blog, 2015. Clock and chance are arguments, so
    that tests wait for nothing.

    Attributes:
        first: upper bound of the first wait, seconds; it doubles with each attempt.
        most: upper bound of any wait, seconds, also of one the service asks for.
        sleep: waits that many seconds.
        chance: gives a number from 0 to 1.
    """

    first: float = 0.1
    most: float = 20.0
    sleep: Callable[[float], None] = time.sleep
    chance: Callable[[], float] = random.random

    def delay(self, attempt: int, at_least: float | None = None) -> float:
        """Seconds to wait after the given attempt (0 is the first), no less than the service asked for."""
        drawn = min(self.most, self.first * (1 << min(attempt, 32))) * self.chance()
        return min(self.most, max(drawn, at_least or 0.0))

    def wait(self, attempt: int, at_least: float | None = None) -> None:
        self.sleep(self.delay(attempt, at_least))
