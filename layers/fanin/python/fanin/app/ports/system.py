"""The machine: its time, its randomness, and its alarms."""

from typing import Protocol


class Clock(Protocol):
    def now(self) -> int:
        """Milliseconds since the epoch."""


class Random(Protocol):
    def bits(self, n: int) -> int:
        """A random integer of n bits."""

    def bytes(self, n: int) -> bytes:
        """Return ``n`` unpredictable bytes."""


class Timers(Protocol):
    """One-time alarms that call the timer function with a batch id."""

    def check(self) -> None:
        """Do nothing, if alarms can be set at all; called before anything is written that needs one.

        Raises:
            NotConfigured: a setting of the alarms is missing.
        """

    def set(self, batch_id: int, at: int) -> None:
        """Set the alarm of a batch, ``at`` in ms; setting it again moves it."""

    def clear(self, batch_id: int) -> None:
        """Delete the alarm of a batch, if it has one."""
