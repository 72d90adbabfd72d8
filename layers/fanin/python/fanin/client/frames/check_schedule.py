"""When a repeater checks its frames: after waits that grow, or at once."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from fanin.adapters.backoff import Backoff


@dataclass(slots=True)
class _NextCheck:
    """When a frame is checked next.

    Attributes:
        due: on the repeater's clock, in seconds.
        attempt: how often the frame was checked before.
    """

    due: float
    attempt: int = 0


class CheckSchedule:
    """The frames that are not complete, and when each is checked next.

    Args:
        frames: ids of frames that are due now.
        backoff: waits between the checks of a frame, with jitter.
        clock: tells the time in seconds, monotonic.
    """

    def __init__(self, frames: Iterable[int], backoff: Backoff, clock: Callable[[], float]) -> None:
        self._backoff = backoff
        self._clock = clock
        self._next = {frame: _NextCheck(clock()) for frame in frames}

    def __len__(self) -> int:
        return len(self._next)

    def __contains__(self, frame_id: int) -> bool:
        return frame_id in self._next

    def add(self, frame_id: int) -> None:
        """Check a frame after the first wait, because it is sent now."""
        self._next[frame_id] = _NextCheck(self._after(0))

    def hasten(self, frame_id: int) -> None:
        """Check a frame at the next occasion."""
        self._next[frame_id] = _NextCheck(self._clock())

    def hasten_all(self) -> None:
        """Check all frames at the next occasion."""
        for frame_id in self._next:
            self.hasten(frame_id)

    def forget(self, frame_id: int) -> None:
        """Check a frame no more; an unknown frame is ignored."""
        self._next.pop(frame_id, None)

    def due(self) -> Iterator[int]:
        """Frames to check now; each is due again after its next wait."""
        for frame_id, check in list(self._next.items()):
            if check.due <= self._clock():
                check.attempt += 1
                check.due = self._after(check.attempt)
                yield frame_id

    def _after(self, attempt: int) -> float:
        return self._clock() + self._backoff.delay(attempt, self._backoff.base / 2)
