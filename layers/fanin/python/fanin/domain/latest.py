"""What a process remembers, of which only so much is kept."""

from typing import TypeVar

K = TypeVar("K")
V = TypeVar("V")


class Latest(dict[K, V]):
    """The entries that were written last; whoever shares one between threads locks it.

    Args:
        most: number of entries that are kept.
    """

    def __init__(self, most: int) -> None:
        super().__init__()
        self._most = most

    def __setitem__(self, key: K, value: V) -> None:
        self.pop(key, None)  # so that the oldest stand first
        super().__setitem__(key, value)
        while len(self) > self._most:
            del self[next(iter(self))]
