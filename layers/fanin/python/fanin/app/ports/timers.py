"""What the use cases need of the scheduler of alarms."""

from __future__ import annotations

from typing import Protocol


class Timers(Protocol):
    """One-time alarms that call the timer function with a batch id."""

    def set(self, batch_id: int, at: int) -> None:
        """Set the alarm of a batch, ``at`` in ms; setting it again is no error."""
        ...

    def clear(self, batch_id: int) -> None:
        """Delete it; none being there is no error."""
        ...
