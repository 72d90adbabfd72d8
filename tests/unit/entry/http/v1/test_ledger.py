"""The API's routes, from the event of API Gateway to its answer."""

from __future__ import annotations

import pytest

from fanin.adapters.memory import Memory
from fanin.app.ledger.service import LedgerService
from fanin.domain.batch import OnFailure, OpenBatch
from fanin.entry.http import carlyle_v1
from fanin.entry.http.table import ROUTES
from fanin.entry.http.v1 import ledger as v1
from fanin.entry.http.validation import checked
from fanin.wire.problems import DOCUMENT


def test_a_batch_lives_its_whole_life_over_http(call, memory: Memory) -> None:
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


def test_missing_is_told_as_ranges_that_can_be_acknowledged(call) -> None:
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

    # Then the batch is complete
    assert receipts["batches"][0]["complete"] is True


def test_the_same_idempotency_key_adds_once(call, ledger: LedgerService) -> None:
    batch_id = call("POST", "/v1/batches", {}).json["batch_id"]
    path, key = f"/v1/batches/{batch_id}/items", {"idempotency-key": "run-7"}

    first = call("POST", path, {"count": 5}, headers=key)
    repeat = call("POST", path, {"count": 5}, headers=key)
    other = call("POST", path, {"count": 6}, headers=key)

    assert repeat.json == first.json
    assert other.status == 409
    assert other.json["type"] == "urn:fanin:problem:idempotency-key-reused"
    assert ledger.status(batch_id).batch.items == 5


def test_the_same_idempotency_key_opens_once(call, ledger: LedgerService) -> None:
    # Given a batch that was opened under a key, and has got items
    key = {"idempotency-key": "run-7"}
    first = call("POST", "/v1/batches", {"user_key": "nightly"}, headers=key)
    ledger.add(first.json["batch_id"], 5)

    # When it is opened again, and another request comes with the key
    repeat = call("POST", "/v1/batches", {"user_key": "nightly"}, headers=key)
    other = call("POST", "/v1/batches", {"user_key": "daily"}, headers=key)

    # Then it is the same batch, and the other request is refused
    assert repeat.status == 201
    assert (repeat.json["batch_id"], repeat.json["items"]) == (first.json["batch_id"], 5)
    assert other.status == 409
    assert other.json["type"] == "urn:fanin:problem:idempotency-key-reused"


def test_batches_are_listed_by_state_and_expired(call, memory: Memory) -> None:
    # Given two open batches, and an hour gone
    ids = {call("POST", "/v1/batches", {}).json["batch_id"] for _ in range(2)}
    listed = call("GET", "/v1/batches", state="open", limit=10).json["batches"]
    assert {batch["batch_id"] for batch in listed} <= ids
    memory.clock.advance(3_600_000)

    # When all without activity are expired
    expired = call("DELETE", "/v1/batches", state="open", idle_since="2100-01-01T00:00:00Z")

    # Then both are orphaned
    assert expired.json == {"batches": 2, "items": 0, "cursor": None}
    assert {call("GET", f"/v1/batches/{batch_id}").json["state"] for batch_id in ids} == {"orphaned"}


def test_batches_are_listed_by_user_key_and_the_newest_first(call, memory: Memory) -> None:
    # Given two batches of a user key, of which one is cancelled, and another
    older, newer, _ = (_opened(call, memory, user_key) for user_key in ("a & b#☂", "a & b#☂", "c"))
    call("POST", f"/v1/batches/{newer}/cancel")

    def listed(**query: object) -> list[int]:
        return [batch["batch_id"] for batch in call("GET", "/v1/batches", **query).json["batches"]]

    # Then they are found by it, in any state or in one, in pages
    assert listed(user_key="a & b#☂") == [newer, older]
    assert listed(user_key="a & b#☂", state="open") == [older]
    first = call("GET", "/v1/batches", user_key="a & b#☂", limit=1).json
    assert listed(user_key="a & b#☂", cursor=first["cursor"]) == [older]
    assert listed(user_key="nobody's") == []


def _opened(call, memory: Memory, user_key: str) -> int:
    memory.clock.advance(1_000)
    return call("POST", "/v1/batches", {"user_key": user_key}).json["batch_id"]


def test_a_listing_says_what_it_needs(call) -> None:
    needs = "give a state (open, closed, complete, timed_out, cancelled, orphaned), a user_key, or both"
    for query, detail in (({}, needs), ({"user_key": ""}, "user_key"), ({"user_key": "k" * 257}, "user_key")):
        refused = call("GET", "/v1/batches", **query)
        assert (refused.status, detail in refused.json["detail"]) == (400, True), refused.text


def test_cancel_and_verify(call) -> None:
    batch_id = call("POST", "/v1/batches", {}).json["batch_id"]
    call("POST", f"/v1/batches/{batch_id}/items", {"count": 2})

    verdict = call("POST", f"/v1/batches/{batch_id}/verify", repair="false").json
    assert (verdict["pending"], verdict["disagreements"], verdict["cursor"]) == (2, [], None)
    assert call("POST", f"/v1/batches/{batch_id}/cancel").json["state"] == "cancelled"


def test_an_estimated_batch_counts(call) -> None:
    batch_id = call("POST", "/v1/batches", {"mode": "estimated"}).json["batch_id"]
    call("POST", f"/v1/batches/{batch_id}/items", {"count": 2})
    call("POST", f"/v1/batches/{batch_id}/close")

    receipt = call("POST", "/v1/acks", {"marks": [{"batch_id": batch_id, "count": 2}]}).json["batches"][0]

    assert (receipt["ranged"], receipt["complete"]) == (2, True)


def test_all_options_of_a_batch_come_back(call) -> None:
    options = {
        "user_key": "k", "mode": "exact", "idle_ttl": 600, "lifetime": 86_400,
        "deadline": "2026-09-22T10:00:00.250Z", "on_deadline": "complete", "limit": 9, "metadata": {"a": "b"},
    }  # fmt: skip
    answer = call("POST", "/v1/batches", options).json
    durations = {name: options.pop(name) for name in ("idle_ttl", "lifetime")}
    assert {name: answer[name] for name in options} == options
    assert (answer["open_idle_ttl"], answer["closed_idle_ttl"]) == (durations["idle_ttl"],) * 2


def test_answers_are_of_the_form_that_the_document_promises(call, ledger: LedgerService) -> None:
    # Given a batch with something in every list
    batch_id = ledger.open(OpenBatch(user_key="k", on_failure=OnFailure.HOLD)).batch_id
    group = ledger.add(batch_id, 4)
    bodies = {
        "releaseItems": {"errors": ["r"], "ranges": [{"from": 0, "to": 1}]},
        "openBatch": {"metadata": {"a": "b"}},
        "addItems": {"count": 1},
        "markItems": {
            "marks": [group[0], group[0], {"failed": group[1], "reason": "r", "message": {"body": "b"}}, 7]
        },
        "carlyleCreateExact": {"userKey": None},
        "carlyleCreateEstimated": {},
        "carlyleAddExact": {"batchId": batch_id, "items": 2},
        "carlyleAckExact": {"batchItemIds": [group[2]]},
        "carlyleDecrement": {"acks": []},
    }
    queries = {
        "listBatches": {"state": "open"},
        "expireBatches": {"state": "open", "idle_since": "2020-01-01T00:00:00Z"},
        "carlyleDeleteOpen": {"since": "1"},
        "carlyleDeleteClosed": {"since": "1"},
        "carlyleIncrement": {"by": 1},
    }
    last = (
        "getFailure",
        "closeBatch",
        "cancelBatch",
        "redeliverTargets",
        "carlyleCloseExact",
        "carlyleCloseEstimated",
        "carlyleDeleteEstimated",
        "removeBatch",
    )
    ours = [
        route for route in ROUTES if route in (*v1.ROUTES, *carlyle_v1.ROUTES) or route.answer is DOCUMENT
    ]
    for route in sorted(
        ours, key=lambda route: last.index(route.operation) if route.operation in last else -1
    ):
        # When a route is called
        identifier = batch_id
        if "/estimated" in route.path:
            identifier = call("POST", "/api/v1/batch/estimated", {}).json["batchId"]
        path = route.path.replace("{batch_id}", str(identifier)).replace("{ordinal}", "1")
        answer = call(route.method, path, bodies.get(route.operation), **queries.get(route.operation, {}))

        # Then its answer is of the schema that the route names
        assert answer.status == route.status, (route.operation, answer.text)
        if route.answer:
            checked(route.answer, answer.text)
        else:
            assert answer.text == ""


@pytest.mark.parametrize(
    ("message", "detail"),
    [
        ({"body": "b", "attributes": {"a": {"type": "Binary", "binary": "no base64!"}}}, "not base64"),
        ({"body": "b", "attributes": {"a": {"type": "Binary", "value": "text"}}}, "must be bytes"),
        ({"body": "b", "group_id": "g" * 129}, "the group of a message"),
        ({}, "body"),
    ],
)
def test_a_message_that_cannot_be_kept_is_refused(call, memory: Memory, message: object, detail: str) -> None:
    batch_id = call("POST", "/v1/batches", {}).json["batch_id"]
    group = call("POST", f"/v1/batches/{batch_id}/items", {"count": 1}).json
    before = memory.accesses.writes.total()

    item = f"{batch_id}:{group['id']}:0"
    answer = call("POST", "/v1/acks", {"marks": [{"failed": item, "message": message}]})

    assert (answer.status, memory.accesses.writes.total()) == (200, before)
    (refused,) = answer.json["refused"]
    assert (refused["place"], refused["code"]) == (0, "invalid-request")
    assert detail in refused["detail"]


def test_bad_entries_are_refused_by_their_places_and_nothing_else(call, ledger: LedgerService) -> None:
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

    # When
    answer = call("POST", "/v1/acks", {"marks": [*good, *(entry for entry, _ in bad), group[4]]})

    # Then
    assert answer.status == 200
    assert [(one["place"], one["code"]) for one in answer.json["refused"]] == [
        (3 + n, code) for n, (_, code) in enumerate(bad)
    ]
    assert "left" not in answer.json
    (receipt,) = answer.json["batches"]
    assert (receipt["first"], receipt["failed"]) == (4, 1)
    assert ledger.status(group.batch_id).batch.totals == {"rows": 7}


def test_a_message_of_more_than_4_mib_is_refused_alone(call, ledger: LedgerService) -> None:
    group = ledger.add(ledger.open(OpenBatch()).batch_id, 2)
    large = {"failed": group[0], "message": {"body": "\n" * 2_200_000}}  # two bytes each as JSON

    answer = call("POST", "/v1/acks", {"marks": [large, group[1]]})

    assert [(one["place"], one["code"]) for one in answer.json["refused"]] == [(0, "request-too-large")]
    assert answer.json["batches"][0]["first"] == 1
    assert call("POST", "/v1/acks", {"marks": ["x" * 6_000_000]}).status == 413


def test_a_batch_that_holds_and_tolerates_over_http(call) -> None:
    # Given
    tolerated = {"percent": 12.5, "min_sample": 50}
    opened = call("POST", "/v1/batches", {"on_failure": "hold", "tolerated_failures": tolerated}).json
    path = f"/v1/batches/{opened['batch_id']}"
    group = call("POST", f"{path}/items", {"count": 3}).json
    items = [f"{group['batch_id']}:{group['id']}:{n}" for n in range(3)]
    call("POST", f"{path}/close")

    # When
    failures = {"marks": [{"failed": item, "reason": f"no price {item[-1]}"} for item in items]}
    (receipt,) = call("POST", "/v1/acks", failures).json["batches"]

    # Then
    assert (opened["on_failure"], opened["tolerated_failures"], opened["cause"]) == ("hold", tolerated, None)
    assert (receipt["held"], receipt["first"]) == (3, 0)
    row = call("GET", path).json
    assert (row["held"], row["held_more"], row["done_min"]) == (3, False, 0)
    assert call("GET", path, brief="true").json["done_max"] == 3
    assert [one["held"] for one in call("GET", f"{path}/failures").json["failures"]] == [True] * 3
    answer = call("POST", f"{path}/release", {"ranges": [{"from": 0, "to": 1}]}).json
    assert (answer["released"], answer["batch"]["held"], answer["cursor"]) == (1, 2, None)
    assert call("POST", f"{path}/release", {}).json["batch"]["state"] == "complete"


def test_a_plain_batch_says_nothing_of_a_tolerance(call) -> None:
    row = call("POST", "/v1/batches", {}).json
    assert (row["on_failure"], row["held"], row["held_more"], row["cause"]) == ("done", 0, False, None)
    assert "tolerated_failures" not in row


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ({"on_failure": "hold", "mode": "estimated"}, "open the batch in exact mode"),
        ({"tolerated_failures": {}}, "needs a count, a percent, or both"),
        ({"tolerated_failures": {"percent": 101}}, "/tolerated_failures/percent must be"),
        ({"tolerated_failures": {"count": -1}}, "/tolerated_failures/count must be"),
        ({"tolerated_failures": {"count": 1, "min_sample": 5}}, "belongs to a percent"),
    ],
)
def test_bad_choices_are_refused_and_open_nothing(call, memory: Memory, body, said) -> None:
    answer = call("POST", "/v1/batches", body)
    assert (answer.status, said in answer.json["detail"]) == (400, True), answer.text
    assert not memory.batches.changes


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ({"ranges": [{"from": 3, "to": 3}]}, "the start of a range must be a whole number from 0 to 2"),
        ({"errors": [""]}, "/errors/0 must be"),
        ({"all": True}, "all"),
    ],
)
def test_bad_releases_are_refused(call, body, said) -> None:
    batch_id = call("POST", "/v1/batches", {"on_failure": "hold"}).json["batch_id"]
    answer = call("POST", f"/v1/batches/{batch_id}/release", body)
    assert (answer.status, said in answer.json["detail"]) == (400, True), answer.text
