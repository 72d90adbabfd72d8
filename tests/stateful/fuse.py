"""A fuse: lets a process die at a chosen access to a store."""

from collections.abc import Callable
from typing import TypeVar

from hypothesis import strategies as st

from tests.stateful.scheduler import Crash

T = TypeVar("T")

STEPS = st.one_of(st.none(), st.none(), st.none(), st.integers(0, 12), st.integers(0, 40))
"""How long a fuse is, in moments: one before each access to a store, and one after it. None never burns."""


class Fuse:
    """Hangs at the stores in memory (their ``on_call``), and is lit around one call at a time."""

    def __init__(self) -> None:
        self._left: int | None = None

    def on_call(self, _call: str, _moment: str) -> None:
        """The hook of the stores: a moment passes.

        Raises:
            Crash: the fuse has burnt down.
        """
        if self._left is None:
            return
        if self._left == 0:
            self._left = None  # the dead do nothing more
            raise Crash
        self._left -= 1

    def burn(self, steps: int | None, call: Callable[[], T]) -> T:
        """Make a call in a process that dies after so many moments.

        Raises:
            Crash: it did.
        """
        self._left = steps
        try:
            return call()
        finally:
            self._left = None
