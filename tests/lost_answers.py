"""Writes that are applied, whose answers are lost, and which the SDK of AWS then repeats."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import TypeVar

from fanin.adapters.memory import Memory

T = TypeVar("T")


class LostAnswers:
    """Hangs at the stores in memory, and repeats chosen accesses, as botocore does after a timeout.

    Args:
        memory: the stores.

    Attributes:
        repeated: how often answers were lost, by call.
    """

    def __init__(self, memory: Memory) -> None:
        self.repeated: Counter[str] = Counter()
        self._waiting: list[tuple[str, Callable[[], object]]] = []
        self._access = memory.accesses._access
        memory.accesses._access = self._twice  # type: ignore[method-assign]

    def lose(self, call: str, meanwhile: Callable[[], object] = lambda: None) -> None:
        """Lose the next answer of such a call; others work until it is repeated."""
        self._waiting.append((call, meanwhile))

    def _twice(self, call: str, tally: Counter[str], rows: int, access: Callable[[], T]) -> T:
        answer = self._access(call, tally, rows, access)
        if self._waiting and self._waiting[0][0] == call:
            _, meanwhile = self._waiting.pop(0)
            self.repeated[call] += 1
            meanwhile()
            answer = self._access(call, tally, rows, access)
        return answer
