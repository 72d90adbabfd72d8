"""The function of redrives: it goes on until nothing is left."""

from __future__ import annotations

import pytest

from fanin.entry import redrives, wiring
from tests.unit.app.redrives.conftest import Failed
from tests.unit.entry.conftest import CONTEXT
from tests.unit.entry.test_queues import event, failed
from tests.unit.functions.conftest import load


def test_a_job_puts_the_next_one_on_the_queue_until_all_is_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    # Given twenty failures, a page of which was sent by the call
    world = Failed()
    batch = world.failures(20)
    service = world.service(at_once=1)
    service.redrive(batch.batch_id)
    services = type("Services", (), {"redrives": service, "ports": world.ports})
    monkeypatch.setattr(wiring, "services", lambda: services)
    monkeypatch.setattr(redrives, "WORK_MS", 0)
    # When the function runs for each job
    jobs = 0
    while world.memory.redrives.waiting:
        job = world.memory.redrives.waiting.pop(0)
        assert failed(load("redriver").handler(event(job), CONTEXT)) == []
        jobs += 1
    # Then each message was sent once, and each job got a page further
    assert world.bodies() == {f"body {n}": 1 for n in range(20)}
    assert jobs == 6
