"""The rate at which a batch makes progress, estimated from samples of what is done."""

from __future__ import annotations

from collections import deque


class Pace:
    """The rate over a sliding window, so that a change of pace shows soon.

    Args:
        window: length of the window in seconds.
    """

    def __init__(self, window: float = 30.0) -> None:
        self._window = window
        self._samples: deque[tuple[float, int]] = deque()

    def record(self, at: float, done: int) -> None:
        """Add a sample.

        Args:
            at: when it was taken, in seconds of a clock that never goes back.
            done: number of items that were done.
        """
        self._samples.append((at, done))
        while len(self._samples) > 2 and at - self._samples[1][0] >= self._window:  # noqa: PLR2004 - a rate needs two
            self._samples.popleft()

    @property
    def rate(self) -> float | None:
        """Items per second; None before there are two samples of different times."""
        if not self._samples:
            return None
        (since, before), (at, done) = self._samples[0], self._samples[-1]
        return (done - before) / (at - since) if at > since else None

    def seconds_left(self, items: int) -> float | None:
        """Seconds until this many more items are done; None while the rate is zero or unknown."""
        rate = self.rate
        return items / rate if rate else None
