"""The routes of bounded buffers."""

from __future__ import annotations

import pytest


@pytest.mark.parametrize(
    ("method", "path", "body", "status"),
    [
        ("PUT", "/v1/buffers/a.b", {"limit": 1}, 400),
        ("PUT", "/v1/buffers/jobs", {"limit": 0}, 400),
        ("PUT", "/v1/buffers/jobs", {"limit": 1, "queue": "https://none"}, 400),
        ("POST", "/v1/buffers/jobs/put", {"payloads": []}, 400),
        ("POST", "/v1/buffers/jobs/put", {"payloads": ["x"] * 11}, 413),
        ("POST", "/v1/buffers/jobs/take", {"most": 11}, 400),
        ("POST", "/v1/buffers/jobs/done", {"receipts": ["x"]}, 404),
        ("GET", "/v1/buffers/jobs", None, 404),
        ("DELETE", "/v1/buffers/jobs", None, 204),
    ],
)
def test_what_is_wrong_is_told(call, memory, *, method: str, path: str, body: object, status: int) -> None:
    assert call(method, path, body).status == status
    assert memory.accesses.writes.total() == 0


def test_rejects_waits_and_depth_are_measured(call, measured) -> None:
    call("PUT", "/v1/buffers/jobs", {"limit": 1})
    call("POST", "/v1/buffers/jobs/put", {"payloads": ["a"]})
    call("POST", "/v1/buffers/jobs/put", {"payloads": ["b"]})
    call("POST", "/v1/buffers/jobs/take", {"wait": 0})
    call("GET", "/v1/buffers/jobs")
    assert measured() == {"BufferRejects": [1.0], "BufferWaitMilliseconds": [0.0], "BufferDepth": [1.0]}


def test_a_buffer_whose_record_cannot_be_read_is_counted_and_the_others_listed(
    call, memory, caplog, measured
) -> None:
    call("PUT", "/v1/buffers/jobs", {"limit": 1})
    memory.directory.put("/buffers", "broken", {"limit": 1}, expires_at=memory.clock.now() // 1000 + 60)
    measured()
    caplog.clear()

    listed = call("GET", "/v1/buffers")

    found = measured()
    assert [one["name"] for one in listed.json["buffers"]] == ["jobs"]
    assert found == {"BuffersUnreadable": [1.0]}
    assert [getattr(record, "buffer", None) for record in caplog.records] == ["broken"]
    assert call("GET", "/v1/buffers/broken").status == 404
