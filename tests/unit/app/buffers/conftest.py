"""What tests of buffers share: processes on the stores of a world, and an SDK that repeats writes."""

from __future__ import annotations

from typing import TypeVar

import pytest

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
