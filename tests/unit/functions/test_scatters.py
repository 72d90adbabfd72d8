"""The functions of scatters: the worker and the replies."""

from __future__ import annotations

import pytest

from fanin import names
from fanin.adapters.memory import Memory
from fanin.app.services import Services
from fanin.domain.scatter import Recipient, Scatter
from fanin.entry import wiring
from tests.unit.entry.conftest import CONTEXT
from tests.unit.entry.test_queues import event, failed, message
from tests.unit.functions.conftest import load

QUEUES = [f"https://sqs/car-{i}" for i in range(3)]


@pytest.fixture
def memory() -> Memory:
    memory = Memory()
    memory.channels.queues.update({queue: [] for queue in QUEUES})
    return memory


@pytest.fixture
def services(memory: Memory, monkeypatch) -> Services:
    services = Services(memory.ports())
    monkeypatch.setattr(wiring, "services", lambda: services)
    return services


@pytest.fixture
def scattered(services: Services):
    return services.scatters.start(Scatter("x", [Recipient("", queue) for queue in QUEUES]))


def items(memory: Memory) -> list[str]:
    return [memory.channels.queues[queue][0].attributes[names.ITEM_ATTRIBUTE] for queue in QUEUES]


def test_replies_are_taken_and_a_bad_one_goes_to_the_dead_letters(
    memory: Memory, services: Services, scattered
) -> None:
    # Given the messages of three recipients
    (job,) = memory.jobs.waiting
    load("scatter").handler({"Records": [message(job, "job")]}, CONTEXT)
    replies = [{"replies": [{"item": item, "payload": "ok"}]} for item in items(memory)]
    # When they arrive with a message that is not a reply, and with one for an unknown item
    forged = items(memory)[0].rpartition(":")[0] + ":9"
    bodies = [*replies, "no reply", {"replies": [{"item": forged, "payload": "ok"}]}]
    answer = load("replies").handler(event(*bodies), CONTEXT)
    # Then these two messages fail, and all recipients have replied
    assert failed(answer) == ["m3", "m4"]
    assert services.scatters.status(scattered.batch.batch_id).received == 3
