"""Who sends a request: whose name a batch has, whose keys they are, and what a token allows."""

from typing import Any

import pytest

from fanin.app.services import Services
from fanin.domain.access import MAX_NAME, AccessGroup
from fanin.entry.http.application import application
from fanin.entry.http.table import ROUTES
from tests.unit.entry.conftest import Client

ROLE = "arn:aws:sts::123456789012:assumed-role/importer"
BODY = {"user_key": "nightly"}
KEY = {"idempotency-key": "run-7"}


def iam(arn: str) -> dict[str, Any]:
    return {"iam": {"userArn": arn, "accountId": "123456789012", "userId": "AROA", "callerId": "AROA"}}


def jwt(scope: Any = "", **claims: Any) -> dict[str, Any]:
    return {"jwt": {"claims": {"sub": "ada", "iss": "https://id.example.com/", "scope": scope, **claims}}}


def opened(call: Client, authorizer: dict[str, Any] | None, **body: Any) -> Any:
    call.authorizer = authorizer
    answer = call("POST", "/v1/batches", {**BODY, **body}, headers=KEY)
    assert answer.status == 201, answer.text
    return answer.json


class TestOpenedBy:
    @pytest.mark.parametrize(
        ("authorizer", "name"),
        [
            (iam(f"{ROLE}/i-0abc"), f"{ROLE}/i-0abc"),
            (iam("arn:aws:iam::123456789012:user/ada"), "arn:aws:iam::123456789012:user/ada"),
            (jwt(), "ada"),
            ({"jwt": {"claims": {"client_id": "job", "iss": "https://id"}}}, "job"),
            (None, ""),
            ({"jwt": {"claims": {"scope": "all"}}}, ""),
        ],
    )
    def test_a_batch_says_who_opened_it_wherever_it_is_shown(self, call, authorizer, name):
        batch = opened(call, authorizer)
        (listed,) = call("GET", "/v1/batches", state="open").json["batches"]
        shown = call("GET", f"/v1/batches/{batch['batch_id']}").json
        assert [one["opened_by"] for one in (batch, listed, shown)] == [name] * 3

    def test_a_caller_cannot_name_another(self, call):
        call.authorizer = jwt()
        answer = call("POST", "/v1/batches", {"opened_by": "bob"})
        assert (answer.status, answer.json["type"]) == (400, "urn:fanin:problem:invalid-request")

    @pytest.mark.parametrize("letter", ["x", "ä", "€", "\U0001f600"])
    def test_a_long_name_is_cut_off_between_two_characters(self, call, letter):
        name = opened(call, jwt(sub=letter * 1_000))["opened_by"]
        assert MAX_NAME - 6 < len(name.encode()) <= MAX_NAME
        assert name.endswith("…")
        assert set(name[:-1]) == {letter}

    def test_scatters_and_frames_and_batches_of_the_original_have_it_too(self, call, memory):
        call.authorizer = jwt()
        frame = call("POST", "/v1/frames", {"size": 3, "source": "a", "destination": "b"}).json["frame_id"]
        carlyle = call("POST", "/api/v1/batch/exact", {"userKey": "a"}).json["batchId"]
        rows = memory.batches.read([frame, carlyle])
        assert [rows[one].opened_by for one in (frame, carlyle)] == ["ada", "ada"]


class TestKeys:
    def test_the_same_key_and_body_never_give_another_callers_batch(self, call):
        callers = [
            iam(f"{ROLE}/one"),
            iam("arn:aws:sts::123456789012:assumed-role/other/one"),
            iam("arn:aws:iam::123456789012:user/importer"),
            jwt(),
            jwt(sub="bob"),
            jwt(iss="https://other.example.com/"),
            None,
        ]
        first = [opened(call, caller)["batch_id"] for caller in callers]
        assert len(set(first)) == len(callers)
        assert [opened(call, caller)["batch_id"] for caller in callers] == first

    def test_another_session_of_a_role_goes_on_with_its_keys(self, call):
        one, other = (opened(call, iam(f"{ROLE}/{name}")) for name in ("i-0abc", "i-0def"))
        assert other == one

    def test_keys_of_additions_belong_to_their_callers(self, call):
        batch = opened(call, jwt())["batch_id"]

        def add(sub: str, count: int) -> str:
            call.authorizer = jwt(sub=sub)
            answer = call("POST", f"/v1/batches/{batch}/items", {"count": count}, headers=KEY)
            assert answer.status == 201
            return str(answer.json["id"])

        ids = [add("ada", 2), add("bob", 2), add("eve", 3)]
        assert len(set(ids)) == 3
        assert [add("ada", 2), add("bob", 2), add("eve", 3)] == ids


class TestScopes:
    @pytest.fixture
    def call(self, ledger) -> Client:
        """The API of a deployment with ``auth=jwt``."""
        return Client(application(lambda: Services(ledger.ports), scope_prefix="fanin/"))

    @pytest.mark.parametrize("route", ROUTES, ids=lambda route: route.operation)
    def test_a_route_is_open_to_the_scopes_of_its_groups_and_to_no_other(self, call, route):
        path = route.path.format(batch_id=7, frame_id=7, ordinal=7, topic="cars", name="x")
        for group in AccessGroup:
            call.authorizer = jwt(f"openid fanin/{group}")
            answer = call(route.method, path, {} if route.body else None)
            assert (answer.status == 403) == (group not in route.groups)
            if answer.status == 403:
                assert answer.headers["Content-Type"] == "application/problem+json"
                assert answer.json["type"] == "urn:fanin:problem:access-denied"
                says = answer.json["detail"]
                assert f"{route.operation} needs a token with the scope fanin/{route.group}" in says
                assert f"this token has fanin/{group}." in says

    @pytest.mark.parametrize(
        "authorizer",
        [
            None,
            {},
            iam(f"{ROLE}/one"),
            jwt(),
            jwt("read"),
            jwt("fanin/"),
            jwt("fanin/reader"),
            jwt("xfanin/read"),
            jwt("fanin/READ"),
            jwt("fanin/produce fanin/operate"),
            jwt(aud="fanin/read"),
        ],
    )
    def test_without_the_scope_nobody_gets_in(self, call, authorizer):
        call.authorizer = authorizer
        assert call("GET", "/v1/batches", state="open").status == 403

    @pytest.mark.parametrize(
        "claims",
        [
            {"scope": "fanin/read"},
            {"scope": "openid fanin/read fanin/produce"},
            {"scp": "[fanin/produce fanin/read]"},
            {"scope": "openid", "scp": "[fanin/read]"},
            {"scp": ["fanin/read"]},
        ],
    )
    def test_the_scope_is_found_where_issuers_put_it(self, call, claims):
        call.authorizer = {"jwt": {"claims": {"sub": "ada", **claims}, "scopes": None}}
        assert call("GET", "/v1/batches", state="open").status == 200

    def test_a_request_is_refused_before_its_body_is_read_and_nothing_is_done(self, call, memory):
        call.authorizer = jwt("fanin/read")
        assert call("POST", "/v1/batches", raw="{").status == 403
        assert call("POST", "/v1/batches", {}).status == 403
        assert list(memory.batches.changes) == []
