"""The routes of scatters, from the event of API Gateway to its answer."""

from __future__ import annotations

import pytest

from fanin import names
from fanin.adapters.memory import Memory
from fanin.app.ledger.service import LedgerService
from fanin.app.scatters.service import ScatterService
from fanin.domain.directory import Registration
from fanin.entry.http.v1.scatters import ROUTES
from fanin.entry.http.validation import checked

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


def test_answers_are_of_the_form_that_the_document_promises(call, items) -> None:
    scattered = call("POST", "/v1/scatters", {"body": "x", "recipients": [{"channel": QUEUE}] * 2})
    batch_id = scattered.json["batch"]["batch_id"]
    item, _ = items()
    bodies = {
        "startScatter": {"body": "x", "topic": "nobody", "quorum": 0.5},
        "reply": {"replies": [{"item": item, "payload": [1, "a", None]}]},
        "claimPayload": {"item": item, "size": 1},
    }
    for route in sorted(ROUTES, key=lambda route: route.operation == "listReplies"):
        path = route.path.replace("{batch_id}", str(batch_id))
        answer = call(route.method, path, bodies.get(route.operation))
        assert answer.status == route.status, answer.json
        checked(route.answer, answer.text)


def test_a_large_topic_is_said_to_be_starting(call, memory: Memory, ledger: LedgerService) -> None:
    # Given a topic with one registration more than a start lists
    now = memory.clock.now()
    memory.channels.queues[QUEUE] = []
    one = Registration("cars", "", QUEUE, {}, 60, now, now + 60_000)
    rows = {f"{i:05}": one.value for i in range(10_001)}
    memory.directory.put_all("topic/cars", rows, expires_at=one.expires_at)

    started = call("POST", "/v1/scatters", {"body": "x", "topic": "cars"}).json

    assert (started["starting"], started["recipients"], started["ready"]) == (True, 0, False)
    (job,) = memory.jobs.waiting
    ScatterService(ledger).work(job["batch_id"], job["chunk"], job["wave"])
    listed = call("GET", f"/v1/scatters/{started['batch']['batch_id']}").json
    assert (listed["starting"], listed["recipients"], listed["missing"]) == (False, 10_001, 10_001)
