"""What is refused: each with its status, its stable type, and nothing written."""

from http import HTTPStatus

import pytest

from fanin import errors
from fanin.errors import STATUS

INVALID = "invalid-request"


@pytest.mark.parametrize(
    ("method", "path", "body", "query", "status", "code", "says"),
    [
        ("POST", "/v1/batches", {"userkey": "x"}, {}, 400, INVALID, "'userkey'; known are user_key"),
        ("POST", "/v1/batches", {"deadline": "2026-02-30T00:00:00Z"}, {}, 400, INVALID, "deadline"),
        ("POST", "/v1/batches", [], {}, 400, INVALID, "the body must be an object, not an array"),
        ("GET", "/v1/batches", None, {}, 400, INVALID, "state"),
        ("GET", "/v1/batches", None, {"state": "shut"}, 400, INVALID, "'state' must be one of open"),
        ("GET", "/v1/batches", None, {"state": "open", "colour": 1}, 400, INVALID, "colour"),
        ("GET", "/v1/batches", None, {"state": "open", "cursor": "x"}, 400, INVALID, "cursor"),
        ("GET", "/v1/batches/x", None, {}, 400, INVALID, "'x'"),
        ("GET", "/v1/batches/9007199254740992", None, {}, 400, INVALID, "2^53"),
        ("GET", "/v1/batches/5", None, {}, 404, "batch-not-found", "5"),
        ("GET", "/v1/batches/5", None, {"exact": "yes"}, 400, INVALID, "'exact' must be true or false"),

        ("POST", "/v1/batches/5/items", {"count": True}, {}, 400, INVALID, "/count must be a whole number"),
        ("POST", "/v1/acks", {"marks": "x"}, {}, 400, INVALID, "/marks must be an array"),
        ("POST", "/v1/acks", {"marks": ["x"] * 10_001}, {}, 413, "request-too-large", "10000"),
        ("POST", "/v1/acks", {"marks": [{"failed": "x"}] * 1_001}, {}, 413, "request-too-large", "10000"),
        ("POST", "/v1/acks", {"marks": [], "items": []}, {}, 400, INVALID, "items"),
        ("DELETE", "/v1/batches", None, {"state": "open", "idle_since": "1"}, 400, INVALID, "idle"),
    ],
)  # fmt: skip
def test_a_bad_request_is_refused_and_writes_nothing(
    call, memory, *, method, path, body, query, status, code, says
):
    answer = call(method, path, body, **query)

    assert answer.status == status, answer.text
    assert answer.headers["Content-Type"] == "application/problem+json"
    assert answer.json["type"] == f"urn:fanin:problem:{code}"
    assert answer.json["status"] == status
    assert answer.json["request_id"] == "request-of-gateway"
    assert says in answer.json["detail"]
    assert memory.accesses.writes == memory.accesses.refused


@pytest.mark.parametrize(
    "raw", ["", "{", "nonsense", '{"count": NaN}', "[" * 100_000, '{"user_key": "\\ud800"}', "1" * 5_000]
)
def test_what_is_not_json_is_refused(call, raw):
    answer = call("POST", "/v1/batches", raw=raw)
    assert (answer.status, answer.json["type"]) == (400, "urn:fanin:problem:invalid-request")
    assert "not JSON" in answer.json["detail"]


def test_a_full_batch_pushes_back(call):
    batch_id = call("POST", "/v1/batches", {"limit": 2}).json["batch_id"]
    assert call("POST", f"/v1/batches/{batch_id}/items", {"count": 2}).status == 201
    answer = call("POST", f"/v1/batches/{batch_id}/items", {"count": 1})
    assert (answer.status, answer.json["type"]) == (429, "urn:fanin:problem:limit-reached")
    assert (answer.headers["Retry-After"], answer.json["retry_after"]) == ("1", 1)
    assert answer.headers["RateLimit"] == '"limit-reached";r=0;t=1'


def test_every_error_that_a_caller_can_cause_has_a_status():
    tree = {errors.FaninError}
    while any(new := {sub for cls in tree for sub in cls.__subclasses__()} - tree):
        tree |= new
    ours = {
        errors.FaninError,
        errors.NotConfigured,
        errors.SendFailed,
        errors.TargetRefused,
        errors.BufferFull,
        errors.EnvelopesRefused,
        errors.ItemFailed,
        errors.JobRunNotFound,
        errors.PartlyMarked,
        errors.TooManyRejects,
        errors.Unreachable,
        errors.ExportDamaged,
        errors.LocalStackFailed,
    }
    assert {cls for cls in tree if cls.__module__ == "fanin.errors"} - ours == set(STATUS)


# Which errors reach callers, and with which status.


def test_statuses_are_those_of_refusals():
    assert all(400 <= status < 600 and HTTPStatus(status).phrase for status in STATUS.values())


def test_a_fault_of_the_service_is_one_that_passes():
    """5xx tells a client to repeat the call, so every such error must be retryable."""
    faults = {error for error, status in STATUS.items() if status >= 500}
    assert faults == {errors.Throttled, errors.ServiceUnavailable}
    assert all(error.retryable for error in faults)


def test_a_refusal_that_passes_says_so_by_its_status():
    retryable = {error: status for error, status in STATUS.items() if error.retryable}
    assert set(retryable.values()) <= {429, 503}
    assert retryable[errors.LimitReached] == 429


def test_an_error_and_its_parent_are_of_one_kind():
    """A client that knows only the parent, by its status, still does the right thing."""
    for error, status in STATUS.items():
        parents = [parent for parent in error.__mro__[1:] if parent in STATUS]
        assert all(STATUS[parent] // 100 == status // 100 for parent in parents)
