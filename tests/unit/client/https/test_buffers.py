"""Buffers over HTTPS do what they do on the stores."""

from __future__ import annotations

import json

import pytest

from fanin.adapters.memory import Memory
from fanin.app.api import Buffers
from fanin.app.services import Services
from fanin.client.https.buffers import HttpsBuffers
from fanin.domain.buffer import Outcome
from fanin.errors import BufferNotFound, InvalidRequest, ServiceUnavailable
from tests.unit.client.https.conftest import InProcessApi


@pytest.fixture(params=["https", "direct"])
def buffers(request: pytest.FixtureRequest, memory: Memory, api: InProcessApi) -> Buffers:
    if request.param == "direct":
        return Services(memory.ports()).buffers
    return HttpsBuffers(api.client())


def test_a_buffer_is_the_same_over_the_api_and_on_the_stores(buffers: Buffers) -> None:
    # Given a buffer
    buffer = buffers.define("jobs", 3)
    assert buffers.define("jobs", 3) == buffer
    assert buffers.list().buffers == (buffer,)

    # When work goes through it
    accepted = buffers.put("jobs", ["a ☂", "b"], key="k")
    assert buffers.put("jobs", ["a ☂", "b"], key="k") == accepted
    work = buffers.take("jobs", most=2, wait=0)
    level = buffers.status("jobs")
    released = buffers.done("jobs", [one.receipt for one in work])

    # Then everybody says so
    assert accepted.outcome is Outcome.WAITING
    assert [one.payload for one in work] == ["a ☂", "b"]
    assert (level.pending, level.count, level.buffer) == (2, 0, buffer)
    assert (released.done, released.late) == (2, 0)
    assert buffers.take("jobs", wait=0) == []
    with pytest.raises(InvalidRequest):
        buffers.done("jobs", ["nonsense"])
    buffers.delete("jobs")
    with pytest.raises(BufferNotFound):
        buffers.status("jobs")


def test_a_put_whose_answer_was_lost_is_repeated_only_with_a_key(api: InProcessApi) -> None:
    buffers = HttpsBuffers(api.client())
    buffers.define("jobs", 9)

    # Given a put without a key, then it is not sent again
    api.lost, api.requests[:] = 1, []
    with pytest.raises(ServiceUnavailable):
        buffers.put("jobs", ["a"])
    assert len(api.requests) == 1

    # Given one with a key, then it is, and has one slot
    api.lost, api.requests[:] = 1, []
    buffers.put("jobs", ["b"], key="k")
    assert [json.loads(request.body or b"") for request in api.requests] == [{"payloads": ["b"]}] * 2
    assert buffers.status("jobs").pending == 2
