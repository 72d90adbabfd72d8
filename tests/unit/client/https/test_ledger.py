"""The HTTPS ledger against a transport of scripted answers, and against the ledger in memory."""

from __future__ import annotations

import json
from collections.abc import Callable

import boto3
import pytest

from fanin.adapters.backoff import Backoff
from fanin.adapters.memory import Memory
from fanin.app.ledger.service import LedgerService
from fanin.client.https.api import HttpsApi, error_of
from fanin.client.https.ledger import HttpsLedger
from fanin.client.https.transport import Bearer, Request, Response, SigV4, unsigned
from fanin.domain.acks import Count, Failure, ItemRange
from fanin.domain.batch import OpenBatch, State
from fanin.errors import (
    AccessDenied,
    BatchClosed,
    BatchGone,
    BatchNotFound,
    FaninError,
    IdempotencyKeyReused,
    InvalidItemId,
    InvalidRequest,
    LimitReached,
    NotConfigured,
    RequestTooLarge,
    ServiceUnavailable,
    Throttled,
)
from fanin.wire import batches, items

URL = "https://abc123.execute-api.eu-west-1.amazonaws.com"


class Script:
    """A transport that gives one answer after the other, and keeps what it was asked."""

    def __init__(self, *answers: Response | FaninError) -> None:
        self.answers = list(answers)
        self.requests: list[Request] = []

    def __call__(self, request: Request) -> Response:
        self.requests.append(request)
        answer = self.answers.pop(0)
        if isinstance(answer, FaninError):
            raise answer
        return answer


def ok(body: object, status: int = 200) -> Response:
    return Response(status, {}, json.dumps(body).encode())


def problem(status: int, code: str, **more: object) -> Response:
    body = {"type": f"urn:fanin:problem:{code}", "title": code, "status": status, "detail": f"about {code}"}
    return Response(status, {"content-type": "application/problem+json"}, json.dumps(body | more).encode())


class Waits:
    """Records the seconds that would have been waited."""

    def __init__(self) -> None:
        self.seconds: list[float] = []
        self.backoff = Backoff(base=1, cap=8, sleep=self.seconds.append, fraction=lambda: 1.0)


@pytest.fixture
def waits() -> Waits:
    return Waits()


@pytest.fixture
def memory() -> LedgerService:
    return LedgerService(Memory().ports())


@pytest.fixture
def ledger_of(waits: Waits) -> Callable[[Script], HttpsLedger]:
    return lambda script: HttpsLedger(
        HttpsApi(URL, sign=unsigned, transport=script, backoff=waits.backoff, attempts=4)
    )


GROUP = {"batch_id": 7, "id": "00000000-0000-8000-8000-000000000000", "upto": 3}


class TestRequests:
    def test_every_call_sends_its_route_and_reads_its_answer(self, ledger_of, memory):
        # Given: the answers that the ledger in memory gives, as the API would write them
        batch = memory.open(OpenBatch(user_key="k", limit=100))
        group = memory.add(batch.batch_id, 5)
        receipts = memory.ack([group[0]])
        n = batch.batch_id
        cases = [
            ("POST", "/v1/batches", lambda x: x.open(OpenBatch(user_key="k")), batches.BATCH.encode(batch)),
            ("POST", f"/v1/batches/{n}/items", lambda x: x.add(n, 5), batches.GROUP.encode(group)),
            ("POST", "/v1/acks", lambda x: x.ack([group[0]]), items.RECEIPTS.encode(receipts)),
            (
                "POST",
                "/v1/failures",
                lambda x: x.fail([Failure(group[0], "r")]),
                items.RECEIPTS.encode(receipts),
            ),
            (
                "GET",
                f"/v1/batches/{n}",
                lambda x: x.status(n),
                batches.PROGRESS.encode(memory.status(n)),
            ),
            (
                "GET",
                f"/v1/batches/{n}?exact=true",
                lambda x: x.status(n, exact=True),
                batches.PROGRESS.encode(memory.status(n, exact=True)),
            ),
            (
                "GET",
                f"/v1/batches/{n}/missing?cursor=a%2Fb%3D&limit=9",
                lambda x: x.missing(n, cursor="a/b=", limit=9),
                items.MISSING.encode(memory.missing(n)),
            ),
            (
                "GET",
                f"/v1/batches/{n}/failures?limit=100",
                lambda x: x.failures(n),
                items.FAILED_ITEMS.encode(memory.failures(n)),
            ),
            (
                "POST",
                f"/v1/batches/{n}/verify?repair=false",
                lambda x: x.verify(n, repair=False),
                batches.VERDICT.encode(memory.verify(n, repair=False)),
            ),
            (
                "GET",
                "/v1/batches?state=open&limit=100",
                lambda x: x.list(State.OPEN),
                batches.BATCHES.encode(memory.list(State.OPEN)),
            ),
            (
                "DELETE",
                "/v1/batches?state=open&idle_since=1970-01-01T00%3A00%3A01.500Z",
                lambda x: x.expire(State.OPEN, idle_since=1500),
                {"batches": 2, "items": 3},
            ),
            ("POST", f"/v1/batches/{n}/close", lambda x: x.close(n), batches.BATCH.encode(memory.close(n))),
            (
                "POST",
                f"/v1/batches/{n}/cancel",
                lambda x: x.cancel(n),
                batches.BATCH.encode(memory.cancel(n)),
            ),
        ]
        for method, path, call, answer in cases:
            script = Script(ok(answer))
            # When
            result = call(ledger_of(script))
            # Then
            assert (script.requests[0].method, script.requests[0].url) == (method, URL + path)
            assert result is not None

    def test_an_acknowledgement_carries_items_ranges_and_counts(self, ledger_of):
        # Given
        script = Script(ok({"batches": []}))
        # When
        ledger_of(script).ack(
            ["1:g:0"], ranges=[ItemRange("1:g", 2, 5), ItemRange("1:g")], counts=[Count(9, 4)]
        )
        # Then
        assert json.loads(script.requests[0].body) == {
            "items": ["1:g:0"],
            "ranges": [{"group": "1:g", "from": 2, "to": 5}, {"group": "1:g", "from": 0}],
            "counts": [{"batch_id": 9, "n": 4}],
        }

    def test_a_url_that_is_none_is_refused(self):
        with pytest.raises(NotConfigured, match="ApiUrl"):
            HttpsApi("abc123.execute-api.eu-west-1.amazonaws.com")


class TestRetries:
    def test_an_add_whose_answer_was_lost_is_repeated_under_the_same_key(self, ledger_of, waits):
        # Given: a connection that is cut after the service has written
        script = Script(ServiceUnavailable("connection reset"), ok(GROUP, 201))
        # When
        group = ledger_of(script).add(7, 3)
        # Then
        keys = [request.headers["Idempotency-Key"] for request in script.requests]
        assert group.upto == 3
        assert keys[0] == keys[1]
        assert len(waits.seconds) == 1

    def test_two_adds_have_two_keys_and_a_given_key_is_kept(self, ledger_of):
        script = Script(ok(GROUP), ok(GROUP), ok(GROUP))
        ledger = ledger_of(script)
        # When
        ledger.add(7, 3)
        ledger.add(7, 3)
        ledger.add(7, 3, key="mine")
        # Then
        first, second, third = (request.headers["Idempotency-Key"] for request in script.requests)
        assert first != second
        assert third == "mine"

    def test_opening_carries_a_key_only_where_one_was_given(self, ledger_of, memory):
        row = ok(batches.BATCH.encode(memory.open(OpenBatch())), 201)
        script = Script(row, row)
        ledger = ledger_of(script)
        # When
        ledger.open(OpenBatch())
        ledger.open(OpenBatch(), key="mine")
        # Then
        keys = [request.headers.get("Idempotency-Key") for request in script.requests]
        assert keys == [None, "mine"]

    @pytest.mark.parametrize(
        "fault",
        [
            Response(429, {}, b'{"message":"Too Many Requests"}'),
            Response(500, {}, b'{"message":"Internal Server Error"}'),
            Response(502, {}, b"<html>bad gateway</html>"),
            Response(504, {}, b""),
            problem(503, "throttled"),
            problem(503, "service-unavailable"),
            ServiceUnavailable("no answer"),
            Response(200, {}, b"not json"),
            Response(200, {}, b'{"batches": "soon"}'),
            Response(200, {}, b"[]"),
        ],
        ids=str,
    )
    def test_a_fault_of_the_way_is_tried_again(self, ledger_of, waits, fault):
        # Given
        script = Script(fault, fault, ok({"batches": []}))
        # When
        receipts = ledger_of(script).ack(["1:g:0"])
        # Then
        assert receipts == []
        assert waits.seconds == [1, 2]

    def test_it_gives_up_after_its_attempts(self, ledger_of, waits):
        script = Script(*[problem(503, "throttled")] * 4)
        with pytest.raises(Throttled):
            ledger_of(script).status(7)
        assert len(script.requests) == 4
        assert waits.seconds == [1, 2, 4]

    def test_retry_after_is_kept_up_to_a_bound(self, ledger_of, waits):
        # Given
        script = Script(
            problem(503, "throttled", retry_after=5),
            Response(503, {"retry-after": "3600"}, b""),
            ok({"batches": []}),
        )
        # When
        ledger_of(script).ack(["1:g:0"])
        # Then
        assert waits.seconds == [5, 8]

    @pytest.mark.parametrize(
        ("answer", "error"),
        [
            (problem(400, "invalid-request"), InvalidRequest),
            (problem(400, "invalid-item-id"), InvalidItemId),
            (problem(413, "request-too-large"), RequestTooLarge),
            (problem(409, "idempotency-key-reused"), IdempotencyKeyReused),
            (problem(404, "batch-not-found"), BatchNotFound),
            (problem(410, "batch-gone"), BatchGone),
            (problem(409, "batch-closed"), BatchClosed),
            (problem(429, "limit-reached", retry_after=3), LimitReached),
            (problem(403, "access-denied"), AccessDenied),
        ],
        ids=lambda value: getattr(value, "__name__", ""),
    )
    def test_what_the_service_decided_is_raised_at_once(self, ledger_of, waits, answer, error):
        # Given
        script = Script(answer)
        # When
        with pytest.raises(error) as raised:
            ledger_of(script).add(7, 3)
        # Then
        assert type(raised.value) is error
        assert str(raised.value) == f"about {error.code}"
        assert waits.seconds == []
        assert raised.value.retry_after == (3 if error is LimitReached else None)


class TestForeignAnswers:
    @pytest.mark.parametrize(
        ("status", "body", "error"),
        [
            (403, b'{"message":"Forbidden"}', AccessDenied),
            (401, b"", AccessDenied),
            (404, b'{"message":"Not Found"}', NotConfigured),
            (405, b"", NotConfigured),
            (413, b'{"message":"Request Too Long"}', RequestTooLarge),
            (429, b"", Throttled),
            (503, b"\xff\xfe", ServiceUnavailable),
            (418, b"[1]", InvalidRequest),
            (400, b'{"type":"about:blank"}', InvalidRequest),
        ],
    )
    def test_an_answer_that_is_no_problem_of_ours_is_told_by_its_status(self, status, body, error):
        assert type(error_of(Response(status, {}, body))) is error

    def test_a_refusal_by_the_gateway_says_what_to_do(self):
        error = error_of(Response(403, {}, b'{"message":"Forbidden"}'))
        assert "credentials" in str(error)
        assert "Forbidden" in str(error)


class TestSigning:
    @pytest.fixture
    def session(self) -> boto3.Session:
        return boto3.Session("AKID", "SECRET", "TOKEN", region_name="us-west-2")

    @pytest.mark.parametrize(
        ("url", "region", "expected"),
        [
            (URL, None, "eu-west-1"),
            ("https://api.example.com", None, "us-west-2"),
            (URL, "ap-south-1", "ap-south-1"),
        ],
    )
    def test_requests_are_signed_for_the_region_of_the_api(self, session, url, region, expected):
        request = Request("GET", f"{url}/v1/batches?state=open", {"Content-Type": "application/json"}, None)
        headers = SigV4(session, region)(request)
        assert f"/{expected}/execute-api/aws4_request" in headers["Authorization"]
        assert headers["X-Amz-Security-Token"] == "TOKEN"
        assert headers["Content-Type"] == "application/json"

    def test_every_try_is_signed_anew(self, waits):
        signatures = iter(["one", "two"])
        script = Script(ServiceUnavailable("cut"), ok({"batches": []}))
        ledger = HttpsLedger(
            HttpsApi(
                URL,
                sign=lambda request: {**request.headers, "Authorization": next(signatures)},
                transport=script,
                backoff=waits.backoff,
            )
        )
        ledger.ack(["1:g:0"])
        assert [request.headers["Authorization"] for request in script.requests] == ["one", "two"]

    def test_missing_credentials_are_told_before_anything_is_sent(self, monkeypatch):
        class NoCredentials:
            region_name = "us-east-1"

            def get_credentials(self):
                return None

        with pytest.raises(NotConfigured, match="credentials"):
            SigV4(NoCredentials())(Request("GET", URL, {}, None))

    def test_a_bearer_token_is_asked_for_each_request(self):
        tokens = iter(["a", "b"])
        sign = Bearer(lambda: next(tokens))
        request = Request("GET", URL, {}, None)
        assert [sign(request)["Authorization"], sign(request)["Authorization"]] == ["Bearer a", "Bearer b"]
