"""Stopping a producer in the middle of its messages, so that it can go on later and send none twice."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Final, TypeVar

T = TypeVar("T")

_GLANCE: Final = 0.5
"""Seconds after which a wait looks whether it is to stop."""


class Stop:
    """Asks a running ``TrackedBatch.send`` to stop, and says how far it came.

    ``send`` finishes the requests that are under way. Then every message before ``position`` is settled: the
    queue has it, or has refused it, or its item was done before. None after it was sent.

    Args:
        skip: messages that an earlier call has settled; they get the same items, and are not sent.

    Attributes:
        asked: set it, from any thread or a signal handler, to stop.
        position: how many messages from the first on are settled, once ``send`` has returned.
    """

    def __init__(self, skip: int = 0) -> None:
        self.asked = False
        self.position = 0
        self._skip = skip

    def until(self, messages: Iterable[tuple[T, bool]]) -> Iterator[T]:
        """The messages that are to be sent, until the stop.

        Args:
            messages: each with whether it is settled, and needs no sending.
        """
        for message, settled in messages:
            if self.asked:
                return
            self.position += 1
            if not settled:
                yield message

    def wait(self, seconds: float, sleep: Callable[[float], None]) -> None:
        """Wait, but not much longer than until the stop.

        Args:
            seconds: how long.
            sleep: waits so many seconds. A signal handler does not cut it short: Python sleeps on (PEP 475).
        """
        while seconds > 0 and not self.asked:
            sleep(min(seconds, _GLANCE))
            seconds -= _GLANCE

    def skipped(self, number: int) -> bool:
        """Whether an earlier call has settled the message with this number, counted from 0."""
        return number < self._skip
