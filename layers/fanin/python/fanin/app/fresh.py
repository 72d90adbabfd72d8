"""A small cache whose values count for half a minute."""

from threading import Lock
from typing import Final, Generic, TypeVar

from fanin.app.ports.system import Clock
from fanin.domain.latest import Latest

FRESH_MS: Final = 30_000
"""How long a process works with what it remembers, unless it has a reason to look again."""
_MOST: Final = 1_000

K = TypeVar("K")
V = TypeVar("V")


class Fresh(Generic[K, V]):
    """Remembers values by key, each until it is no longer fresh, the last thousand; safe to use from threads.

    Args:
        clock: tells the age of a value.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._values = Latest[K, tuple[int, V]](_MOST)
        self._lock = Lock()

    def get(self, key: K) -> V | None:
        """The value, if it is remembered and fresh."""
        at, value = self._values.get(key, (0, None))
        return value if self._clock.now() - at < FRESH_MS else None

    def remember(self, key: K, value: V) -> V:
        """Remember a value from now on, and return it."""
        with self._lock:
            self._values[key] = self._clock.now(), value
        return value

    def forget(self, key: K) -> None:
        """Forget a value, if it is remembered."""
        with self._lock:
            self._values.pop(key, None)
