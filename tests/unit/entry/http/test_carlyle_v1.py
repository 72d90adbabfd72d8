"""The original Carlyle's API, called as its Scala client calls it."""

import json

import pytest

from fanin.entry.http.carlyle_v1 import ACKS, CREATE, DECREMENT, DECREMENTS, ITEMS
from fanin.entry.http.validation import checked
from fanin.errors import InvalidRequest
from fanin.wire.shapes import SHAPES

EXACT = "/api/v1/batch/exact"
ESTIMATED = "/api/v1/batch/estimated"


def test_an_exact_batch(call):
    # Given a batch of five items, added in two blocks
    batch_id = call("POST", EXACT, {"userKey": "trip-7"}).json["batchId"]
    assert isinstance(batch_id, int)
    blocks = [
        call("POST", f"{EXACT}/items", {"batchId": batch_id, "items": count}).json["batchItemGroupIds"]
        for count in (3, 2)
    ]
    items = [f"{batch_id}:{group['id']}:{i}" for (group,) in blocks for i in range(group["upto"])]
    assert len(items) == 5
    # When four are acknowledged, the batch is closed, and the last is acknowledged
    assert call("POST", f"{EXACT}/items/ack", {"batchItemIds": items[:4]}).json == {"batchCompletions": []}
    assert call("GET", f"{EXACT}/{batch_id}").json == {
        "batchId": batch_id,
        "isComplete": False,
        "isClosed": False,
        "userKey": "trip-7",
    }
    assert call("POST", f"{EXACT}/close/{batch_id}").json == {"isComplete": False}
    last = call("POST", f"{EXACT}/items/ack", {"batchItemIds": items[4:]})
    # Then the last acknowledgement is told of the completion
    assert last.json == {"batchCompletions": [{"batchId": batch_id, "userKey": "trip-7"}]}
    assert call("GET", f"{EXACT}/{batch_id}").json["isComplete"] is True
    assert call("POST", f"{EXACT}/close/{batch_id}").json == {"isComplete": True}


def test_a_batch_id_may_be_text_and_a_user_key_may_be_missing(call):
    batch_id = call("POST", EXACT, {}).json["batchId"]
    added = call("POST", f"{EXACT}/items", {"batchId": str(batch_id), "items": 1, "hint": "unknown"})
    assert added.status == 200
    assert call("GET", f"{EXACT}/{batch_id}").json["userKey"] is None


@pytest.mark.parametrize("path", [f"{EXACT}/", f"{ESTIMATED}/"])
def test_the_collection_may_end_in_a_slash(call, path):
    assert call("POST", path, {"userKey": None}).status == 200


@pytest.mark.parametrize(
    ("method", "path", "allow"),
    [
        ("GET", f"{EXACT}/closed", "DELETE, OPTIONS"),
        ("GET", f"{EXACT}/", "OPTIONS, POST"),
        ("DELETE", f"{ESTIMATED}/decr", "OPTIONS, POST"),
    ],
)
def test_what_a_path_spells_out_is_not_a_batch(call, method, path, allow):
    answer = call(method, path)
    assert (answer.status, answer.headers.get("Allow")) == (405, allow)


@pytest.mark.parametrize("since", ["4102444800000", "2100-01-01T00:00:00.000Z"])
def test_open_and_closed_batches_are_deleted(call, since):
    # Given an open batch, one closed, and one complete, of two items each
    ids = [call("POST", EXACT, {}).json["batchId"] for _ in range(3)]
    for batch_id in ids:
        group = call("POST", f"{EXACT}/items", {"batchId": batch_id, "items": 2}).json["batchItemGroupIds"][0]
    call("POST", f"{EXACT}/close/{ids[1]}")
    call("POST", f"{EXACT}/close/{ids[2]}")
    call("POST", f"{EXACT}/items/ack", {"batchItemIds": [f"{ids[2]}:{group['id']}:{i}" for i in (0, 1)]})
    # When the closed are deleted, then the open
    closed = call("DELETE", f"{EXACT}/closed", since=since)
    opened = call("DELETE", f"{EXACT}/open", since=since)

    assert closed.json == {"batchesRemoved": 2, "itemsRemoved": 4}
    assert opened.json == {"batchesRemoved": 1, "itemsRemoved": 2}


def test_nothing_younger_than_since_is_deleted(call):
    call("POST", EXACT, {})
    assert call("DELETE", f"{EXACT}/open", since=1).json == {"batchesRemoved": 0, "itemsRemoved": 0}


def test_an_estimated_batch(call):
    # Given a closed batch of three messages
    batch_id = call("POST", ESTIMATED, {"userKey": "fleet"}).json["batchId"]
    assert call("POST", f"{ESTIMATED}/{batch_id}/incr", by=3).status == 204
    assert call("POST", f"{ESTIMATED}/{batch_id}/close").json == {
        "batchId": batch_id,
        "userKey": "fleet",
        "isComplete": False,
    }
    # When they are counted down, by one if nothing is said
    first = call("POST", f"{ESTIMATED}/decr", {"acks": [{"batchId": batch_id}]})
    last = call("POST", f"{ESTIMATED}/decr", {"acks": [{"batchId": batch_id, "by": 1}] * 2})
    # Then it is complete with the last
    assert first.json["results"][0]["isComplete"] is False
    assert last.json["results"] == [{"batchId": batch_id, "userKey": "fleet", "isComplete": True}]
    assert call("GET", f"{ESTIMATED}/{batch_id}").json == {
        "isComplete": True,
        "isClosed": True,
        "userKey": "fleet",
    }


def test_a_deleted_estimated_batch_reads_as_closed(call):
    batch_id = call("POST", ESTIMATED, {}).json["batchId"]
    answer = call("DELETE", f"{ESTIMATED}/{batch_id}")
    assert (answer.status, answer.text) == (204, "")
    standing = call("GET", f"{ESTIMATED}/{batch_id}").json
    assert (standing["isClosed"], standing["isComplete"]) == (True, False)


@pytest.mark.parametrize(
    ("method", "path", "body", "query", "status"),
    [
        ("POST", EXACT, {"userKey": 7}, {}, 400),
        ("POST", f"{EXACT}/items", {"batchId": "x", "items": 1}, {}, 400),
        ("POST", f"{EXACT}/items", {"batchId": 5, "items": 1}, {}, 404),
        ("POST", f"{EXACT}/items/ack", {"batchItemIds": ["x"]}, {}, 400),
        ("GET", f"{EXACT}/nine", None, {}, 400),
        ("GET", f"{EXACT}/9", None, {}, 404),
        ("DELETE", f"{EXACT}/open", None, {}, 400),
        ("GET", f"{ESTIMATED}/9", None, {}, 400),
        ("GET", f"{ESTIMATED}/00000000-0000-8000-8000-000000000009", None, {}, 404),
        ("POST", f"{ESTIMATED}/decr", {"acks": [{"batchId": "9"}]}, {}, 400),
        ("POST", f"{ESTIMATED}/00000000-0000-8000-8000-000000000009/incr", None, {}, 400),
    ],
)
def test_bad_requests_are_problems(call, memory, *, method, path, body, query, status):
    answer = call(method, path, body, **query)
    assert answer.status == status, answer.text
    assert answer.headers["Content-Type"] == "application/problem+json"
    assert memory.accesses.writes == memory.accesses.refused


# What its shapes take.

OF_CARLYLE = {shape for name, shape in SHAPES.items() if name.startswith("Carlyle")}


@pytest.mark.parametrize("batch_id", [0, 5, "5", 2**53 - 1, str(2**53 - 1)])
def test_a_batch_id_is_a_number_or_its_digits(batch_id):
    body = {"batchId": batch_id, "items": 1}
    assert checked(ITEMS, json.dumps(body)) == body


@pytest.mark.parametrize("batch_id", [-1, 2**53, "x", "", "-1", "1" * 17, None, 1.5])
def test_another_batch_id_is_refused(batch_id):
    with pytest.raises(InvalidRequest, match=r"/batchId must be a whole number from 0 to .* or text"):
        checked(ITEMS, json.dumps({"batchId": batch_id, "items": 1}))


def test_unknown_fields_are_ignored_in_requests_and_never_in_answers():
    assert checked(CREATE, '{"userKey": "k", "hint": 1}') == {"userKey": "k", "hint": 1}
    lenient = {shape for shape in OF_CARLYLE if shape.definition["additionalProperties"]}
    assert len(OF_CARLYLE) > 10
    assert lenient == {CREATE, ITEMS, ACKS, DECREMENT, DECREMENTS}
