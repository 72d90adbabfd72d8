"""The routes of bounded buffers."""

from __future__ import annotations

import json
from typing import Any

import pytest

from fanin.entry.http.validation import checked
from fanin.wire import buffers as wire
from fanin.wire.shapes import Shape


def valid(shape: Shape[Any], answer: object) -> bool:
    return checked(shape, json.dumps(answer)) == answer


def test_work_goes_through_a_buffer_over_http(call) -> None:
    # Given a buffer
    buffer = call("PUT", "/v1/buffers/jobs", {"limit": 2})
    assert (buffer.status, buffer.json["limit"], buffer.json["owned"]) == (200, 2, True)
    assert valid(wire.BUFFER, buffer.json)

    # When work is put in, until there is no room
    accepted = call("POST", "/v1/buffers/jobs/put", {"payloads": ["a", "b"]})
    rejected = call("POST", "/v1/buffers/jobs/put", {"payloads": ["c"]})
    assert (accepted.status, accepted.json["outcome"]) == (201, "waiting")
    assert valid(wire.ACCEPTED, accepted.json)
    assert (rejected.status, rejected.headers["Retry-After"]) == (429, "1")
    assert rejected.json["type"] == "urn:fanin:problem:limit-reached"

    # And taken and done
    taken = call("POST", "/v1/buffers/jobs/take", {"most": 2, "wait": 0})
    assert [work["payload"] for work in taken.json["work"]] == ["a", "b"]
    assert valid(wire.TAKEN, taken.json)
    level = call("GET", "/v1/buffers/jobs").json
    assert (level["pending"], level["taken"], level["count"], level["draining"]) == (2, 2, 0, False)
    assert valid(wire.LEVEL, level)
    receipts = [work["receipt"] for work in taken.json["work"]]
    released = call("POST", "/v1/buffers/jobs/done", {"receipts": receipts})

    # Then its slots are free, and a repeat is no error
    assert released.json == {"done": 2, "late": 0}
    assert call("POST", "/v1/buffers/jobs/done", {"receipts": receipts}).json == {"done": 0, "late": 2}
    page = call("GET", "/v1/buffers").json
    assert [buffer["name"] for buffer in page["buffers"]] == ["jobs"]
    assert valid(wire.BUFFERS, page)
    assert call("DELETE", "/v1/buffers/jobs").status == 204
    assert call("GET", "/v1/buffers/jobs").json["type"] == "urn:fanin:problem:buffer-not-found"


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
