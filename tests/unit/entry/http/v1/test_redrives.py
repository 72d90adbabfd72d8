"""The routes of redrives, from the event of API Gateway to its answer."""

from __future__ import annotations

import pytest

from fanin.adapters.memory import Memory
from fanin.app.ports.parts import IN_ROW, FailureRow
from fanin.domain.batch import OpenBatch
from fanin.domain.marks import Failure

QUEUE = "https://sqs/work"


@pytest.fixture
def batch(memory: Memory, ledger) -> int:
    """Two failures with their messages."""
    memory.channels.queues[QUEUE] = []
    batch = ledger.open(OpenBatch())
    group = ledger.add(batch.batch_id, 2)
    notes = [FailureRow(n, item, f"row {n}", 1, 1, QUEUE, IN_ROW) for n, item in enumerate(group)]
    memory.parts.put_failures(batch.batch_id, notes, expires_at=2**40)
    memory.parts.put_messages(batch.batch_id, dict.fromkeys(range(2), b'{"body": "x"}'), expires_at=2**40)
    ledger.mark([Failure(item, "x") for item in group]).whole()
    return ledger.close(batch.batch_id).batch_id


def test_a_redrive_is_asked_for_and_listed(call, batch: int, memory: Memory) -> None:
    # When a part is redriven, twice
    path, body = f"/v1/batches/{batch}/redrive", {"errors": ["row"], "ranges": [{"from": 0, "to": 1}]}
    dry = call("POST", path, {**body, "dry_run": True})
    first = call("POST", path, body)
    again = call("POST", path, body)
    # Then it was sent once
    assert [one.status for one in (dry, first, again)] == [200, 200, 200]
    assert [one.json["items"] for one in (dry, first, again)] == [1, 1, 0]
    assert len(memory.channels.queues[QUEUE]) == 1
    # And both are listed, with their selection
    listed = call("GET", f"/v1/batches/{batch}/redrives").json
    assert [one["items"] for one in listed["redrives"]] == [1, 0]
    assert listed["redrives"][0]["ranges"] == [{"from": 0, "to": 1}]
    assert listed["redrives"][0]["batch_id"] == first.json["batch_id"]
    assert listed["cursor"] is None


def test_a_batch_that_is_not_there(call) -> None:
    assert call("POST", "/v1/batches/7/redrive", {}).status == 404
    assert call("GET", "/v1/batches/7/redrives").status == 404


@pytest.mark.parametrize(
    ("body", "status"),
    [
        ({"ranges": [{"from": 1}]}, 400),
        ({"ranges": [{"from": 3, "to": 1}]}, 400),
        ({"errors": "x"}, 400),
        ({"unknown": 1}, 400),
        ({"queue_url": "https://sqs/gone"}, 400),
    ],
)
def test_a_bad_request_is_explained_and_sends_nothing(call, batch, memory, body, status) -> None:
    answer = call("POST", f"/v1/batches/{batch}/redrive", body)
    assert (answer.status, bool(answer.json["detail"])) == (status, True)
    assert not memory.channels.queues[QUEUE]
