"""What a process that is forked does not share with its parent: connections, and threads."""

from __future__ import annotations

import os
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
