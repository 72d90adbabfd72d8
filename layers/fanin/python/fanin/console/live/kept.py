"""What is kept for a while between requests: so many things, and of more those that were used last."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Any, Final

KEPT: Final = 64
"""How many things are kept; of what is not used for longest, nothing is."""


class Kept:
    """Things by their keys. Threads share it.

    Args:
        most: how many are kept.
    """

    def __init__(self, most: int = KEPT) -> None:
        self._most = most
        self._things: OrderedDict[Hashable, Any] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, key: Hashable, make: Callable[[], Any]) -> Any:
        """What is kept under a key; made now if nothing is."""
        with self._lock:
            if key not in self._things:
                self._things[key] = make()
            self._things.move_to_end(key)
            while len(self._things) > self._most:
                self._things.popitem(last=False)
            return self._things[key]

    def __len__(self) -> int:
        return len(self._things)
