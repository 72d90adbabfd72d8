"""Buffers over HTTPS do what they do directly, and a put is not sent twice without a key."""

from __future__ import annotations

import json

import pytest

from fanin.app.api import Fanin
from fanin.client.https.services import HttpsServices
from fanin.domain.buffer import Outcome
from fanin.errors import BufferNotFound, FaninError, InvalidRequest, LimitReached, OutcomeUnknown
from tests.unit.client.https.conftest import Gateway


def test_a_buffer_is_the_same_over_the_api_and_on_the_stores(services: Fanin) -> None:
    # Given a buffer
    buffers = services.buffers
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


def test_a_put_whose_answer_was_lost_is_repeated_only_with_a_key(
    over_https: HttpsServices, gateway: Gateway
) -> None:
    buffers = over_https.buffers
    buffers.define("jobs", 9)

    # Given a put without a key, then it is not sent again
    gateway.lost, gateway.requests[:] = 1, []
    with pytest.raises(OutcomeUnknown):
        buffers.put("jobs", ["a"])
    assert len(gateway.requests) == 1

    # Given one with a key, then it is, and has one slot
    gateway.lost, gateway.requests[:] = 1, []
    buffers.put("jobs", ["b"], key="k")
    assert [json.loads(request.body or b"") for request in gateway.requests] == [{"payloads": ["b"]}] * 2
    assert buffers.status("jobs").pending == 2


def test_a_full_buffer_is_told_at_once_and_when_to_come_back(
    over_https: HttpsServices, gateway: Gateway
) -> None:
    over_https.buffers.define("jobs", 1)
    over_https.buffers.put("jobs", ["a"])
    gateway.requests.clear()
    with pytest.raises(LimitReached) as refused:
        over_https.buffers.put("jobs", ["b"])
    assert (refused.value.retry_after, len(gateway.requests)) == (1, 1)


def test_what_a_take_says_is_what_is_taken(over_https: HttpsServices, gateway: Gateway) -> None:
    over_https.buffers.define("jobs", 9)
    over_https.buffers.put("jobs", ["a"])
    gateway.requests.clear()
    over_https.buffers.take("jobs", most=3, wait=0, visibility_timeout=7)
    assert json.loads(gateway.requests[0].body or b"") == {"most": 3, "wait": 0, "visibility_timeout": 7}


def test_a_name_cannot_lead_to_another_path(over_https: HttpsServices, gateway: Gateway) -> None:
    with pytest.raises(FaninError):
        over_https.buffers.delete("a/../jobs?x")
    assert gateway.asked == [("DELETE", "/buffers/a%2F..%2Fjobs%3Fx")]


def test_buffers_are_listed_a_page_at_a_time(services: Fanin) -> None:
    for name in ("a", "b", "c"):
        services.buffers.define(name, 1)
    first = services.buffers.list(limit=2)
    rest = services.buffers.list(cursor=first.cursor, limit=2)
    assert [one.name for one in (*first.buffers, *rest.buffers)] == ["a", "b", "c"]
    assert rest.cursor is None
