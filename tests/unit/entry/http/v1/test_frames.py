"""The routes of frames, from the event of API Gateway to its answer."""

from __future__ import annotations

import pytest

from fanin.adapters.memory import Memory


@pytest.mark.parametrize(
    ("method", "path", "body", "status", "code"),
    [
        ("POST", "/v1/frames", {}, 400, "invalid-request"),
        ("POST", "/v1/frames", {"size": 0}, 400, "invalid-request"),
        ("POST", "/v1/frames", {"size": 1, "ttl": 59}, 400, "invalid-request"),
        ("POST", "/v1/frames", {"size": 1, "reply_to": "https://sqs/none"}, 400, "channel-refused"),
        ("GET", "/v1/frames/5", None, 404, "batch-not-found"),
        ("POST", "/v1/claims", {"claims": [{"frame_id": 5, "index": 0}]}, 404, "batch-not-found"),
        ("POST", "/v1/claims", {"claims": [{"frame_id": 5}]}, 400, "invalid-request"),
        ("POST", "/v1/claims", {"claims": [], "lease": 0}, 400, "invalid-request"),
    ],
)
def test_what_is_refused_writes_nothing(call, memory: Memory, *, method, path, body, status, code) -> None:
    answer = call(method, path, body)
    assert (answer.status, answer.json["type"]) == (status, f"urn:fanin:problem:{code}")
    assert memory.accesses.writes.total() == 0
