"""The routes of frames, from the event of API Gateway to its answer."""

from __future__ import annotations

import pytest

from fanin.adapters.memory import Memory
from fanin.entry.http.v1.frames import ROUTES
from fanin.entry.http.validation import checked


def test_a_frame_lives_its_whole_life_over_http(call) -> None:
    # Given a frame of three envelopes
    opened = call("POST", "/v1/frames", {"size": 3, "source": "orders", "ttl": 90})
    assert (opened.status, opened.json["state"], opened.json["ttl"]) == (201, "closed", 90)
    frame_id = opened.json["frame_id"]

    # When two are claimed, and one of them is acknowledged
    tickets = [{"frame_id": frame_id, "index": index} for index in (0, 1)]
    claimed = call("POST", "/v1/claims", {"claims": tickets, "lease": 5}).json["claims"]
    call("POST", "/v1/acks", {"marks": [claimed[1]["item"]]})

    # Then the frame says what is missing, and claims what may be done
    assert call("GET", f"/v1/frames/{frame_id}").json["missing"] == [[0, 1], [2, 3]]
    again = call("POST", "/v1/claims", {"claims": tickets}).json["claims"]
    assert [claim["hold"] for claim in claimed] == ["claimed", "claimed"]
    assert [claim["hold"] for claim in again] == ["leased", "done"]


def test_answers_are_of_the_form_that_the_document_promises(call) -> None:
    frame_id = call("POST", "/v1/frames", {"size": 1}).json["frame_id"]
    bodies = {"openFrame": {"size": 2}, "claimEnvelopes": {"claims": [{"frame_id": frame_id, "index": 0}]}}
    for route in ROUTES:
        path = route.path.replace("{frame_id}", str(frame_id))
        answer = call(route.method, path, bodies.get(route.operation))
        assert answer.status == route.status
        checked(route.answer, answer.text)


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
