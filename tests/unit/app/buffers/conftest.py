"""What tests of buffers share: processes on the stores of a world, some of which die."""

from collections.abc import Callable, Iterator

import pytest

from fanin.app.buffers.service import BufferService
from fanin.domain.buffer import FailedWork
from tests.stateful.fuse import Fuse
from tests.stateful.scheduler import Crash as BurntDown
from tests.unit.app.conftest import Crash, World


def kept(world: World, url: str) -> list[str]:
    """The messages that are in a queue, hidden or not."""
    queue = world.memory.queues._queue(url)
    queue.counts()  # which drops those past their retention
    return [held.body for held in queue._held.values()]


class Town:
    """The buffers of a world, as processes see them that start now.

    Attributes:
        world: the stores.
    """

    def __init__(self, world: World) -> None:
        self.world = world

    def process(self) -> BufferService:
        return BufferService(self.world.fresh())

    def take(self, name: str = "jobs", *, fails: bool = False) -> list[str]:
        """Take and finish, or fail, all the work there is, also what others took and did not finish."""
        self.world.clock.advance(self.world.memory.queues.visibility_timeout * 1000)
        buffers, found = self.process(), list[str]()
        while work := buffers.take(name, most=10, wait=0):
            found += [one.payload for one in work]
            failures = [FailedWork(one.receipt, "bad payload") for one in work] if fails else []
            buffers.done(name, [] if fails else [one.receipt for one in work], failures=failures)
        return found

    def pending(self, name: str = "jobs") -> int:
        return self.process().status(name).pending

    def messages(self, name: str = "jobs") -> list[str]:
        """The payloads of all messages in the queue, void ones included."""
        return kept(self.world, self.process()._records.refresh(name).buffer.queue)

    def die(self, call: str, moment: str, action: Callable[[BufferService], object]) -> None:
        """Let a process that starts now die at an access to a store."""
        self.world.crash_at(call, moment)
        with pytest.raises(Crash):
            action(self.process())

    def die_at_every_step(
        self, prepare: Callable[[str], object], action: Callable[[BufferService, str], object]
    ) -> Iterator[str]:
        """Let a process die at its first access to a store, the next at its second, and so on.

        Yields:
            The name of a buffer for each, the last of which lived on.
        """
        fuse = Fuse()
        self.world.memory.accesses._on_call = fuse.on_call
        for step in range(100):
            name, lived = f"jobs-{step}", True
            prepare(name)
            try:
                fuse.burn(step, lambda: action(self.process(), name))  # noqa: B023
            except BurntDown:
                lived = False
            yield name
            if lived:
                break
        assert 8 < step < 99


@pytest.fixture
def town(world: World) -> Town:
    return Town(world)
