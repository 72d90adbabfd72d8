"""Threads for several calls at a time."""

from __future__ import annotations

from collections.abc import Callable, Collection
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

from fanin.adapters.forks import closed_in_children

T = TypeVar("T")


class Threads:
    """Makes calls in threads, which are started when first needed, and anew in a process that is forked.

    Args:
        most: how many calls may run at a time.
        name: of the threads.
    """

    def __init__(self, most: int, name: str) -> None:
        self._most = most
        self._name = f"fanin-{name}"
        self._pool: ThreadPoolExecutor | None = None
        closed_in_children(self)

    def map(self, call: Callable[..., T], *arguments: Collection[Any]) -> list[T]:
        """Call for every argument, in threads if there are several; the first error cancels the rest."""
        if self._most == 1 or len(arguments[0]) <= 1:
            return list(map(call, *arguments))
        pool = self._pool = self._pool or ThreadPoolExecutor(self._most, thread_name_prefix=self._name)
        return list(pool.map(call, *arguments))

    def close(self) -> None:
        """Let the threads go; the next call starts others."""
        self._pool = None
