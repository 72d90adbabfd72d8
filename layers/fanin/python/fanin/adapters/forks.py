"""What a process that is forked does not share with its parent: connections, and threads."""

import os
from collections.abc import Callable, Collection
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final, TypeVar
from weakref import WeakSet

T = TypeVar("T")
_OPEN: Final[WeakSet[Any]] = WeakSet()


def closed_in_children(one: T) -> T:
    """The same; a process that is forked closes what it inherits of it, so that it makes its own.

    Two processes that send over one connection get the answers of each other. The threads of a parent do not
    run in its children, which would wait for them for ever.

    Args:
        one: has ``close``, after which it can still be used.
    """
    _OPEN.add(one)
    return one


def _close_inherited() -> None:
    for one in list(_OPEN):
        one.close()


if hasattr(os, "register_at_fork"):  # not on Windows, which does not fork
    os.register_at_fork(after_in_child=_close_inherited)


class Threads:
    """Makes calls in threads, which are started when first needed, and anew in a process that is forked.

    Args:
        most: how many calls may run at a time.
        name: of the threads.
        before: makes what the calls share, before threads can race for it.
    """

    def __init__(self, most: int, name: str, before: Callable[[], object] = lambda: None) -> None:
        self._most = most
        self._before = before
        self._name = f"fanin-{name}"
        self._pool: ThreadPoolExecutor | None = None
        closed_in_children(self)

    def map(self, call: Callable[..., T], *arguments: Collection[Any]) -> list[T]:
        """Call for every argument, in threads if there are several; the first error cancels the rest."""
        if self._most == 1 or len(arguments[0]) <= 1:
            return list(map(call, *arguments))
        self._before()
        pool = self._pool = self._pool or ThreadPoolExecutor(self._most, thread_name_prefix=self._name)
        return list(pool.map(call, *arguments))

    def close(self) -> None:
        """Let the threads go; the next call starts others."""
        self._pool = None
