"""Points in time and durations as people read them."""

from __future__ import annotations

import time
from typing import Final

from fanin.cli.listing import Value
from fanin.wire.json_types import encode_time

_UNITS: Final = ((86_400, "d"), (3_600, "h"), (60, "min"), (1, "s"))


def now_ms() -> int:
    """The time, in milliseconds since 1970."""
    return time.time_ns() // 1_000_000


def about(seconds: float, units: int = 2) -> str:
    """A duration in its largest units, such as ``2 h 5 min``."""
    left, parts = max(0, int(seconds)), []
    for size, name in _UNITS:
        count, left = divmod(left, size)
        if count:
            parts.append(f"{count} {name}")
        elif parts:
            break
    return " ".join(parts[:units]) or "0 s"


def relative(at: int, now: int) -> str:
    """A time as seen from now; both in milliseconds."""
    return f"in {about((at - now) / 1000)}" if at > now else f"{about((now - at) / 1000)} ago"


def age(at: int, now: int) -> Value:
    """A time: for people how long ago it was, for programs the time itself."""
    return Value(f"{about((now - at) / 1000, units=1)} ago", encode_time(at))


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
