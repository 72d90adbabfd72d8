"""How much time the invocation in progress has left for work."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from typing import Final

from fanin.adapters.aws import LONGEST_ATTEMPT

_ANSWER: Final = 2
"""Seconds in which a function answers: it postpones messages, and writes its metrics."""
RESERVE: Final = float(LONGEST_ATTEMPT + _ANSWER)
"""Seconds at the end in which no request to the tables begins: the one in progress ends, the answer is sent.

API Gateway answers after 30 seconds, whatever the function does; so does the timeout of most functions. Of a
shorter invocation it is a third, since something must be done at all.
"""


class Invocation:
    """The invocation in progress; a process has one at a time.

    Args:
        now: tells the time in seconds, from any start.
    """

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self._now = now
        self._until = math.inf

    def begin(self, remaining: float) -> None:
        """Note that an invocation has begun.

        Args:
            remaining: seconds until Lambda ends it.
        """
        self._until = self._now() + remaining - min(RESERVE, remaining / 3)

    def end(self) -> None:
        """Note that the invocation has ended."""
        self._until = math.inf

    def seconds_left(self) -> float:
        """Seconds in which work may begin; infinite outside of an invocation, 0 or less if it is over."""
        return self._until - self._now()


INVOCATION: Final = Invocation()
"""The invocation in progress in this process."""
