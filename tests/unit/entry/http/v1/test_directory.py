"""The routes of the directory, of routing and of events, from the event of API Gateway to its answer."""

from __future__ import annotations

import pytest

from fanin.adapters.memory import Memory


@pytest.fixture(autouse=True)
def _channels(memory: Memory) -> None:
    memory.channels.queues |= {"q1": [], "q2": []}


def test_a_registration_lives_its_life_over_http(call) -> None:
    # Given a registration with attributes
    path = "/v1/directory/cars/a"
    made = call("PUT", path, {"channel": "q1", "attributes": {"colour": "red"}, "lease": 60})
    assert made.status == 200
    assert made.json["channel"] == "q1"
    assert made.json["since"].endswith("Z")

    # When it moves
    call("PUT", path, {"channel": "q2", "attributes": {"colour": "red"}})

    # Then it is found by name, by topic and by attribute, until it leaves
    assert call("GET", path).json["channel"] == "q2"
    for query, found in (({}, 1), ({"attributes": "colour=red"}, 1), ({"attributes": "colour=blue"}, 0)):
        assert len(call("GET", "/v1/directory/cars", **query).json["registrations"]) == found
    assert call("DELETE", path).json == {"deleted": True}
    assert call("DELETE", path).json == {"deleted": False}
    gone = call("GET", path)
    assert (gone.status, gone.json["type"]) == (404, "urn:fanin:problem:not-registered")


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


def test_a_topic_is_paged(call) -> None:
    for name in "abc":
        call("PUT", f"/v1/directory/cars/{name}", {"channel": "q1"})
    first = call("GET", "/v1/directory/cars", limit=2).json
    second = call("GET", "/v1/directory/cars", cursor=first["cursor"]).json
    assert [one["name"] for one in first["registrations"] + second["registrations"]] == ["a", "b", "c"]
    assert second["cursor"] is None
    assert call("GET", "/v1/directory/bikes", cursor=first["cursor"]).status == 400
    assert call("GET", "/v1/directory/cars", attributes="red").status == 400


def test_a_route_lives_its_life_over_http(call, memory: Memory) -> None:
    path, pattern = "/v1/routes/orders", {"source": ["shop"]}
    made = call("PUT", path, {"pattern": pattern, "topic": "desk", "policy": "first"})
    assert made.status == 200
    assert memory.rules.patterns == {"orders": pattern}
    assert call("GET", path).json == made.json
    assert call("GET", "/v1/routes").json == {"routes": [made.json], "cursor": None}
    assert call("DELETE", path).json == {"deleted": True}
    gone = call("GET", path)
    assert (gone.status, gone.json["type"]) == (404, "urn:fanin:problem:route-not-found")


@pytest.mark.parametrize(
    "body",
    [
        {"topic": "desk"},
        {"topic": "desk", "pattern": {}},
        {"topic": "desk", "pattern": {"source": "shop"}},
        {"topic": "desk", "pattern": {"source": ["shop"]}, "policy": "some"},
    ],
)
def test_a_bad_route_is_refused(call, body) -> None:
    assert call("PUT", "/v1/routes/orders", body).status == 400


def test_an_event_goes_to_the_bus_with_a_correlation_id(call, memory: Memory) -> None:
    answer = call("POST", "/v1/events", {"source": "shop", "detail_type": "Placed", "detail": {"n": 7}})
    assert answer.status == 202
    (event,) = memory.events.published
    assert event.detail == {"n": 7, "correlation_id": answer.json["correlation_id"]}
    for source in ("fanin", "aws.s3"):
        assert call("POST", "/v1/events", {"source": source, "detail_type": "x"}).status == 400
