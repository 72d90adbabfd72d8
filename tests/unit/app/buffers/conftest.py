"""What tests of buffers share: processes on the stores of a world, and an SDK that repeats writes."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import pytest

from fanin.adapters.memory import Memory
from fanin.app.buffers.service import BufferService
from tests.unit.app.conftest import World

T = TypeVar("T")


class Town:
    """The buffers of a world, as processes see them that start now.

    Attributes:
        world: the stores.
    """

    def __init__(self, world: World) -> None:
        self.world = world

    def process(self) -> BufferService:
        return BufferService(self.world.fresh())

    def take(self, name: str = "jobs") -> list[str]:
        """Take and finish all the work there is, also what others took and did not finish."""
        self.world.clock.advance(self.world.memory.queues.visibility_timeout * 1000)
        buffers, found = self.process(), list[str]()
        while work := buffers.take(name, most=10, wait=0):
            found += [one.payload for one in work]
            buffers.done(name, [one.receipt for one in work])
        return found

    def messages(self, name: str = "jobs") -> list[str]:
        """The payloads of all messages in the queue, void ones included."""
        queue = self.process()._records.refresh(name).buffer.queue
        return [held.message.body for held in self.world.memory.queues._kept(queue)]


@pytest.fixture
def town(world: World) -> Town:
    return Town(world)


def lose_answer(memory: Memory, call: str, meanwhile: Callable[[], object]) -> None:
    """Lose the answer of the next such access, after it took effect; the SDK sends it again.

    Args:
        memory: the stores.
        call: of the access, such as ``directory.put``.
        meanwhile: what others do before the SDK does.
    """
    accesses = memory.accesses
    once = accesses._access

    def twice(name: str, tally: object, rows: int, access: Callable[[], T]) -> T:
        answer = once(name, tally, rows, access)  # type: ignore[arg-type]
        if name != call:
            return answer
        accesses._access = once  # type: ignore[method-assign]
        meanwhile()
        return once(name, tally, rows, access)  # type: ignore[arg-type]

    accesses._access = twice  # type: ignore[method-assign,assignment]
