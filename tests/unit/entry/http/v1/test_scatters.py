"""The routes of scatters, from the event of API Gateway to its answer."""

from __future__ import annotations

import pytest

from fanin import names
from fanin.adapters.memory import Memory
from fanin.app.ledger.service import LedgerService
from fanin.app.scatters.service import ScatterService

QUEUE = "https://sqs/car"


@pytest.fixture
def items(memory: Memory, ledger: LedgerService):
    """Does the jobs that wait, and gives the items that were sent."""
    memory.channels.queues[QUEUE] = []

    def sent() -> list[str]:
        for job in memory.jobs.waiting:
            ScatterService(ledger).send(job["batch_id"], job["chunk"], job["wave"])
        memory.jobs.waiting.clear()
        return [message.attributes[names.ITEM_ATTRIBUTE] for message in memory.channels.queues[QUEUE]]

    return sent


@pytest.mark.usefixtures("items")
def test_a_living_correlation_id_is_a_conflict(call) -> None:
    body = {"body": "x", "recipients": [{"channel": QUEUE}], "correlation_id": "mine"}
    assert call("POST", "/v1/scatters", body).status == 201

    answer = call("POST", "/v1/scatters", body)

    assert (answer.status, answer.json["type"]) == (409, "urn:fanin:problem:correlation-id-alive")


@pytest.mark.parametrize(
    ("path", "body", "status", "code"),
    [
        ("scatters", {"topic": "t"}, 400, "invalid-request"),
        ("scatters", {"body": "x", "topic": "t", "quorum": 0}, 400, "invalid-request"),
        ("scatters", {"body": "x", "topic": "t", "quorum": 1.5}, 400, "invalid-request"),
        ("scatters", {"body": "x", "topic": "t", "timeout": 1}, 400, "invalid-request"),
        ("scatters", {"body": "x", "recipients": [{"channel": "https://sqs/no"}]}, 400, "channel-refused"),
        ("scatters", {"body": "x", "recipients": [{"channel": "cars/no"}]}, 404, "not-registered"),
        ("replies", {"replies": [{"payload": 1}]}, 400, "invalid-request"),
        ("replies", {"replies": [{"item": "nonsense"}]}, 400, "invalid-item-id"),
        (
            "claim-checks",
            {"item": "5:00000000-0000-8000-820a-7e5724b523c0:0", "size": 0},
            400,
            "invalid-request",
        ),
    ],
)
def test_what_is_refused_writes_nothing(call, memory: Memory, *, path, body, status, code) -> None:
    answer = call("POST", f"/v1/{path}", body)
    assert (answer.status, answer.json["type"]) == (status, f"urn:fanin:problem:{code}")
    assert memory.accesses.writes.total() == 0


@pytest.mark.parametrize("path", ["/v1/scatters/5", "/v1/scatters/5/replies"])
def test_what_is_no_scatter_is_not_found(call, path) -> None:
    assert call("GET", path).json["type"] == "urn:fanin:problem:batch-not-found"
