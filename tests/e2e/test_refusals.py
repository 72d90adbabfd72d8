"""Bad input over HTTP: each gets its problem and status, and writes nothing."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import boto3
import pytest
import urllib3

from fanin.app.api import Ledger
from fanin.client.https.api import HttpsApi
from fanin.client.https.services import HttpsServices
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
def ledger(stack, caller) -> Ledger:
    return HttpsServices(HttpsApi(stack.api_url, sign=SigV4(caller, stack.region))).ledger


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
    ledger.mark(given.open[:5]).whole()
    ledger.close(given.closed.batch_id)
    return given


@pytest.fixture(scope="module")
def nothing_written(deployment, stack, given):
    """Compares the tables before and after these tests: no new row, and the given batches unchanged."""
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


def test_a_bad_item_is_refused_alone(call, given):
    # Given marks that are bad, each between an item of an ended batch and one that failed there
    marks = [mark for of in ITEM_IDS.values() for mark in (of(given), {"failed": of(given), "reason": "why"})]
    # When they are sent together
    answer = call("POST", "/v1/acks", {"marks": marks})
    # Then each is refused by its place, and the last is named
    assert (answer.status, answer.body["batches"]) == (200, [])
    assert [(one["place"], one["code"]) for one in answer.body["refused"]] == [
        (place, "invalid-item-id") for place in range(len(marks))
    ]


UNKNOWN = 2**53 - 1
OF_NOBODY = issue(UNKNOWN, 0, 1, bytes(16)).prefix
INVALID, NO_ITEM = (400, "invalid-request"), (400, "invalid-item-id")
UNKNOWN_BATCH, TOO_LARGE = (404, "batch-not-found"), (413, "request-too-large")
NO_NUMBERS = (0, -1, 1.5, "1", None, True, [1], 10**30)
BAD_BATCHES = (
    *({"limit": limit} for limit in (0, 10**6 + 1)),
    *({"limit": 5, "mode": "estimated"}, {"mode": "vague"}),
    *({"idle_ttl": 59}, {"lifetime": 59}, {"lifetime": 366 * 86_400}),
    *({"deadline": when} for when in ("2001-01-01T00:00:00Z", "2026-02-30T00:00:00Z", "tomorrow")),
    *({"user_key": "k" * 257}, {"user_key": 1}, {"unknown": 1}, {"on_deadline": "panic"}),
    *({"metadata": data} for data in ({"": "v"}, {"k" * 65: "v"}, {"k": "v" * 257}, [])),
    {"metadata": {str(n): "v" for n in range(17)}},
)
BAD_ACKS = (
    *(None, [], "marks", 1, {"mark": []}, {"marks": [], "more": 1}, {"items": []}, {"failures": []}),
    *({"marks": marks} for marks in ("text", {"0": "text"}, None)),
)
BAD_MARKS = (
    *(1, None, ["text"], {}, {"item": "i", "failed": "i"}, {"group": "g", "from": "0"}, {"from": 0}),
    *({"count": 1}, {"batch_id": "1", "count": 1}),
)
NOT_JSON = (
    *(b"", b"{", b"marks", b"{'marks': []}", b'{"marks": []} {}', b'{"marks": [NaN]}', b"\xff\xfe", b"\x00"),
    b"[" * 5_000,
)
BAD_QUERIES = (
    *("", "?state=any", "?user_key=", "?user_key=nightly&cursor=guess", "?state=open&limit=0"),
    *("?state=open&limit=1001", "?state=open&cursor=guess", "?state=open&unknown=1"),
)
NO_IDS = ("x", "-1", "1.5", "01", str(2**53), "%20", "0x10", "1" * 40)


def refusals(given: Given) -> Iterator[tuple[tuple[int, str], str, str, object]]:
    """What is to be refused: how, method, path and body."""
    acks, full = "/v1/acks", f"/v1/batches/{given.full.batch_id}/items"
    for count in (*NO_NUMBERS, 2**32, 2**40):
        yield INVALID, "POST", f"/v1/batches/{given.open.batch_id}/items", {"count": count}
    yield NO_ITEM, "POST", "/v1/batches", {"parent_item": f"{guessed(given.open)}:0"}
    yield INVALID, "POST", full, {"count": 11}  # more than ever fits
    yield (429, "limit-reached"), "POST", full, {"count": 1}
    yield (409, "batch-closed"), "POST", f"/v1/batches/{given.closed.batch_id}/items", {"count": 1}
    for method, path, body in (
        *(("GET", "", None), ("GET", "/missing", None), ("GET", "/failures", None)),
        *(("POST", "/items", {"count": 1}), ("POST", "/close", None), ("POST", "/cancel", None)),
        ("POST", "/verify", None),
    ):
        yield UNKNOWN_BATCH, method, f"/v1/batches/{UNKNOWN}{path}", body
    good = given.open[7]
    yield TOO_LARGE, "POST", acks, {"marks": [good] * 10_001}
    yield TOO_LARGE, "POST", acks, {"marks": [{"group": given.open.prefix}] * 1_001}
    yield TOO_LARGE, "POST", acks, {"marks": [{"batch_id": given.estimated, "count": 1}] * 1_001}
    yield TOO_LARGE, "POST", acks, {"marks": [{"failed": good}] * 1_001}
    for body in (*BAD_ACKS, *NOT_JSON):
        yield INVALID, "POST", acks, body
    for batch in BAD_BATCHES:
        yield INVALID, "POST", "/v1/batches", batch
    for query in BAD_QUERIES:
        yield INVALID, "GET", f"/v1/batches{query}", None
    for batch_id in NO_IDS:
        yield INVALID, "GET", f"/v1/batches/{batch_id}", None
    yield (405, "method-not-allowed"), "PATCH", acks, None


def bad_marks(given: Given) -> Iterator[tuple[str, object]]:
    """What is refused by its place: code and mark."""
    invalid, no_item = "invalid-request", "invalid-item-id"
    for count in (*NO_NUMBERS, 2**40 + 1):
        yield invalid, {"batch_id": given.estimated, "count": count}
    yield invalid, {"batch_id": given.open.batch_id, "count": 1}
    for start, stop in ((0, 11), (5, 5), (6, 5), (10, None), (0, 0)):
        yield invalid, {"group": given.open.prefix, "from": start, "to": stop}
    for group in (forged(given.open, size=11), guessed(given.open)):
        yield no_item, {"group": group}
    for item in ("\ud800", {"item": 1}):
        yield no_item, item
    for mark in (f"{OF_NOBODY}:0", {"group": OF_NOBODY}, {"batch_id": UNKNOWN, "count": 1}):
        yield "batch-not-found", mark
    yield invalid, {"failed": given.open[7], "reason": "r" * 1_025}
    for mark in BAD_MARKS:
        yield invalid, mark


def test_each_bad_mark_is_refused_by_its_place(call, given):
    expected, marks = zip(*bad_marks(given), strict=True)
    answer = call("POST", "/v1/acks", {"marks": marks})
    assert answer.status == 200
    assert [(one["place"], one["code"]) for one in answer.body["refused"]] == list(enumerate(expected))


def test_each_bad_request_gets_its_problem_and_status(call, given):
    otherwise = []
    for expected, method, path, body in refusals(given):
        answer = call(method, path, body)
        if (answer.status, answer.code) != expected:
            otherwise.append((method, path, str(body)[:200], answer.status, answer.body))
    assert otherwise == []


def test_a_refusal_says_what_a_caller_may_do(call, given):
    full = call("POST", f"/v1/batches/{given.full.batch_id}/items", {"count": 1})
    assert full.headers["retry-after"] == str(full.body["retry_after"]) == "1"
    assert call("PATCH", "/v1/acks").headers["allow"] == "OPTIONS, POST"
    for path in ("/v1", "/v1/nothing", "/v1/batches/1/nothing"):
        assert call("GET", path).status == 404, path


def test_a_key_that_was_used_for_another_count_or_on_a_closed_batch(call, given):
    for group, key, code in (
        (given.open, given.key, "idempotency-key-reused"),
        (given.closed, "another-key", "batch-closed"),
    ):
        path = f"/v1/batches/{group.batch_id}/items"
        answer = call("POST", path, {"count": 11}, Idempotency_Key=key)
        assert (answer.status, answer.code) == (409, code)


class TestCallers:
    def test_unsigned(self, call, given):
        answer = call("POST", "/v1/acks", {"marks": [given.open[7]]}, signed=False)
        assert answer.status == 403

    @pytest.mark.parametrize("path", ["/v1/batches", "/api/v1/batch/exact", "/openapi.json"])
    def test_unsigned_elsewhere(self, call, path):
        method = "GET" if path.endswith("json") else "POST"
        assert call(method, path, {}, signed=False).status == 403

    def test_signed_for_another_body(self, stack, caller, given):
        body = json.dumps({"marks": [given.open[7]]}).encode()
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
            HttpsServices(HttpsApi(stack.api_url, sign=SigV4(stranger, stack.region))).ledger.mark(
                [given.open[7]]
            )
