"""A directory in memory."""

import pytest

from fanin.app.directory.routing import RoutingService
from fanin.app.directory.service import TOPIC_PREFIX, DirectoryService
from fanin.domain.directory import Register, Registration
from tests.unit.app.conftest import World


class Town(World):
    """A world with two queues, and a directory of who has which."""

    def __init__(self) -> None:
        super().__init__()
        self.memory.channels.queues |= {"q1": [], "q2": []}
        self.directory = DirectoryService(self.ports)
        self.routing = RoutingService(self.directory)

    def register(
        self, topic: str, name: str, channel: str, *more: dict[str, str], **lease: int
    ) -> Registration:
        return self.directory.register(Register(topic, name, channel, *more, **lease))

    def refuse(self, call: str, error: Exception) -> None:
        """Let the next such access fail, before it does anything."""

        def fail() -> None:
            raise error

        self.at(call, "before", fail)

    def members(self, topic: str, attributes: dict[str, str] | None = None) -> list[str]:
        """Names of those who are registered."""
        return [one.name for one in self.directory.members(topic, attributes)]

    def announced(self) -> list[str]:
        """Hand the table's stream on, and say what the bus was told."""
        changes, self.memory.directory.changes = self.memory.directory.changes, []
        for namespace, old, new in changes:
            if namespace.startswith(TOPIC_PREFIX):
                self.directory.announce(namespace.removeprefix(TOPIC_PREFIX), old, new)
        told, self.memory.events.published = self.memory.events.published, []
        return [event.detail_type for event in told]

    def delivered(self) -> dict[str, int]:
        """How many messages each queue has."""
        return {url: len(messages) for url, messages in self.memory.channels.queues.items() if messages}


@pytest.fixture
def town() -> Town:
    return Town()
