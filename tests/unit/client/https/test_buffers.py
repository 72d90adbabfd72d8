"""Buffers over HTTPS do what they do directly, and a put is not sent twice without a key."""

import json
from dataclasses import replace
from typing import Any, cast

import pytest

from fanin.adapters.backoff import Backoff
from fanin.app.api import Buffers
from fanin.client.https.api import HttpsApi
from fanin.client.https.services import HttpsServices
from fanin.client.https.transport import unsigned
from fanin.domain.buffer import PutOutcome
from fanin.errors import InvalidRequest, OutcomeUnknown
from tests.unit.client.https.conftest import URL, Gateway


def test_a_put_whose_answer_was_lost_is_repeated_only_with_a_key(over_https, gateway):
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


def test_a_name_cannot_lead_to_another_path(over_https, gateway):
    for call in over_https.buffers.delete, over_https.buffers.poll:
        with pytest.raises(InvalidRequest, match=r"must not have / or \?"):
            call("a/../jobs?x")
    assert gateway.asked == []


class TestWaiting:
    """A take waits in the client: while a request waits in the service, a function is paid for."""

    @pytest.fixture
    def pauses(self) -> list[float]:
        return []

    @pytest.fixture
    def buffers(self, gateway: Gateway, pauses: list[float]) -> Buffers:
        patient = Backoff(base=0.5, cap=5.0, sleep=pauses.append, fraction=lambda: 1.0)
        api = HttpsApi(URL, sign=unsigned, transport=gateway, backoff=Backoff(sleep=lambda _: None))
        buffers = cast("type[Any]", type(HttpsServices(api).buffers))(api, pauses=patient)
        buffers.define("jobs", 3)
        gateway.requests.clear()
        return buffers

    @staticmethod
    def bodies(gateway: Gateway) -> list[dict[str, Any]]:
        return [json.loads(request.body or b"{}") for request in gateway.requests]

    def test_no_request_waits_in_the_service(self, buffers, gateway, pauses, memory):
        # Given an empty buffer
        # When a taker waits for twenty seconds
        writes = memory.accesses.writes.total()
        assert buffers.take("jobs", wait=20) == []
        # Then it has asked after pauses that grow, which are as long together
        assert pauses == [0.5, 1.0, 2.0, 4.0, 5.0, 5.0, 2.5]
        # And no request waited, and one row says that it waits
        assert {body.get("wait", 0) for body in self.bodies(gateway)} == {0}
        assert memory.accesses.writes.total() - writes == 1

    def test_pauses_go_on_growing_until_there_is_work(self, buffers, pauses):
        for _ in range(2):
            buffers.take("jobs", wait=5)
        assert pauses == [0.5, 1.0, 2.0, 1.5, 5.0]
        buffers.put("jobs", ["a"])
        assert len(buffers.take("jobs", wait=20)) == 1
        pauses.clear()
        buffers.take("jobs", wait=1)
        assert pauses == [0.5, 0.5]

    def test_work_that_is_there_takes_one_request_and_no_row(self, buffers, gateway, memory):
        buffers.put("jobs", ["a"])
        gateway.requests.clear()
        writes = memory.accesses.writes.total()
        (work,) = buffers.take("jobs", wait=20)
        assert work.payload == "a"
        assert len(gateway.requests) == 1
        assert memory.accesses.writes.total() == writes

    def test_a_taker_that_waits_is_counted_until_it_has_work(self, buffers):
        # Given a taker that waits, and a producer who looks meanwhile
        seen: list[object] = []

        def produce(_: float) -> None:
            if not seen:
                seen.append(buffers.status("jobs").count)
                seen.append(buffers.put("jobs", ["a"]).outcome)

        buffers._pauses = replace(buffers._pauses, sleep=produce)
        # Then it counts, the put is ready, and afterwards nobody waits
        assert [one.payload for one in buffers.take("jobs", wait=20)] == ["a"]
        assert seen == [-1, PutOutcome.READY]
        assert buffers.status("jobs").count == 0
