"""The API's routes, from the event of API Gateway to its answer."""

import pytest

from fanin.adapters.memory import Memory
from fanin.app.ports.parts import IN_ROW, FailureRow
from fanin.domain.batch import OpenBatch
from fanin.domain.marks import Failure


def test_a_batch_lives_its_whole_life_over_http(call, memory):
    # Given an open batch of three items
    opened = call("POST", "/v1/batches", {"user_key": "catalog-42", "metadata": {"team": "blue"}})
    assert opened.status == 201
    assert opened.json["state"] == "open"
    assert opened.json["created_at"].endswith("Z")
    assert "salt" not in opened.json
    path = f"/v1/batches/{opened.json['batch_id']}"
    group = call("POST", f"{path}/items", {"count": 3})
    assert group.status == 201
    assert group.json["upto"] == 3
    prefix = f"{group.json['batch_id']}:{group.json['id']}"
    # When two are acknowledged, one of them twice, one fails, and the batch is closed
    receipts = call("POST", "/v1/acks", {"marks": [f"{prefix}:0", f"{prefix}:1"]})
    again = call("POST", "/v1/acks", {"marks": [f"{prefix}:1"]})
    failed = call("POST", "/v1/acks", {"marks": [{"failed": f"{prefix}:2", "reason": "no price"}]})
    closed = call("POST", f"{path}/close")
    # Then every receipt says what it did, and the batch is complete
    assert receipts.json["batches"][0]["first"] == 2
    assert again.json["batches"][0]["duplicates"] == [f"{prefix}:1"]
    receipt = failed.json["batches"][0]
    assert (receipt["first"], receipt["failed"]) == (1, 1)
    assert (closed.status, closed.json["state"]) == (200, "complete")
    assert closed.json["ended_at"] is not None
    failures = call("GET", f"{path}/failures").json["failures"]
    assert [(f["ordinal"], f["reason"]) for f in failures] == [(2, "no price")]
    status = call("GET", path, exact="true").json
    assert (status["done_min"], status["done_max"], status["user_key"]) == (3, 3, "catalog-42")


def test_missing_is_told_as_ranges_that_can_be_acknowledged(call):
    # Given a closed batch of 100 items, of which 10 to 89 are acknowledged as a range
    batch_id = call("POST", "/v1/batches", {}).json["batch_id"]
    group = call("POST", f"/v1/batches/{batch_id}/items", {"count": 100}).json
    prefix = f"{batch_id}:{group['id']}"
    receipts = call("POST", "/v1/acks", {"marks": [{"group": prefix, "from": 10, "to": 90}]}).json
    assert receipts["batches"][0]["ranged"] == 80
    call("POST", f"/v1/batches/{batch_id}/close")
    # When what is missing is acknowledged by its ranges as they are
    missing = call("GET", f"/v1/batches/{batch_id}/missing", limit=10).json
    assert missing["ranges"] == [
        {"group": prefix, "from": 0, "to": 10},
        {"group": prefix, "from": 90, "to": 100},
    ]
    receipts = call("POST", "/v1/acks", {"marks": missing["ranges"]}).json

    assert receipts["batches"][0]["complete"] is True


def test_all_options_of_a_batch_come_back(call):
    options = {
        "user_key": "k", "mode": "exact", "idle_ttl": 600, "lifetime": 86_400,
        "deadline": "2026-09-22T10:00:00.250Z", "on_deadline": "complete", "limit": 9, "metadata": {"a": "b"},
    }  # fmt: skip
    answer = call("POST", "/v1/batches", options).json
    durations = {name: options.pop(name) for name in ("idle_ttl", "lifetime")}
    assert {name: answer[name] for name in options} == options
    assert (answer["open_idle_ttl"], answer["closed_idle_ttl"]) == (durations["idle_ttl"],) * 2


@pytest.mark.parametrize(
    ("message", "detail"),
    [
        ({"body": "b", "attributes": {"a": {"type": "Binary", "binary": "no base64!"}}}, "not base64"),
        ({"body": "b", "attributes": {"a": {"type": "Binary", "value": "text"}}}, "must be bytes"),
        ({"body": "b", "group_id": "g" * 129}, "the group of a message"),
        ({}, "body"),
    ],
)
def test_a_message_that_cannot_be_kept_is_refused(call, memory, message, detail):
    batch_id = call("POST", "/v1/batches", {}).json["batch_id"]
    group = call("POST", f"/v1/batches/{batch_id}/items", {"count": 1}).json
    before = memory.accesses.writes.total()

    item = f"{batch_id}:{group['id']}:0"
    answer = call("POST", "/v1/acks", {"marks": [{"failed": item, "message": message}]})

    assert (answer.status, memory.accesses.writes.total()) == (200, before)
    (refused,) = answer.json["refused"]
    assert (refused["place"], refused["code"]) == (0, "invalid-request")
    assert detail in refused["detail"]


def test_bad_entries_are_refused_by_their_places_and_nothing_else(call, ledger):
    # Given a request with good marks, and bad ones of every kind between them
    group = ledger.add(ledger.open(OpenBatch(totals=("rows",))).batch_id, 5)
    bad = [
        ("nonsense", "invalid-item-id"),
        (f"77:{group.id}:0", "batch-not-found"),
        ({"item": group[1], "totals": {"lines": 1}}, "invalid-request"),
        ({"failed": group[1], "reason": "\ud83d"}, "invalid-request"),
        ({"item": group[1], "failed": group[1]}, "invalid-request"),
        ({"item": group[1], "hint": 1}, "invalid-request"),
        ({"failed": 3}, "invalid-item-id"),
        ({"from": 1}, "invalid-request"),
        ({"batch_id": group.batch_id, "count": 1}, "invalid-request"),
        (7, "invalid-request"),
        (None, "invalid-request"),
    ]
    good = [group[0], {"item": group[2], "totals": {"rows": 7}}, {"failed": group[3], "reason": "no price"}]

    answer = call("POST", "/v1/acks", {"marks": [*good, *(entry for entry, _ in bad), group[4]]})

    assert answer.status == 200
    assert [(one["place"], one["code"]) for one in answer.json["refused"]] == [
        (3 + n, code) for n, (_, code) in enumerate(bad)
    ]
    assert answer.json["left"] == []
    (receipt,) = answer.json["batches"]
    assert (receipt["first"], receipt["failed"]) == (4, 1)
    assert ledger.status(group.batch_id).batch.totals == {"rows": 7}


def test_a_message_of_more_than_4_mib_is_refused_alone(call, ledger):
    group = ledger.add(ledger.open(OpenBatch()).batch_id, 2)
    large = {"failed": group[0], "message": {"body": "\n" * 2_200_000}}  # two bytes each as JSON

    answer = call("POST", "/v1/acks", {"marks": [large, group[1]]})

    assert [(one["place"], one["code"]) for one in answer.json["refused"]] == [(0, "request-too-large")]
    assert answer.json["batches"][0]["first"] == 1
    assert call("POST", "/v1/acks", {"marks": ["x" * 6_000_000]}).status == 413


def test_a_batch_has_the_same_fields_whatever_it_was_opened_with(call):
    plain = call("POST", "/v1/batches", {}).json
    assert list(call("POST", "/v1/batches", {"totals": ["rows"], "max_items": 9}).json) == list(plain)
    assert (plain["totals"], plain["tolerated_failures"], plain["max_items"]) == ({}, None, None)


def test_a_batch_that_holds_and_tolerates_over_http(call):
    tolerated = {"percent": 12.5, "min_sample": 50}
    opened = call("POST", "/v1/batches", {"on_failure": "hold", "tolerated_failures": tolerated}).json
    path = f"/v1/batches/{opened['batch_id']}"
    group = call("POST", f"{path}/items", {"count": 3}).json
    items = [f"{group['batch_id']}:{group['id']}:{n}" for n in range(3)]
    call("POST", f"{path}/close")

    failures = {"marks": [{"failed": item, "reason": f"no price {item[-1]}"} for item in items]}
    (receipt,) = call("POST", "/v1/acks", failures).json["batches"]

    assert (opened["on_failure"], opened["tolerated_failures"], opened["cause"]) == ("hold", tolerated, None)
    assert (receipt["held"], receipt["first"]) == (3, 0)
    row = call("GET", path).json
    assert (row["held"], row["held_more"], row["done_min"]) == (3, False, 0)
    assert call("GET", path, brief="true").json["done_max"] == 3
    assert [one["held"] for one in call("GET", f"{path}/failures").json["failures"]] == [True] * 3
    answer = call("POST", f"{path}/release", {"ranges": [{"from": 0, "to": 1}]}).json
    assert (answer["released"], answer["batch"]["held"], answer["cursor"]) == (1, 2, None)
    assert call("POST", f"{path}/release", {}).json["batch"]["state"] == "complete"


# The routes of bounded buffers.


def test_rejects_waits_and_depth_are_measured(call, measured):
    call("PUT", "/v1/buffers/jobs", {"limit": 1})
    call("POST", "/v1/buffers/jobs/put", {"payloads": ["a"]})
    call("POST", "/v1/buffers/jobs/put", {"payloads": ["b"]})
    call("POST", "/v1/buffers/jobs/take", {"wait": 0})
    call("GET", "/v1/buffers/jobs")
    assert measured() == {"BufferRejects": [1.0], "BufferWaitMilliseconds": [0.0], "BufferDepth": [1.0]}


def test_a_buffer_whose_record_cannot_be_read_is_counted_and_the_others_listed(
    call, memory, caplog, measured
):
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


# The route of the bit picture.


def test_a_picture_shows_cells_and_items(call):
    # Given 100 items, of which the last one failed, and all before 65 are done
    batch_id = call("POST", "/v1/batches", {}).json["batch_id"]
    group = call("POST", f"/v1/batches/{batch_id}/items", {"count": 100}).json
    prefix, path = f"{batch_id}:{group['id']}", f"/v1/batches/{batch_id}/picture"
    call("POST", "/v1/acks", {"marks": [{"group": prefix, "from": 0, "to": 65}]})
    call("POST", "/v1/acks", {"marks": [{"failed": f"{prefix}:99", "reason": "no price"}]})
    # When its root and one word below are looked at
    root = call("GET", path).json
    below = call("GET", path, level="0", number="1").json
    # Then cells have their words in hexadecimal, and items their states
    assert {name: root[name] for name in ("level", "number", "root_level", "size", "start", "stop")} == {
        "level": 1, "number": 0, "root_level": 1, "size": 100, "start": 0, "stop": 100,
    }  # fmt: skip
    assert root["items"] == []
    assert root["cells"][1] == {
        "number": 1, "start": 64, "stop": 100, "parts": 36, "done_min": 2, "done_max": 2,
        "failed": 1, "failed_more": False, "word": "00000007fffffffe",
    }  # fmt: skip
    assert root["cells"][0]["word"] == "0" * 16
    assert below["cells"] == []
    assert [(item["ordinal"], item["state"]) for item in below["items"]] == [
        (64, "done"), *((n, "pending") for n in range(65, 99)), (99, "failed"),
    ]  # fmt: skip
    assert below["items"][0]["leased_until"] is None
    assert call("POST", "/v1/acks", {"marks": [below["items"][1]["item"]]}).json["batches"][0]["first"] == 1


# The routes of redrives, from the event of API Gateway to its answer.


QUEUE = "https://sqs/work"


@pytest.fixture
def batch(memory: Memory, ledger) -> int:
    """Two failures with their messages."""
    memory.channels.queues[QUEUE] = []
    batch = ledger.open(OpenBatch())
    group = ledger.add(batch.batch_id, 2)
    notes = [FailureRow(n, item, f"row {n}", 1, 1, QUEUE, IN_ROW) for n, item in enumerate(group)]
    memory.parts.put_failures(batch.batch_id, notes, expires_at=2**40)
    memory.parts.put_messages(batch.batch_id, dict.fromkeys(range(2), b'{"body": "x"}'), expires_at=2**40)
    ledger.mark([Failure(item, "x") for item in group]).whole()
    return ledger.close(batch.batch_id).batch_id


def test_a_redrive_is_asked_for_and_listed(call, batch, memory):
    path, body = f"/v1/batches/{batch}/redrive", {"errors": ["row"], "ranges": [{"from": 0, "to": 1}]}
    dry = call("POST", path, {**body, "dry_run": True})
    first = call("POST", path, body)
    again = call("POST", path, body)
    assert [one.status for one in (dry, first, again)] == [200, 200, 200]
    assert [one.json["items"] for one in (dry, first, again)] == [1, 1, 0]
    assert len(memory.channels.queues[QUEUE]) == 1
    # And both are listed, with their selection
    listed = call("GET", f"/v1/batches/{batch}/redrives").json
    assert [one["items"] for one in listed["redrives"]] == [1, 0]
    assert listed["redrives"][0]["ranges"] == [{"from": 0, "to": 1}]
    assert listed["redrives"][0]["batch_id"] == first.json["batch_id"]
    assert listed["cursor"] is None
