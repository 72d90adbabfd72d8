"""Points in time, durations and rates as people read them."""

import time
from collections import deque

from fanin.cli.listing import Value
from fanin.wire.json_types import encode_time
from fanin.wire.typed import duration


def now_ms() -> int:
    """The time, in milliseconds since 1970."""
    return time.time_ns() // 1_000_000


def relative(at: int, now: int) -> str:
    """A time as seen from now; both in milliseconds."""
    return f"in {duration((at - now) / 1000)}" if at > now else f"{duration((now - at) / 1000)} ago"


def age(at: int, now: int) -> Value:
    """A time: for people how long ago it was, for programs the time itself."""
    return Value(f"{duration((now - at) / 1000, units=1)} ago", encode_time(at))


def when(at: int | None, now: int, note: str = "") -> Value | None:
    """A time and how far from now it is; None without one.

    Args:
        at: the time, in milliseconds since 1970.
        now: the present, likewise.
        note: what people should know about it.
    """
    return None if at is None else Value(f"{encode_time(at)} ({relative(at, now)}{note})", encode_time(at))


def clock(seconds: float) -> str:
    """A duration as a clock shows it: ``0:07`` or ``2:02:05``."""
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


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
