"""A world in memory with narrow words, that can be interrupted at any access to a store."""

import inspect
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from fanin.adapters.memory import FixedClock, Memory
from fanin.app.ledger.service import LedgerService
from fanin.app.ports import Ports
from fanin.app.ports.words import WordKey
from fanin.domain.batch import Batch, OpenBatch
from fanin.domain.ids import Group
from fanin.domain.marks import Failure, Receipt
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

    def at(self, call: str, moment: str, action: Callable[[], object], *, after: int = 0) -> None:
        """Do something once, at the next such access after those planned before.

        Args:
            call: a call of a store, such as "words.clear"; "" for any.
            moment: "before" or "after"; "" for both.
            action: what to do.
            after: how many such accesses to let pass first.
        """
        self._plans += [(call, moment, lambda: None)] * after
        self._plans.append((call, moment, action))

    def raise_at(self, call: str, moment: str, error: BaseException, *, after: int = 0) -> None:
        """Let an access fail, once."""

        def fail() -> None:
            raise error

        self.at(call, moment, fail, after=after)

    def crash_at(self, call: str, moment: str, *, after: int = 0) -> None:
        """Let the caller die there, once."""
        self.raise_at(call, moment, Crash(), after=after)

    @contextmanager
    def dying(self, call: str, moment: str, *, after: int = 0) -> Iterator[None]:
        """A block that dies at an access."""
        self.crash_at(call, moment, after=after)
        with pytest.raises(Crash):
            yield

    @contextmanager
    def refusing(
        self, error: type[Exception], match: str | None = None
    ) -> Iterator[pytest.ExceptionInfo[Any]]:
        """A block that raises an error, writes nothing and sends nothing."""
        sent = self.accesses.sends.total()
        with self.costing(writes=0), pytest.raises(error, match=match) as raised:
            yield raised
        assert self.accesses.sends.total() == sent

    @contextmanager
    def costing(self, *, writes: int | None = None, reads: int | None = None, of: str = "") -> Iterator[None]:
        """A block that makes so many writes, or reads: of all kinds, or of one, such as "words.clear"."""
        wanted = {"writes": writes, "reads": reads}

        def counted() -> dict[str, int]:
            counts = {"writes": self.accesses.writes, "reads": self.accesses.reads}
            return {
                name: count[of] if of else count.total()
                for name, count in counts.items()
                if wanted[name] is not None
            }

        before = counted()
        yield
        cost = {name: count - before[name] for name, count in counted().items()}
        assert cost == {name: count for name, count in wanted.items() if count is not None}

    def _on_call(self, call: str, moment: str) -> None:
        if self._plans and self._plans[0][0] in {"", call} and self._plans[0][1] in {"", moment}:
            _, _, action = self._plans.pop(0)
            action()

    def go_on(self) -> bool:
        """Drop what was planned; returns whether any of it did not happen."""
        left = bool(self._plans)
        self._plans.clear()
        return left

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
        row = self.ledger.open(OpenBatch(**request))
        groups = [self.ledger.add(row.batch_id, count) for count in counts]
        if closed:
            self.ledger.close(row.batch_id)
        return self.row(row), groups

    def fail(self, *items: str, reason: str = "no price") -> list[Receipt]:
        """Fail items for one reason."""
        return self.ledger.mark([Failure(item, reason) for item in items]).whole()

    def row(self, batch: Batch) -> Batch:
        """The row as it is stored."""
        return self.ports.batches.read([batch.batch_id])[batch.batch_id]

    def word(self, batch: Batch, level: int, number: int) -> int:
        """The word as it is stored."""
        key = WordKey(batch.batch_id, level, number)
        return self.ports.words.read([key]).get(key, self.ports.tree.full)


def parameters(call: Callable[..., Any]) -> list[tuple[str, Any, Any]]:
    """Name, kind and default of every parameter of a call, but for ``self``; mypy compares the types."""
    return [
        (one.name, one.kind, one.default)
        for one in inspect.signature(call).parameters.values()
        if one.name != "self"
    ]


@pytest.fixture
def world() -> World:
    return World()
