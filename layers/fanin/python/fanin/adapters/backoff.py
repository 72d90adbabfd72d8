"""Waiting between tries of a call."""

import random
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TypeVar

from fanin.errors import FaninError, ServiceUnavailable, Throttled

_T = TypeVar("_T")


@dataclass(frozen=True)
class Backoff:
    """Exponential backoff with full jitter, so that callers who failed together do not return together.

    See "Exponential Backoff And Jitter", AWS Architecture Blog, 2015. Sleeping, randomness and the clock are
    arguments, so that tests do not wait.

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
        clock: seconds, from any moment on.
    """

    tries: int = 10
    base: float = 0.02
    cap: float = 1.0
    sleep: Callable[[float], None] = time.sleep
    fraction: Callable[[], float] = random.random
    clock: Callable[[], float] = time.monotonic

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

    def patiently(self, call: Callable[[], _T], seconds: float) -> _T:
        """Call, and call again what a busy service refuses or does not answer.

        A call may wait for the service itself, so the clock counts, and not only the tries.

        Args:
            call: can be repeated.
            seconds: for which it is repeated, from the first failure on; 0 for not at all.

        Raises:
            Throttled, ServiceUnavailable: the time is up, or all tries are used.
        """
        refused: FaninError | None = None
        until = 0.0
        for _ in self:
            try:
                return call()
            except (Throttled, ServiceUnavailable) as error:
                until = until if refused else self.clock() + seconds
                refused = error
                if self.clock() >= until:
                    break
        assert refused  # noqa: S101 - at least one try has failed
        raise refused
