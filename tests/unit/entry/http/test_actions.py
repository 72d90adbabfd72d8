"""The action log: who called, on what, how it ended and what it did; and what is never in it."""

import json
from collections.abc import Callable
from dataclasses import replace
from io import StringIO
from types import SimpleNamespace
from typing import Any

import pytest

from fanin import errors
from fanin.app.ledger.service import LedgerService
from fanin.domain.batch import Batch, OnFailure, OpenBatch, State
from fanin.domain.marks import Failure
from fanin.domain.redrives import RedriveState, Redriving
from fanin.domain.reports import ReleasedItems, Verdict
from fanin.domain.targets import TargetReport, TargetReports, TargetState, TargetType, When
from fanin.entry import observe
from fanin.entry.http import results
from fanin.entry.http.application import application
from fanin.entry.http.route import HttpRoute, LoggedAction
from fanin.wire.actions import MAX_TEXT
from tests.unit.entry.conftest import Client

TOKEN = "eyJhbGciOiJIUzI1NiJ9.secret.secret"
ARN = "arn:aws:sts::123456789012:assumed-role/oncall/ada"
IAM = {
    "accessKey": "ASIASECRET",
    "accountId": "123456789012",
    "callerId": "AROASECRET:ada",
    "cognitoIdentity": None,
    "principalOrgId": "o-secret",
    "userArn": ARN,
    "userId": "AROASECRET:ada",
}
CLAIMS = {"sub": "ada", "client_id": "console", "iss": "https://id.example.com/", "jti": "secret"}

Log = Callable[[], list[dict[str, Any]]]


@pytest.fixture
def lines(monkeypatch: pytest.MonkeyPatch) -> Log:
    """The lines that were logged, parsed."""
    stream = StringIO()
    monkeypatch.setattr(observe.logger.registered_handler, "stream", stream)
    return lambda: [json.loads(line) for line in stream.getvalue().splitlines()]


@pytest.fixture
def actions(lines: Log) -> Log:
    """Those of them that are of actions."""
    return lambda: [line for line in lines() if line["message"] == "action"]


@pytest.fixture
def batch(ledger) -> Batch:
    """An open batch of three items, one of which failed and is held."""
    opened = ledger.open(OpenBatch(user_key="secret", on_failure=OnFailure.HOLD))
    group = ledger.add(opened.batch_id, 3)
    ledger.mark([Failure(group[0], "secret reason")]).whole()
    return opened


def test_a_line_says_who_did_what_and_when(call, batch, actions):
    call.authorizer = {"iam": IAM}
    assert call("POST", f"/v1/batches/{batch.batch_id}/cancel").status == 200
    (line,) = actions()
    assert line["level"] == "INFO"
    assert {name: line[name] for name in ("action", "at", "request_id", "object", "outcome", "result")} == {
        "action": "cancelBatch",
        "at": "2023-11-14T22:13:20.000Z",
        "request_id": "request-of-gateway",
        "object": {"batch_id": str(batch.batch_id)},
        "outcome": {"status": 200},
        "result": {"state": "cancelled", "items": 3},
    }
    assert line["caller"] == {"kind": "iam", "id": ARN, "account": "123456789012"}
    assert line["group"] == "operate"


@pytest.mark.parametrize(
    ("authorizer", "caller"),
    [
        ({"iam": IAM}, {"kind": "iam", "id": ARN, "account": "123456789012"}),
        ({"iam": {**IAM, "userArn": None, "accountId": None}}, {"kind": "iam", "id": "AROASECRET:ada"}),
        (
            {"jwt": {"claims": CLAIMS, "scopes": None}},
            {"kind": "jwt", "id": "ada", "issuer": "https://id.example.com/", "client": "console"},
        ),
        (
            {"jwt": {"claims": {"client_id": "job", "iss": "https://id"}}},
            {"kind": "jwt", "id": "job", "issuer": "https://id", "client": "job"},
        ),
        ({"jwt": {"claims": {"sub": 7}}}, {"kind": "jwt", "id": "7"}),
        ({"jwt": {"claims": {"scope": "all"}}}, {"kind": "jwt", "id": ""}),
        ({"iam": None, "jwt": None}, {"kind": "address", "id": "192.0.2.7"}),
        (None, {"kind": "address", "id": "192.0.2.7"}),
    ],
)
def test_the_caller_is_who_the_gateway_says(call, batch, actions, authorizer, caller):
    call.authorizer = authorizer
    call("POST", f"/v1/batches/{batch.batch_id}/close", headers={"authorization": f"Bearer {TOKEN}"})
    (line,) = actions()
    assert line["caller"] == caller


def test_expiring_and_removing_say_which_batches_and_how_many(call, ledger, memory, actions):
    # Given an ended batch, and one that is idle
    ended, _ = ledger.cancel(ledger.open(OpenBatch()).batch_id), ledger.open(OpenBatch())
    # When the one is removed, and the other is orphaned
    call("DELETE", f"/v1/batches/{ended.batch_id}")
    memory.clock.advance(60)
    call("DELETE", "/v1/batches", state="open", idle_since="2999-01-01T00:00:00Z")
    removed, expired = actions()
    assert (removed["action"], removed["object"]) == ("removeBatch", {"batch_id": str(ended.batch_id)})
    assert removed["result"] == {"batches": 1, "items": 0}
    assert expired["object"] == {"state": "open", "idle_since": "2999-01-01T00:00:00Z"}
    assert (expired["action"], expired["result"]) == ("expireBatches", {"batches": 1, "items": 0})


def test_a_refused_action_is_logged_with_its_code(call, actions):
    call("POST", "/v1/batches/7/cancel")
    call("POST", "/v1/batches/seven/cancel")
    call("POST", "/v1/batches/7/cancel", cursor="x")
    missing, malformed, unread = actions()
    assert missing["outcome"] == {"status": 404, "code": "batch-not-found"}
    assert malformed["outcome"] == {"status": 400, "code": "invalid-request"}
    assert malformed["object"] == {"batch_id": "seven"}
    assert (unread["outcome"]["status"], unread["object"]) == (400, {"batch_id": "7"})
    assert [line["result"] for line in actions()] == [{}, {}, {}]


@pytest.mark.parametrize(
    ("error", "outcome"),
    [
        (errors.Throttled("secret"), {"status": 503, "code": "throttled"}),
        (errors.FaninError("secret"), {"status": 500, "code": "internal-error"}),
        (KeyError("secret"), {"status": 500, "code": "internal-error"}),
    ],
)
def test_an_outcome_is_that_of_the_answer(actions, error, outcome):
    def act(*_: object) -> None:
        raise error

    route = HttpRoute("DELETE", "/a/{name}", "a", act, None, 204, action=LoggedAction())
    answer = Client(application(SimpleNamespace, [route]))("DELETE", "/a/b")
    (line,) = actions()
    assert line["outcome"] == outcome
    assert (answer.status, answer.json["type"].rpartition(":")[2]) == tuple(outcome.values())
    assert "secret" not in json.dumps(line)


def test_deletions_say_whether_there_was_something(call, memory, actions):
    memory.channels.queues |= {"q": []}
    call("PUT", "/v1/directory/cars/a", {"channel": "q"})
    call("DELETE", "/v1/directory/cars/a")
    call("DELETE", "/v1/routes/none")
    call("DELETE", "/v1/buffers/none")
    assert [(line["action"], line["object"], line["result"]) for line in actions()] == [
        ("deregister", {"topic": "cars", "name": "a"}, {"deleted": True}),
        ("deleteRoute", {"name": "none"}, {"deleted": False}),
        ("deleteBuffer", {"name": "none"}, {}),
    ]


def test_the_old_api_logs_its_actions_too(call, actions):
    exact = call("POST", "/api/v1/batch/exact", {"userKey": "secret"}).json["batchId"]
    estimated = call("POST", "/api/v1/batch/estimated", {"userKey": "secret"}).json["batchId"]
    call("POST", f"/api/v1/batch/exact/close/{exact}")
    call("POST", f"/api/v1/batch/estimated/{estimated}/close")
    call("DELETE", f"/api/v1/batch/estimated/{estimated}")
    call("DELETE", "/api/v1/batch/exact/closed", since="32503680000000")
    closed, closed_too, _, deleted = actions()
    assert (closed["action"], closed["result"]) == ("carlyleCloseExact", {"complete": True})
    assert (closed_too["object"], closed_too["result"]) == ({"batch_id": estimated}, {"complete": True})
    assert deleted["object"] == {"since": "32503680000000"}
    assert set(deleted["result"]) == {"batches", "items"}
    assert "secret" not in json.dumps(actions())


@pytest.mark.parametrize(
    ("path", "body", "query"), [("/verify", None, {"repair": "false"}), ("/redrive", {"dry_run": True}, {})]
)
def test_what_changes_nothing_is_not_logged(call, batch, actions, path, *, body, query):
    assert call("POST", f"/v1/batches/{batch.batch_id}{path}", body, **query).status == 200
    assert actions() == []


def test_the_data_path_logs_nothing(call, ledger, lines):
    # When a batch is opened, filled, looked at, and its items are done and failed
    batch_id = call("POST", "/v1/batches", {}).json["batch_id"]
    group = call("POST", f"/v1/batches/{batch_id}/items", {"count": 2}).json
    prefix = f"{batch_id}:{group['id']}"
    assert call("POST", "/v1/acks", {"marks": [f"{prefix}:0"]}).status == 200
    assert call("POST", "/v1/acks", {"marks": [{"failed": f"{prefix}:1", "reason": "x"}]}).status == 200
    assert call("GET", f"/v1/batches/{batch_id}").status == 200
    # Then there is no line at all
    assert lines() == []


def test_texts_of_a_hostile_caller_are_cut_off_and_cannot_break_a_line(call, actions):
    call.authorizer = {"jwt": {"claims": {"sub": 'a"}\n{"message":"action"\ud800' + "x" * 9_000}}}
    call("POST", f"/v1/batches/{'9' * 5_000}/cancel")
    call("DELETE", "/v1/batches", state="\x1b" * 5_000, idle_since="x", other="y" * 5_000)
    first, second = actions()
    assert first["object"]["batch_id"] == "9" * MAX_TEXT
    assert first["caller"]["id"].startswith('a"}\n{"message":"action"?xxx')
    assert len(first["caller"]["id"]) == MAX_TEXT
    assert second["object"] == {"state": "\x1b" * MAX_TEXT, "idle_since": "x"}


def test_a_line_has_neither_the_token_nor_the_keys_of_its_caller(call, batch, actions):
    for authorizer in ({"iam": IAM}, {"jwt": {"claims": CLAIMS}}):
        call.authorizer = authorizer
        call("POST", f"/v1/batches/{batch.batch_id}/close", headers={"authorization": TOKEN})
    text = json.dumps(actions()).lower()
    assert len(actions()) == 2
    assert "secret" not in text


# What actions did: numbers and the service's own words.


@pytest.fixture
def batch_results(ledger: LedgerService) -> Batch:
    return replace(ledger.open(OpenBatch(user_key="secret")), items=5, state=State.CANCELLED)


@pytest.mark.parametrize(("cursor", "more"), [(None, False), ("secret", True)])
def test_of_a_release_and_a_verdict_whether_there_is_more(batch_results, cursor, *, more):
    assert results.of_release(ReleasedItems(batch_results, 4, cursor)) == {
        "released": 4,
        "more": more,
        "state": "cancelled",
        "items": 5,
    }
    assert results.of_verdict(Verdict(batch_results, 3, ("one", "two"), repaired=True, cursor=cursor)) == {
        "disagreements": 2,
        "repaired": True,
        "pending": 3,
        "more": more,
    }


def test_of_a_redrive_without_the_texts_of_its_selection():
    redrive = Redriving(
        "d1", 7, 8, RedriveState.FINISHED, 5, 1, 2, (3, 4), {"x": 6, "y": 7}, errors=("secret",)
    )
    assert results.of_redrive(redrive) == {
        "batch_id": 8,
        "redrive": "d1",
        "state": "finished",
        "items": 5,
        "already": 1,
        "not_kept": 2,
        "refused": 13,
    }
    assert "batch_id" not in results.of_redrive(replace(redrive, batch_id=None))


def test_of_targets_how_many_are_in_which_state():
    states = (TargetState.PENDING, TargetState.DELIVERED, TargetState.PENDING)
    reports = [TargetReport(n, TargetType.SQS, When.ANY, "secret", state) for n, state in enumerate(states)]
    assert results.of_targets(TargetReports(reports)) == {"targets": 3, "delivered": 1, "pending": 2}
    assert results.of_targets(TargetReports(())) == {"targets": 0}
