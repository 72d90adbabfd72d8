"""Waiting between tries of a call."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass


@dataclass(frozen=True)
class Backoff:
    """Exponential backoff with full jitter, so that callers who failed together do not return together.

    See "Exponential Backoff And Jitter", AWS Architecture Blog, 2015. Sleeping and randomness are arguments,
    so that tests do not wait.

        >>> waits = []
        >>> backoff = Backoff(tries=4, base=1, cap=3, sleep=waits.append, fraction=lambda: 0.5)
        >>> [attempt for attempt in backoff], waits
        ([0, 1, 2, 3], [0.5, 1.0, 1.5])

    Attributes:
        tries: how often iteration lets the caller try.
        base: upper bound of the first wait, in seconds; it doubles with each attempt.
        cap: upper bound of any wait, in seconds, including one that the service asks for.
        sleep: waits the given number of seconds.
        fraction: draws a number from 0 to 1.
    """

    tries: int = 10
    base: float = 0.02
    cap: float = 1.0
    sleep: Callable[[float], None] = time.sleep
    fraction: Callable[[], float] = random.random

    def __iter__(self) -> Iterator[int]:
        """Count the tries from 0, waiting before each except the first."""
        yield 0
        for attempt in range(1, self.tries):
            self.wait(attempt - 1)
            yield attempt

    def delay(self, attempt: int, at_least: float | None = None) -> float:
        """Draw how long to wait after a failed attempt, in seconds.

        Args:
            attempt: the attempt that failed; 0 is the first.
            at_least: seconds that the service asked for, as in ``Retry-After``.
        """
        drawn = min(self.cap, self.base * (1 << min(attempt, 32))) * self.fraction()
        return min(self.cap, max(drawn, at_least or 0.0))

    def wait(self, attempt: int, at_least: float | None = None) -> None:
        """Sleep for ``delay(attempt, at_least)``."""
        self.sleep(self.delay(attempt, at_least))
