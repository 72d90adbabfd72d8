"""The time as the library takes it, so that a test can hand it another."""

from __future__ import annotations

from typing import Protocol


class Clock(Protocol):
    """Tells the time, and waits. ``SystemClock`` is the machine's."""

    def now(self) -> int:
        """Milliseconds since the epoch."""
        ...

    def monotonic(self) -> float:
        """Seconds from any beginning, never going back."""
        ...

    def sleep(self, seconds: float) -> None:
        """Wait."""
        ...
