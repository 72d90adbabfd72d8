"""Bad input over HTTP: each gets its problem and status, and writes nothing."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

import boto3
import pytest
import urllib3

from fanin.app.api import Ledger
from fanin.client.https.api import HttpsApi
from fanin.client.https.services import HttpsServices
from fanin.client.https.transport import HttpsRequest, SigV4
from fanin.domain.batch import OpenBatch
from fanin.domain.ids import Group, issue
from fanin.errors import AccessDenied


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
        request = HttpsRequest(method, stack.api_url + path, named, payload)
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
    """Batches to attack: one that is open and half done, and one that is full."""

    open: Group
    full: Group


@pytest.fixture(scope="module")
def given(ledger) -> Given:
    def opened(limit: int | None = None) -> Group:
        return ledger.add(ledger.open(OpenBatch(limit=limit)).batch_id, 10, key="a-key")

    given = Given(open=opened(), full=opened(limit=10))
    ledger.mark(given.open[:5]).whole()
    return given


@pytest.fixture(scope="module")
def nothing_written(deployment, stack, given):
    """Compares the tables before and after these tests: no new row, and the given batches unchanged."""
    tables = (stack.batches_table, stack.words_table, stack.parts_table)
    batches = [str(of.batch_id) for of in (given.open, given.full)]

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


def guessed(group: Group) -> str:
    """A group made as the service makes them, but with another salt than that of the batch."""
    return issue(group.batch_id, 0, 10, bytes(16)).prefix


def test_each_bad_mark_is_refused_alone_and_marks_nothing(call, given):
    # Given marks that are bad by their form, their check, their batch and their size
    marks = [
        f"{given.open.prefix}:-1",
        {"failed": f"{guessed(given.open)}:0", "reason": "why"},
        {"group": given.open.prefix, "from": 0, "to": 11},
        {"batch_id": 2**53 - 1, "count": 1},
        {"failed": given.open[7], "reason": "r" * 1_025},
    ]
    # When they are sent together
    answer = call("POST", "/v1/acks", {"marks": marks})
    # Then each is refused by its place
    assert (answer.status, answer.body["batches"]) == (200, [])
    assert [(one["place"], one["code"]) for one in answer.body["refused"]] == [
        (0, "invalid-item-id"),
        (1, "invalid-item-id"),
        (2, "invalid-request"),
        (3, "batch-not-found"),
        (4, "invalid-request"),
    ]


def test_a_refusal_says_what_a_caller_may_do(call, given):
    full = call("POST", f"/v1/batches/{given.full.batch_id}/items", {"count": 1})
    assert full.headers["retry-after"] == str(full.body["retry_after"]) == "1"
    assert call("PATCH", "/v1/acks").headers["allow"] == "OPTIONS, POST"
    for path in ("/v1", "/v1/nothing", "/v1/batches/1/nothing"):
        assert call("GET", path).status == 404, path


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
        request = HttpsRequest(
            "POST", f"{stack.api_url}/v1/acks", {"Content-Type": "application/json"}, b"{}"
        )
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
