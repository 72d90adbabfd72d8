"""A cache between requests, of a bounded size: the least recently used entry makes room for another."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Any, Final

ENTRIES: Final = 64
"""How many entries a cache has at most."""


class Cache:
    """Values by their keys. Threads share it.

    Args:
        most: how many entries it has at most.
    """

    def __init__(self, most: int = ENTRIES) -> None:
        self._most = most
        self._values: OrderedDict[Hashable, Any] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, key: Hashable, make: Callable[[], Any]) -> Any:
        """The value of a key; made now if there is none."""
        with self._lock:
            if key not in self._values:
                self._values[key] = make()
            self._values.move_to_end(key)
            while len(self._values) > self._most:
                self._values.popitem(last=False)
            return self._values[key]

    def __len__(self) -> int:
        return len(self._values)
