"""Counts every row that the memory stores read or write, and lets tests act around it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from threading import Lock
from typing import TypeVar

OnCall = Callable[[str, str], None]
"""Called around each access with its name, such as ``words.clear``, and ``before`` or ``after``."""

T = TypeVar("T")


def nothing(_call: str, _moment: str) -> None:
    """An ``OnCall`` that does nothing."""


class Accesses:
    """Makes every access to a row atomic, counts it, and calls ``on_call`` before and after it.

    ``on_call`` runs outside of the lock, so it may switch to another thread, or raise: before the access to
    simulate a call that never arrived, after it to simulate one whose answer was lost.

    Attributes:
        reads: rows read, found or not, by call.
        writes: rows written, or refused by their condition, by call.
        refused: those of the writes whose condition failed, by call.
        sends: alarms and events handed over, by call.
    """

    def __init__(self, on_call: OnCall = nothing) -> None:
        self.reads: Counter[str] = Counter()
        self.writes: Counter[str] = Counter()
        self.refused: Counter[str] = Counter()
        self.sends: Counter[str] = Counter()
        self._on_call = on_call
        self._lock = Lock()

    def read(self, call: str, access: Callable[[], T]) -> T:
        """Read one row."""
        return self._access(call, self.reads, 1, access)

    def write(self, call: str, access: Callable[[], T], *, rows: int = 1) -> T:
        """Write one row, or a few in one transaction."""
        return self._access(call, self.writes, rows, access)

    def send(self, call: str, access: Callable[[], T]) -> T:
        """Hand over one alarm or event."""
        return self._access(call, self.sends, 1, access)

    def _access(self, call: str, tally: Counter[str], rows: int, access: Callable[[], T]) -> T:
        self._on_call(call, "before")
        with self._lock:
            tally[call] += rows
            answer = access()
        self._on_call(call, "after")
        return answer
