"""The machine: its time, and its randomness."""

from __future__ import annotations

from typing import Protocol


class Clock(Protocol):
    def now(self) -> int:
        """Milliseconds since the epoch."""
        ...


class Random(Protocol):
    def bits(self, n: int) -> int:
        """A random integer of n bits."""
        ...

    def bytes(self, n: int) -> bytes:
        """Return ``n`` unpredictable bytes."""
        ...
