"""Bad input over HTTP: each gets its problem and status, and writes nothing."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

import boto3
import pytest
import urllib3

from fanin.client.https.api import HttpsApi
from fanin.client.https.ledger import HttpsLedger
from fanin.client.https.transport import Request, SigV4
from fanin.domain.batch import Mode, OpenBatch
from fanin.domain.ids import Block, Group, issue, parse_prefix
from fanin.errors import AccessDenied

MIB = 1 << 20


@dataclass
class Answer:
    status: int
    headers: dict[str, str]
    body: Any

    @property
    def code(self) -> str:
        return self.body["type"].removeprefix("urn:fanin:problem:")


@pytest.fixture(scope="module")
def call(stack, caller):
    """Sends one request, signed by default."""
    pool, sign = urllib3.PoolManager(), SigV4(caller, stack.region)

    def send(method: str, path: str, body: object = None, *, signed: bool = True, **headers: str) -> Answer:
        payload = body if isinstance(body, bytes) else json.dumps(body).encode()
        named = {"Content-Type": "application/json"}
        named |= {name.replace("_", "-"): value for name, value in headers.items()}
        request = Request(method, stack.api_url + path, named, payload)
        answer = pool.request(
            method, request.url, body=payload, headers=dict(sign(request)) if signed else named, retries=False
        )
        received = {name.lower(): value for name, value in answer.headers.items()}
        return Answer(answer.status, received, answer.json())

    return send


@pytest.fixture(scope="module")
def ledger(stack, caller) -> HttpsLedger:
    return HttpsLedger(HttpsApi(stack.api_url, sign=SigV4(caller, stack.region)))


@dataclass
class Given:
    """Batches to attack: open and half done, closed, full, estimated, and one of another user."""

    open: Group
    closed: Group
    full: Group
    estimated: int
    foreign: Group
    key: str = "a-key-that-was-used-for-10"


@pytest.fixture(scope="module")
def given(ledger) -> Given:
    def opened(items: int, limit: int | None = None) -> Group:
        return ledger.add(ledger.open(OpenBatch(limit=limit)).batch_id, items, key=Given.key)

    given = Given(
        open=opened(10),
        closed=opened(10),
        full=opened(10, limit=10),
        estimated=ledger.open(OpenBatch(mode=Mode.ESTIMATED)).batch_id,
        foreign=opened(300),
    )
    ledger.ack(given.open[:5])
    ledger.close(given.closed.batch_id)
    return given


@pytest.fixture(scope="class")
def nothing_written(deployment, stack, given):
    """Compares the tables before and after a class of tests: no new row, and the given batches unchanged."""
    tables = (stack.batches_table, stack.words_table, stack.parts_table)
    groups = (given.open, given.closed, given.full, given.foreign)
    batches = [str(of.batch_id) for of in groups] + [str(given.estimated)]

    def keys() -> dict[str, str]:
        names = ("word_id", "batch_id", "part")
        return {
            repr([row.get(name) for name in names]): repr(sorted(row.items()))
            for table in tables
            for row in deployment.rows(table)
        }

    before = keys()
    yield
    after = keys()
    assert not after.keys() - before.keys()
    for key, row in before.items():
        if any(batch in key for batch in batches):
            assert after[key] == row


pytestmark = pytest.mark.usefixtures("nothing_written")


def forged(group: Group, **changes: int) -> str:
    """The group with one of its parts changed, and the old check."""
    block = parse_prefix(group.prefix)
    return Block(**{**block._asdict(), **changes}).prefix


def flipped(group: Group, bit: int) -> str:
    """The group with one bit of its check flipped."""
    block = parse_prefix(group.prefix)
    return block._replace(check=block.check ^ (1 << bit)).prefix


def guessed(group: Group) -> str:
    """A group made as the service makes them, but with another salt than that of the batch."""
    return issue(group.batch_id, 0, 10, bytes(16)).prefix


ITEM_IDS = {
    "empty": lambda g: "",
    "no colons": lambda g: "item",
    "one part": lambda g: f"{g.open.batch_id}:0",
    "no index": lambda g: f"{g.open.prefix}:",
    "not a number": lambda g: f"{g.open.prefix}:one",
    "negative": lambda g: f"{g.open.prefix}:-1",
    "leading zero": lambda g: f"{g.open.prefix}:01",
    "a sign": lambda g: f"{g.open.prefix}:+1",
    "a space": lambda g: f"{g.open.prefix}: 1",
    "two indices": lambda g: f"{g.open.prefix}:1,2",
    "another alphabet's digit": lambda g: f"{g.open.prefix}:٣",
    "capitals": lambda g: f"{g.open.batch_id}:{g.open.id.upper()}x:0",
    "a UUID of another version": lambda g: f"{g.open.batch_id}:0b8e7cb6-6f2f-4c1f-9d0a-3b6f3f3f3f3f:0",
    "no batch": lambda g: f":{g.open.id}:0",
    "batch id too large": lambda g: f"{2**53}:{g.open.id}:0",
    "surrounded": lambda g: f" {g.open[0]}\n",
    "out of range": lambda g: f"{g.open.prefix}:10",
    "far out of range": lambda g: f"{g.open.prefix}:99999999999999999999",
    "of another batch": lambda g: f"{g.open.batch_id}:{g.foreign.id}:0",
    "a larger group": lambda g: f"{forged(g.open, size=11)}:10",
    "a later group": lambda g: f"{forged(g.open, first=1)}:0",
    "a group beyond the batch": lambda g: f"{forged(g.open, first=10)}:0",
    "a guessed group": lambda g: f"{guessed(g.open)}:0",
    **{f"check bit {bit} flipped": lambda g, bit=bit: f"{flipped(g.open, bit)}:0" for bit in (0, 25, 49)},
}


class TestItemIds:
    @pytest.mark.parametrize("of", ITEM_IDS.values(), ids=ITEM_IDS)
    @pytest.mark.parametrize("path", ["acks", "failures"])
    def test_a_bad_one_refuses_the_request_and_all_good_ones_in_it(self, call, given, of, path):
        # Given items that are good, and one that is not
        bad = of(given)
        items = [given.open[7], given.foreign[0], bad, given.foreign[1]]
        failures = [{"item": item, "reason": "why"} for item in items]

        # When they are acked or failed together
        answer = call("POST", f"/v1/{path}", {"items": items} if path == "acks" else {"failures": failures})

        # Then the request is refused
        assert (answer.status, answer.code) == (400, "invalid-item-id"), answer
        assert answer.headers["content-type"] == "application/problem+json"

    def test_the_bad_one_is_named(self, call, given):
        answer = call("POST", "/v1/acks", {"items": [given.foreign[0], f"{given.open.prefix}:10"]})
        assert f"{given.open.prefix}:10" in answer.body["detail"]

    @pytest.mark.parametrize("of", [lambda g: forged(g.open, size=11), lambda g: guessed(g.open)])
    def test_of_a_range(self, call, given, of):
        answer = call("POST", "/v1/acks", {"ranges": [{"group": of(given)}]})
        assert (answer.status, answer.code) == (400, "invalid-item-id")

    @pytest.mark.parametrize(("start", "stop"), [(0, 11), (5, 5), (6, 5), (10, None), (0, 0)])
    def test_a_range_that_is_none(self, call, given, start, stop):
        span = {"group": given.open.prefix, "from": start, "to": stop}
        answer = call("POST", "/v1/acks", {"ranges": [span]})
        assert (answer.status, answer.code) == (400, "invalid-request")

    def test_of_a_parent(self, call, given):
        answer = call("POST", "/v1/batches", {"parent_item": f"{guessed(given.open)}:0"})
        assert (answer.status, answer.code) == (400, "invalid-item-id")


class TestNumbers:
    @pytest.mark.parametrize("count", [0, -1, 2**40, 2**32, 1.5, "1", None, True, [1], 10**30])
    def test_of_items(self, call, given, count):
        answer = call("POST", f"/v1/batches/{given.open.batch_id}/items", {"count": count})
        assert (answer.status, answer.code) == (400, "invalid-request")

    @pytest.mark.parametrize("n", [0, -1, 2**40 + 1, "1", None])
    def test_of_acks_without_ids(self, call, given, n):
        answer = call("POST", "/v1/acks", {"counts": [{"batch_id": given.estimated, "n": n}]})
        assert (answer.status, answer.code) == (400, "invalid-request")

    def test_of_acks_without_ids_to_an_exact_batch(self, call, given):
        answer = call("POST", "/v1/acks", {"counts": [{"batch_id": given.open.batch_id, "n": 1}]})
        assert (answer.status, answer.code) == (400, "invalid-request")

    @pytest.mark.parametrize(
        "limits",
        [
            {"limit": 0},
            {"limit": 10**6 + 1},
            {"limit": 5, "mode": "estimated"},
            {"idle_ttl": 59},
            {"lifetime": 59},
            {"lifetime": 366 * 86_400},
            {"deadline": "2001-01-01T00:00:00Z"},
            {"deadline": "2026-02-30T00:00:00Z"},
            {"deadline": "tomorrow"},
            {"user_key": "k" * 257},
            {"metadata": {"": "v"}},
            {"metadata": {"k" * 65: "v"}},
            {"metadata": {"k": "v" * 257}},
            {"metadata": {str(n): "v" for n in range(17)}},
        ],
        ids=json.dumps,
    )
    def test_of_a_new_batch(self, call, limits):
        answer = call("POST", "/v1/batches", limits)
        assert (answer.status, answer.code) == (400, "invalid-request")


class TestBatches:
    UNKNOWN = 2**53 - 1

    @pytest.mark.parametrize(
        ("method", "path", "body"),
        [
            ("GET", "", None),
            ("GET", "/missing", None),
            ("GET", "/failures", None),
            ("POST", "/items", {"count": 1}),
            ("POST", "/close", None),
            ("POST", "/cancel", None),
            ("POST", "/verify", None),
        ],
    )
    def test_unknown(self, call, method, path, body):
        answer = call(method, f"/v1/batches/{self.UNKNOWN}{path}", body)
        assert (answer.status, answer.code) == (404, "batch-not-found")

    @pytest.mark.parametrize(
        "acks",
        [
            {"items": [f"{issue(2**53 - 1, 0, 1, bytes(16)).prefix}:0"]},
            {"ranges": [{"group": issue(2**53 - 1, 0, 1, bytes(16)).prefix}]},
            {"counts": [{"batch_id": 2**53 - 1, "n": 1}]},
        ],
        ids=["items", "ranges", "counts"],
    )
    def test_ack_of_an_unknown_one(self, call, given, acks):
        acks["items"] = [given.open[7], *acks.get("items", ())]
        answer = call("POST", "/v1/acks", acks)
        assert (answer.status, answer.code) == (404, "batch-not-found")

    @pytest.mark.parametrize("key", ["", "another-key"], ids=["without a key", "with a key"])
    def test_add_to_a_closed_one(self, call, given, key):
        headers = {"Idempotency_Key": key} if key else {}
        answer = call("POST", f"/v1/batches/{given.closed.batch_id}/items", {"count": 1}, **headers)
        assert (answer.status, answer.code) == (409, "batch-closed")

    def test_add_to_a_full_one(self, call, given):
        answer = call("POST", f"/v1/batches/{given.full.batch_id}/items", {"count": 1})
        assert (answer.status, answer.code) == (429, "limit-reached")
        assert answer.headers["retry-after"] == str(answer.body["retry_after"]) == "1"

    def test_add_more_than_ever_fits(self, call, given):
        answer = call("POST", f"/v1/batches/{given.full.batch_id}/items", {"count": 11})
        assert (answer.status, answer.code) == (400, "invalid-request")

    def test_a_key_that_was_used_for_another_count(self, call, given):
        path = f"/v1/batches/{given.open.batch_id}/items"
        answer = call("POST", path, {"count": 11}, Idempotency_Key=given.key)
        assert (answer.status, answer.code) == (409, "idempotency-key-reused")

    @pytest.mark.parametrize("batch_id", ["x", "-1", "1.5", "01", str(2**53), "%20", "0x10", "1" * 40])
    def test_an_id_that_is_none(self, call, batch_id):
        answer = call("GET", f"/v1/batches/{batch_id}")
        assert (answer.status, answer.code) == (400, "invalid-request")


class TestSize:
    def test_ids(self, call, given):
        answer = call("POST", "/v1/acks", {"items": [given.open[7]] * 10_001})
        assert (answer.status, answer.code) == (413, "request-too-large")

    @pytest.mark.parametrize("part", ["ranges", "counts", "failures"])
    def test_others(self, call, given, part):
        entry = {
            "ranges": {"group": given.open.prefix},
            "counts": {"batch_id": given.estimated, "n": 1},
            "failures": {"item": given.open[7]},
        }[part]
        path = "/v1/failures" if part == "failures" else "/v1/acks"
        answer = call("POST", path, {part: [entry] * 1_001})
        assert (answer.status, answer.code) == (413, "request-too-large")

    def test_bytes(self, call, given):
        body = json.dumps({"items": [given.open[7]]}).encode()
        answer = call("POST", "/v1/acks", body + b" " * (MIB + 1 - len(body)))
        assert (answer.status, answer.code) == (413, "request-too-large")

    def test_a_reason(self, call, given):
        failure = {"item": given.open[7], "reason": "r" * 1_025}
        answer = call("POST", "/v1/failures", {"failures": [failure]})
        assert (answer.status, answer.code) == (400, "invalid-request")


class TestForm:
    @pytest.mark.parametrize(
        "body",
        [
            b"",
            b"{",
            b"items",
            b"{'items': []}",
            b'{"items": []} {}',
            b'{"items": [NaN]}',
            b"\xff\xfe",
            b'{"items": ["\\ud800"]}',
            b"[" * 5_000,
            b"\x00",
        ],
        ids=repr,
    )
    def test_not_json(self, call, body):
        answer = call("POST", "/v1/acks", body[:5_000])
        assert (answer.status, answer.code) == (400, "invalid-request")

    @pytest.mark.parametrize(
        "body",
        [
            None,
            [],
            "items",
            1,
            {"items": "text"},
            {"items": {"0": "text"}},
            {"items": [1]},
            {"items": [None]},
            {"items": [["text"]]},
            {"ranges": ["text"]},
            {"ranges": [{"from": 0}]},
            {"ranges": [{"group": "g", "from": "0"}]},
            {"counts": [{"n": 1}]},
            {"counts": [{"batch_id": "1", "n": 1}]},
            {"item": []},
            {"items": [], "more": 1},
            {"failures": []},
        ],
        ids=json.dumps,
    )
    def test_not_an_ack(self, call, body):
        answer = call("POST", "/v1/acks", body)
        assert (answer.status, answer.code) == (400, "invalid-request")

    @pytest.mark.parametrize(
        "body",
        [{"mode": "vague"}, {"user_key": 1}, {"unknown": 1}, {"metadata": []}, {"on_deadline": "panic"}],
        ids=json.dumps,
    )
    def test_not_a_batch(self, call, body):
        answer = call("POST", "/v1/batches", body)
        assert (answer.status, answer.code) == (400, "invalid-request")

    @pytest.mark.parametrize(
        "path",
        [
            "/v1/batches",
            "/v1/batches?state=any",
            "/v1/batches?user_key=",
            "/v1/batches?user_key=nightly&cursor=guess",
            "/v1/batches?state=open&limit=0",
            "/v1/batches?state=open&limit=1001",
            "/v1/batches?state=open&cursor=guess",
            "/v1/batches?state=open&unknown=1",
        ],
    )
    def test_query(self, call, path):
        answer = call("GET", path)
        assert (answer.status, answer.code) == (400, "invalid-request")

    @pytest.mark.parametrize("path", ["/v1", "/v1/nothing", "/v1/batches/1/nothing"])
    def test_nowhere(self, call, path):
        answer = call("GET", path)
        assert answer.status == 404

    def test_a_method_that_the_path_does_not_take(self, call):
        answer = call("PATCH", "/v1/acks")
        assert (answer.status, answer.code) == (405, "method-not-allowed")
        assert answer.headers["allow"] == "POST"


class TestCallers:
    def test_unsigned(self, call, given):
        answer = call("POST", "/v1/acks", {"items": [given.open[7]]}, signed=False)
        assert answer.status == 403

    @pytest.mark.parametrize("path", ["/v1/batches", "/api/v1/batch/exact", "/openapi.json"])
    def test_unsigned_elsewhere(self, call, path):
        method = "GET" if path.endswith("json") else "POST"
        assert call(method, path, {}, signed=False).status == 403

    def test_signed_for_another_body(self, stack, caller, given):
        body = json.dumps({"items": [given.open[7]]}).encode()
        request = Request("POST", f"{stack.api_url}/v1/acks", {"Content-Type": "application/json"}, b"{}")
        headers = SigV4(caller, stack.region)(request)
        answer = urllib3.PoolManager().request("POST", request.url, body=body, headers=dict(headers))
        assert answer.status == 403

    def test_signed_by_a_user_who_may_not(self, stack, given):
        # Given a user without permissions
        iam = stack.client("iam")
        iam.create_user(UserName="stranger")
        pair = iam.create_access_key(UserName="stranger")["AccessKey"]
        stranger = boto3.Session(pair["AccessKeyId"], pair["SecretAccessKey"], region_name=stack.region)

        # When the user acks, Then it is refused
        with pytest.raises(AccessDenied):
            HttpsLedger(HttpsApi(stack.api_url, sign=SigV4(stranger, stack.region))).ack([given.open[7]])
