"""Writes that are applied, whose answers are lost, and which the SDK of AWS then repeats."""

from collections import Counter
from collections.abc import Callable

from fanin.adapters.memory import LostAnswer, Memory


class LostAnswers:
    """Hangs at the stores in memory, and loses the answers of chosen accesses.

    Args:
        memory: the stores.
        chooses: called after each access: what others do until it is repeated; None does not repeat it.

    Attributes:
        repeated: how often answers were lost, by call.
    """

    def __init__(
        self, memory: Memory, chooses: Callable[[str], Callable[[], object] | None] | None = None
    ) -> None:
        self.repeated: Counter[str] = Counter()
        self._waiting: list[tuple[str, Callable[[], object]]] = []
        self._chooses = chooses or self._planned
        self._on_call = memory.accesses._on_call
        memory.accesses._on_call = self._lose

    def lose(self, call: str, meanwhile: Callable[[], object] = lambda: None) -> None:
        """Lose the next answer of such a call; others work until it is repeated."""
        self._waiting.append((call, meanwhile))

    def _planned(self, call: str) -> Callable[[], object] | None:
        if self._waiting and self._waiting[0][0] == call:
            return self._waiting.pop(0)[1]
        return None

    def _lose(self, call: str, moment: str) -> None:
        self._on_call(call, moment)
        if moment == "after" and (meanwhile := self._chooses(call)) is not None:
            self.repeated[call] += 1
            meanwhile()
            raise LostAnswer
