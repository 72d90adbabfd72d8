"""The functions in memory, each for one record or message."""

import json
from typing import Any

import pytest

from fanin import names
from fanin.adapters.memory import Memory
from fanin.app.services import Services
from fanin.domain.batch import OpenBatch
from fanin.domain.targets import Target, TargetType
from fanin.entry.in_memory.event_source import QueueRecord
from fanin.entry.in_memory.functions import Functions
from fanin.entry.in_memory.sources import Dead
from fanin.errors import ServiceUnavailable
from tests.unit.entry.conftest import throttle_word


@pytest.fixture
def memory() -> Memory:
    memory = Memory()
    memory.channels.queues["q"] = []
    return memory


@pytest.fixture
def services(memory: Memory) -> Services:
    return Services(memory.ports())


@pytest.fixture
def dead() -> list[Dead]:
    return []


@pytest.fixture
def functions(memory: Memory, dead: list[Dead], given_up: list[str], put_back: list[Any]) -> Functions:
    return Functions(memory.ports(), dead, given_up.append, put_back.append, lambda waits: None)


@pytest.fixture
def given_up() -> list[str]:
    return []


@pytest.fixture
def put_back() -> list[Any]:
    return []


def message(body: Any = "x", item: str | None = None, **attributes: str) -> dict[str, Any]:
    return {
        "messageId": "m",
        "body": body if isinstance(body, str) else json.dumps(body),
        "attributes": {"ApproximateReceiveCount": "4", **attributes},
        "messageAttributes": {names.ITEM_ATTRIBUTE: {"stringValue": item}} if item else {},
        "eventSourceARN": "arn:aws:sqs:memory:0:rows-dead-letters",
    }


def test_a_job_of_a_scatter_that_is_gone_is_done(functions):
    functions.scatter(message({"batch_id": 7, "chunk": 0, "wave": 0}))
    functions.scatter(message({"batch_id": 7, "chunk": None, "wave": 0}))


def test_what_an_overload_left_of_an_ack_comes_again(memory, services, functions, put_back):
    # Given a store that takes one word of two
    group = services.ledger.add(services.ledger.open(OpenBatch()).batch_id, 128)
    throttle_word(memory, 2)
    # When a message names both, and another only one that is left
    window = [message({"marks": [group[0], group[64]]}), message({"marks": [group[65]]}) | {"messageId": "n"}]
    answer = functions.acks({"Records": window}, None)
    # Then one comes again as it is, and of the other only what is left
    assert answer == {"batchItemFailures": [{"itemIdentifier": "n"}]}
    assert [json.loads(rest["body"]) for rest in put_back] == [{"marks": [group[64]]}]
    # If that cannot be sent, its message comes again, and no other of its window
    throttle_word(memory, 1)
    functions.put_back = put_back.index
    window = [message("poison"), message({"marks": [group[1], group[66]]}) | {"messageId": "n"}]
    assert functions.acks({"Records": window}, None) == answer
    assert len(functions.dead) == 1


class TestTargets:
    def job(self, functions: Functions, memory: Memory, token: str) -> QueueRecord:
        ledger = functions.services.ledger
        target = Target(TargetType.STEP_FUNCTIONS, task_token=token)
        batch = ledger.close(ledger.open(OpenBatch(on_end=[target])).batch_id)
        ledger.announce(batch)
        return {"body": json.dumps(memory.target_jobs.waiting.pop()), "attributes": {}}

    def test_one_that_is_down_comes_again_and_one_that_refuses_is_kept(self, functions, memory, dead):
        memory.callbacks.down.add("down")
        with pytest.raises(ServiceUnavailable, match="comes again"):
            functions.targets(self.job(functions, memory, "down"))
        memory.callbacks.refusing.add("never")
        functions.targets(self.job(functions, memory, "never"))
        assert [one.where for one in dead] == ["targets"]
