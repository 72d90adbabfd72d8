"""Threads for several calls at a time, in each process that makes such calls."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final, TypeVar

T = TypeVar("T")


class Threads:
    """Makes calls in threads, which are started when first needed.

    A process that is forked has none of its parent's threads, and would wait for them for ever. So it starts
    its own.

    Args:
        most: how many calls may run at a time.
        name: of the threads.
    """

    def __init__(self, most: int, name: str) -> None:
        self._most: Final = most
        self._name: Final = f"fanin-{name}"
        self._started: tuple[int, ThreadPoolExecutor] | None = None

    def map(self, call: Callable[..., T], *arguments: Iterable[Any]) -> list[T]:
        """Call for every argument; the first error cancels the rest."""
        started, process = self._started, os.getpid()
        if started is None or started[0] != process:
            started = self._started = process, ThreadPoolExecutor(self._most, thread_name_prefix=self._name)
        return list(started[1].map(call, *arguments))
