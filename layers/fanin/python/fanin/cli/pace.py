"""How fast a batch goes, from looks at it now and then."""

from __future__ import annotations

from collections import deque


class Pace:
    """The rate over a sliding window, so that a pause or a spurt shows soon.

    Args:
        window: seconds.
    """

    def __init__(self, window: float = 30.0) -> None:
        self._window = window
        self._looks: deque[tuple[float, int]] = deque()

    def saw(self, at: float, done: int) -> None:
        """Record a look: how many were done at a time in seconds, ascending."""
        self._looks.append((at, done))
        while len(self._looks) > 2 and at - self._looks[1][0] >= self._window:  # noqa: PLR2004 - a line has two ends
            self._looks.popleft()

    @property
    def rate(self) -> float | None:
        """Items a second; None before there are two looks at different times."""
        if not self._looks:
            return None
        (since, before), (at, done) = self._looks[0], self._looks[-1]
        return (done - before) / (at - since) if at > since else None

    def left(self, items: int) -> float | None:
        """Seconds until so many more are done; None while nothing moves."""
        rate = self.rate
        return items / rate if rate else None
