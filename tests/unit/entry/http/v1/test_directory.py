"""The routes of the directory, of routing and of events, from the event of API Gateway to its answer."""

from __future__ import annotations

import pytest

from fanin.adapters.memory import Memory


@pytest.fixture(autouse=True)
def _channels(memory: Memory) -> None:
    memory.channels.queues |= {"q1": [], "q2": []}


@pytest.mark.parametrize(
    ("body", "code"),
    [
        ({}, "invalid-request"),
        ({"channel": "q1", "lease": 1}, "invalid-request"),
        ({"channel": "q1", "attributes": {"a": 1}}, "invalid-request"),
        ({"channel": "elsewhere"}, "channel-refused"),
    ],
)
def test_a_bad_registration_is_refused(call, memory: Memory, body, code: str) -> None:
    answer = call("PUT", "/v1/directory/cars/a", body)
    assert (answer.status, answer.json["type"]) == (400, f"urn:fanin:problem:{code}")
    assert not memory.directory.changes
