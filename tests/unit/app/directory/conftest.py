"""A directory with two queues."""

from __future__ import annotations

import pytest

from fanin.app.directory.service import TOPIC_PREFIX, DirectoryService
from tests.unit.app.conftest import World


@pytest.fixture
def directory(world: World) -> DirectoryService:
    for url in ("q1", "q2"):
        world.memory.channels.queues[url] = []
    return DirectoryService(world.ports)


def announced(world: World, directory: DirectoryService) -> list[str]:
    """Hand the table's stream on, and say what the bus was told."""
    changes, world.memory.directory.changes = world.memory.directory.changes, []
    for namespace, old, new in changes:
        if namespace.startswith(TOPIC_PREFIX):
            directory.announce(namespace.removeprefix(TOPIC_PREFIX), old, new)
    told, world.memory.events.published = world.memory.events.published, []
    return [event.detail_type for event in told]
