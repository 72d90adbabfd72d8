"""The clock that the library waits by, so that a test can pass one that it moves."""

from __future__ import annotations

from typing import Protocol


class WaitingClock(Protocol):
    """Tells the time, and waits. ``SystemClock`` is the machine's clock."""

    def now(self) -> int:
        """The time in milliseconds since the epoch."""
        ...

    def monotonic(self) -> float:
        """Seconds since some fixed moment; never less than before."""
        ...

    def sleep(self, seconds: float) -> None:
        """Wait for ``seconds``."""
        ...
