"""How much time the invocation in progress has left for work."""

import math
import time
from collections.abc import Callable
from typing import Final

from fanin.adapters.aws import LONGEST_ATTEMPT

RESERVE: Final = 10.0
"""Seconds at the end in which no new work begins: what follows from the work in progress is written.

API Gateway answers after 30 seconds, whatever the function does; so does the timeout of most functions. Of a
shorter invocation it is a third, since something must be done at all.
"""
ANSWER: Final = 1
"""Seconds in which a function answers: it postpones messages, and writes its metrics."""
REQUEST_RESERVE: Final = float(LONGEST_ATTEMPT + ANSWER)
"""Seconds at the end in which no request to the tables begins at all, so that the last one ends in time.

It is less than ``RESERVE``: a take from a buffer, which waits for twenty seconds, can still read its items.
"""


class Invocation:
    """The invocation in progress; a process has one at a time.

    Args:
        now: tells the time in seconds, from any start.
    """

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self._now = now
        self._until = self._requests_until = math.inf

    def begin(self, remaining: float) -> None:
        """Note that an invocation has begun.

        Args:
            remaining: seconds until Lambda ends it.
        """
        end = self._now() + remaining
        self._until = end - min(RESERVE, remaining / 3)
        self._requests_until = end - min(REQUEST_RESERVE, remaining / 3)

    def end(self) -> None:
        """Note that the invocation has ended."""
        self._until = self._requests_until = math.inf

    def seconds_left(self) -> float:
        """Seconds in which work may begin; infinite outside of an invocation, 0 or less if it is over."""
        return self._until - self._now()

    def seconds_for_requests(self) -> float:
        """Seconds in which a request may begin that follows from earlier work; infinite or over likewise."""
        return self._requests_until - self._now()


INVOCATION: Final = Invocation()
"""The invocation in progress in this process."""
