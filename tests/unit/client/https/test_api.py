"""Calls of the API: which are sent again and when, and which error a refusal becomes."""

import json
import re
from collections.abc import Callable

import pytest

from fanin.adapters.backoff import Backoff
from fanin.app.api import Ledger
from fanin.client.https.api import NOTHING, HttpsApi, error_of
from fanin.client.https.services import HttpsServices
from fanin.client.https.transport import NotSent, Response, unsigned
from fanin.domain.access import Principal
from fanin.domain.batch import OpenBatch
from fanin.domain.marks import Marked
from fanin.errors import (
    STATUS,
    AccessDenied,
    BatchGone,
    InvalidRequest,
    ItemHasChild,
    LimitReached,
    NotConfigured,
    OutcomeUnknown,
    RequestTooLarge,
    ServiceUnavailable,
    Throttled,
    UnsupportedMediaType,
)
from fanin.wire.marks import MARKED
from tests.unit.client.https.conftest import URL, Script, Waits, ok, problem


@pytest.fixture
def api_of(waits: Waits) -> Callable[[Script], HttpsApi]:
    return lambda script: HttpsApi(URL, sign=unsigned, transport=script, backoff=waits.backoff)


@pytest.fixture
def ledger_of(api_of: Callable[[Script], HttpsApi]) -> Callable[[Script], Ledger]:
    return lambda script: HttpsServices(api_of(script)).ledger


class TestRequests:
    def test_a_call_is_one_request_below_the_root(self):
        script = Script(ok({"batches": []}))
        api = HttpsApi(f"{URL}/", sign=unsigned, transport=script)
        query = {"cursor": "a/b= ü&", "limit": 3, "state": None}
        api.call(MARKED, "POST", "/acks", {"marks": ["☂", "\ud83d"]}, query=query, headers={"Key": "k"})
        (request,) = script.requests
        url = f"{URL}/v1/acks?cursor=a%2Fb%3D%20%C3%BC%26&limit=3"
        assert (request.method, request.url) == ("POST", url)
        assert request.headers == {"Content-Type": "application/json", "Key": "k"}
        assert json.loads(request.body) == {"marks": ["☂", "\ud83d"]}

    @pytest.mark.parametrize("value", [{1, 2}, float("nan")])
    def test_what_json_cannot_write_is_refused_and_not_sent(self, api_of, value):
        script = Script()
        with pytest.raises(InvalidRequest, match=r"^the request cannot be written as JSON"):
            api_of(script).call(MARKED, "POST", "/events", {"a": [value]})
        assert script.requests == []

    def test_a_call_without_a_body_or_a_query_has_neither(self, api_of):
        script = Script(Response(204, {}, b""))
        answer = api_of(script).call(NOTHING, "DELETE", "/buffers/jobs")
        assert (script.requests[0].url, script.requests[0].body) == (f"{URL}/v1/buffers/jobs", None)
        assert answer == {}

    @pytest.mark.parametrize("url", ["", "ftp://example.com", "abc123.execute-api.eu-west-1.amazonaws.com"])
    def test_a_url_is_http_or_https(self, url):
        with pytest.raises(NotConfigured, match="is not the URL of an API; take the output ApiUrl"):
            HttpsApi(url)

    def test_every_try_is_signed_anew(self, waits):
        signatures = iter(["one", "two"])
        script = Script(ServiceUnavailable("cut"), ok({"batches": []}))
        api = HttpsApi(
            URL,
            sign=lambda request: {**request.headers, "Authorization": next(signatures)},
            transport=script,
            backoff=waits.backoff,
        )
        api.call(MARKED, "POST", "/acks", {})
        assert [request.headers["Authorization"] for request in script.requests] == ["one", "two"]


class TestRetries:
    @pytest.mark.parametrize(
        "fault",
        [
            Response(429, {}, b'{"message":"Too Many Requests"}'),
            Response(502, {}, b"<html>bad gateway</html>"),
            problem(503, "throttled"),
            problem(503, "service-unavailable"),
            ServiceUnavailable("no answer"),
            Response(200, {}, b'{"batches": "soon"}'),
        ],
        ids=str,
    )
    def test_a_fault_of_the_way_is_tried_again(self, api_of, waits, fault):
        script = Script(fault, fault, ok({"batches": []}))
        marked = api_of(script).call(MARKED, "POST", "/acks", {})
        assert marked == Marked(())
        assert waits.seconds == [1, 2]

    def test_retry_after_is_kept_up_to_a_bound(self, api_of, waits):
        script = Script(
            problem(503, "throttled", retry_after=5),
            Response(503, {"retry-after": "3600"}, b""),
            ok({"batches": []}),
        )
        api_of(script).call(MARKED, "POST", "/acks", {})
        assert waits.seconds == [5, 8]

    @pytest.mark.parametrize(
        ("answer", "error"),
        [
            (problem(410, "batch-gone"), BatchGone),
            (problem(429, "limit-reached", retry_after=3), LimitReached),
            (problem(403, "access-denied"), AccessDenied),
        ],
        ids=lambda value: getattr(value, "__name__", ""),
    )
    def test_what_the_service_decided_is_raised_at_once(self, ledger_of, waits, answer, error):
        script = Script(answer)
        with pytest.raises(error) as raised:
            ledger_of(script).add(7, 3)
        assert type(raised.value) is error
        assert str(raised.value) == f"about {error.code}"
        assert waits.seconds == []
        assert raised.value.retry_after == (3 if error is LimitReached else None)

    def test_a_call_that_may_not_be_repeated_is_not_when_its_answer_was_lost(self, api_of, waits):
        script = Script(ServiceUnavailable("no answer"), ok({"batches": []}))
        with pytest.raises(OutcomeUnknown, match="no answer; POST /acks may have taken effect") as raised:
            api_of(script).call(MARKED, "POST", "/acks", {}, repeatable=False)
        assert (len(script.requests), waits.seconds) == (1, [])
        assert (raised.value.retryable, raised.value.retry_after) == (False, None)

    def test_whether_it_may_be_repeated_is_asked_only_when_an_answer_was_lost(self, api_of):
        asked, lost = [], ServiceUnavailable("no answer")
        script = Script(ok({"batches": []}), problem(503, "throttled"), lost, ok({"batches": []}))
        api = api_of(script)
        for _ in range(2):
            api.call(MARKED, "POST", "/acks", {}, repeatable=lambda: not asked.append(len(script.requests)))
        assert asked == [3]

    @pytest.mark.parametrize("fault", [NotSent("refused"), problem(503, "throttled")], ids=["cut", "busy"])
    def test_a_call_that_was_not_made_or_throttled_is_sent_again_whatever_it_does(self, api_of, fault):
        script = Script(fault, ok({"batches": []}))
        assert api_of(script).call(MARKED, "POST", "/acks", {}, repeatable=False) == Marked(())
        assert len(script.requests) == 2

    def test_a_service_that_does_not_know_the_outcome_itself_is_not_asked_again(self, api_of):
        script = Script(problem(409, "outcome-unknown"))
        with pytest.raises(OutcomeUnknown, match="about outcome-unknown"):
            api_of(script).call(MARKED, "POST", "/acks", {})

    @pytest.mark.parametrize("body", [b"not json", b"{}", b"null", b"[" * 100_000])
    def test_an_answer_of_another_version_says_what_to_check(self, body):
        script = Script(Response(200, {}, body))
        api = HttpsApi(URL, sign=unsigned, transport=script, backoff=Backoff(tries=1))
        with pytest.raises(ServiceUnavailable, match="check that the URL is that of a fanin API"):
            api.call(MARKED, "POST", "/acks", {})

    def test_a_call_is_sent_six_times_unless_told_otherwise(self, longest_waits):
        for options, expected in (({}, 6), ({"backoff": Backoff(tries=10, base=0.1, cap=20)}, 10)):
            longest_waits.clear()
            # Given a service that never answers
            script = Script(*[ServiceUnavailable("no answer")] * expected)
            # When, Then
            with pytest.raises(ServiceUnavailable, match="no answer"):
                HttpsApi(URL, sign=unsigned, transport=script, **options).call(MARKED, "POST", "/acks", {})
            assert len(script.requests) == expected
            assert longest_waits == [0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 6.4, 12.8, 20][: expected - 1]


class TestRefusals:
    def test_a_refused_child_comes_with_the_first_one(self):
        found = error_of(problem(409, "item-has-child", child=7, retry_after=2))
        assert (type(found), found.child, found.retry_after) == (ItemHasChild, 7, 2)
        # And without it the refusal is one of a request
        assert type(error_of(problem(409, "item-has-child"))) is InvalidRequest

    @pytest.mark.parametrize(("error", "status"), STATUS.items(), ids=lambda value: str(value)[-30:])
    def test_every_problem_is_the_error_that_it_was(self, error, status):
        found = error_of(problem(status, error.code, retry_after=2, child=7))
        assert (type(found), str(found), found.retry_after) == (error, f"about {error.code}", 2)

    @pytest.mark.parametrize(
        ("status", "body", "error", "said"),
        [
            (401, b"", AccessDenied, "HTTP 401: ; check that your credentials"),
            (403, b'{"message":"Forbidden"}', AccessDenied, "HTTP 403: Forbidden; check that your cred"),
            (403, b"", AccessDenied, ".*In a VPC, an interface endpoint for execute-api with private DNS"),
            (404, b'{"message":"No"}', NotConfigured, "HTTP 404: No; there is no such route, so check the U"),
            (405, b"", NotConfigured, "HTTP 405: ; there is no such route"),
            (413, b'{"message":"Too Large"}', RequestTooLarge, "HTTP 413: Too Large; send the request in p"),
            (415, b'{"message":"No"}', UnsupportedMediaType, "HTTP 415: No; .* a proxy that changes headers"),
            (
                429,
                b'{"message":"Too Many"}',
                Throttled,
                "HTTP 429: Too Many; .*send fewer requests at a time",
            ),
            (503, b"\xff\xfe", ServiceUnavailable, "HTTP 503: "),
            (418, b"[1]", InvalidRequest, "HTTP 418: "),
            (400, b'{"type":"about:blank"}', InvalidRequest, "HTTP 400: "),
            (502, b"[" * 100_000, ServiceUnavailable, "HTTP 502: "),
        ],
    )
    def test_an_answer_that_is_no_problem_of_ours_is_told_by_its_status(self, status, body, error, said):
        found = error_of(Response(status, {}, body))
        assert type(found) is error
        assert re.match(said, str(found))

    def test_a_message_falls_back_to_the_title_and_the_code(self):
        body = {"type": "urn:fanin:problem:batch-gone"}
        assert str(error_of(ok(body | {"title": "Gone"}, 410))) == "Gone"
        assert str(error_of(ok(body, 410))) == "batch-gone"

    def test_a_long_page_of_a_proxy_is_cut(self):
        error = error_of(Response(502, {}, b"<html>" + b"x" * 10_000))
        assert isinstance(error, ServiceUnavailable)
        assert str(error) == "HTTP 502: <html>" + "x" * 194

    @pytest.mark.parametrize(
        ("body", "headers", "seconds"),
        [
            ({"retry_after": 5}, {"retry-after": "9"}, 5),
            ({}, {"retry-after": "9"}, 9),
            ({"retry_after": "soon"}, {}, None),
            ({"retry_after": -1}, {}, None),
            ({}, {"retry-after": "Wed, 21 Oct 2026 07:28:00 GMT"}, None),
        ],
    )
    def test_seconds_to_wait_are_read_where_they_are_seconds(self, body, headers, seconds):
        assert error_of(Response(503, headers, json.dumps(body).encode())).retry_after == seconds


def test_over_https_nobody_says_who_calls(over_https):
    with pytest.raises(InvalidRequest, match="the API knows who calls"):
        over_https.ledger.open(OpenBatch(), key="run-7", caller=Principal("ada"))
