"""A world in memory with narrow words, that can be interrupted at any access to a store."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from fanin.adapters.memory import FixedClock, Memory
from fanin.app.ledger.service import LedgerService
from fanin.app.ports import Ports
from fanin.app.ports.words import WordKey
from fanin.domain.batch import Batch, OpenBatch
from fanin.domain.ids import Group
from fanin.domain.tree import Tree


class Crash(BaseException):
    """A process dies."""


class World:
    """Stores that all processes share, and one process.

    Attributes:
        ledger: the process that lives on.
    """

    def __init__(self, width: int = 4) -> None:
        self.clock = FixedClock()
        self.memory = Memory(tree=Tree(width), clock=self.clock, on_call=self._on_call)
        self.accesses = self.memory.accesses
        self.ports: Ports = self.memory.ports()
        self._plans: list[tuple[str, str, Callable[[], object]]] = []
        self.ledger = self.fresh()

    def fresh(self) -> LedgerService:
        """A process that starts now."""
        return LedgerService(self.ports)

    def at(self, call: str, moment: str, action: Callable[[], object]) -> None:
        """Do something once, at the next such access after those planned before."""
        self._plans.append((call, moment, action))

    def crash_at(self, call: str, moment: str) -> None:
        """Let the caller die there, once."""

        def die() -> None:
            raise Crash

        self.at(call, moment, die)

    def _on_call(self, call: str, moment: str) -> None:
        if self._plans and self._plans[0][:2] == (call, moment):
            _, _, action = self._plans.pop(0)
            action()

    @property
    def happened(self) -> bool:
        """Whether all that was planned took place."""
        return not self._plans

    def written(self) -> int:
        """Rows written so far, and alarms set; a write that its condition refused wrote none."""
        accesses = self.accesses
        kinds = ("words.clear", "parts.put_failures", "parts.update_failures", "parts.put_messages")
        plain = sum(accesses.writes[kind] - accesses.refused[kind] for kind in kinds)
        return len(self.memory.batches.changes) + plain + accesses.sends["timers.set"]

    def batch(self, *counts: int, closed: bool = False, **request: object) -> tuple[Batch, list[Group]]:
        """Open a batch and add to it."""
        row = self.ledger.open(OpenBatch(**request))  # type: ignore[arg-type]
        groups = [self.ledger.add(row.batch_id, count) for count in counts]
        if closed:
            self.ledger.close(row.batch_id)
        return self.row(row), groups

    def row(self, batch: Batch) -> Batch:
        """The row as it is stored."""
        return self.ports.batches.read([batch.batch_id])[batch.batch_id]

    def word(self, batch: Batch, level: int, number: int) -> int:
        """The word as it is stored."""
        key = WordKey(batch.batch_id, level, number)
        return self.ports.words.read([key]).get(key, self.ports.tree.full)


@pytest.fixture
def world() -> World:
    return World()
