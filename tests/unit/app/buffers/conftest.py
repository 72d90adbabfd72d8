"""Stores and queues with one buffer, and processes that die."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from fanin.adapters.memory import FixedClock, Memory
from fanin.app.buffers.service import BufferService
from fanin.app.ledger.service import LedgerService

DAY_MS = 86_400_000


class Crash(BaseException):
    """The process dies."""


class World:
    """Stores and queues that all processes share, with a step at which one dies."""

    def __init__(self) -> None:
        self.clock = FixedClock()
        self.steps = 0
        self.crash_at: int | None = None
        self.on_step: Callable[[str, str], None] = lambda _call, _moment: None
        self.memory = Memory(clock=self.clock, on_call=self._step)
        self.buffers = self.fresh()

    def _step(self, call: str, moment: str) -> None:
        self.steps += 1
        self.on_step(call, moment)
        if self.steps == self.crash_at:
            raise Crash

    def fresh(self) -> BufferService:
        """A process that starts now."""
        ports = self.memory.ports()
        return BufferService(LedgerService(ports))

    def payloads(self) -> list[str]:
        """Take all the work there is, without giving it back."""
        found: list[str] = []
        while work := self.buffers.take("jobs", most=10, wait=0):
            found += [one.payload for one in work]
        return found


@pytest.fixture
def world() -> World:
    world = World()
    world.buffers.define("jobs", 3)
    return world
