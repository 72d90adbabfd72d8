"""A small cache whose values expire after a fixed time."""

from __future__ import annotations

from threading import Lock
from typing import Final, Generic, TypeVar

from fanin.app.ports.system import Clock

FRESH_MS: Final = 30_000
"""How long a process works with what it remembers, unless it has a reason to look again."""

K = TypeVar("K")
V = TypeVar("V")


class Fresh(Generic[K, V]):
    """Remembers values by key, each until it is no longer fresh; safe to use from threads.

    Args:
        clock: tells the age of a value.
        fresh_ms: age from which a value no longer counts.
    """

    def __init__(self, clock: Clock, *, fresh_ms: int = FRESH_MS) -> None:
        self._clock = clock
        self._fresh_ms = fresh_ms
        self._values: dict[K, tuple[int, V]] = {}
        self._lock = Lock()

    def get(self, key: K) -> V | None:
        """The value, if it is remembered and fresh; a stale one is forgotten."""
        with self._lock:
            known = self._values.get(key)
            if known is None:
                return None
            at, value = known
            if self._clock.now() - at >= self._fresh_ms:
                del self._values[key]
                return None
            return value

    def remember(self, key: K, value: V) -> V:
        """Remember a value from now on, and return it."""
        with self._lock:
            self._values[key] = self._clock.now(), value
        return value

    def forget(self, key: K) -> None:
        """Forget a value, if it is cached."""
        with self._lock:
            self._values.pop(key, None)
