"""The application over a table of its own: what becomes of values, of errors, of headers."""

from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from fanin import errors
from fanin.app.api import Fanin
from fanin.app.ledger.service import LedgerService
from fanin.domain.batch import OpenBatch
from fanin.entry import wiring
from fanin.entry.http import application as module
from fanin.entry.http.application import application, respond
from fanin.entry.http.route import HttpRequest, HttpRoute
from fanin.wire.json_types import NATURAL, TEXT, many, whole
from fanin.wire.shapes import wrapped
from tests.unit.entry.conftest import CONTEXT, Client

NUMBERS = wrapped("Numbers", "numbers", many(NATURAL))


def app(act: Any, **changes: Any) -> Client:
    """The application of one route, GET /things/{name}, that calls this."""
    route = HttpRoute("GET", "/things/{name}", "getThing", act, NUMBERS)._replace(**changes)
    return Client(application(SimpleNamespace, [route]))


def raising(error: Exception) -> Client:
    def act(_: Fanin, __: HttpRequest) -> None:
        raise error

    return app(act)


def test_the_value_is_written_by_the_answers_shape():
    answer = app(lambda _, __: (1, 2))("GET", "/things/a")
    assert (answer.status, answer.text) == (200, '{"numbers":[1,2]}')
    assert answer.headers["Content-Type"] == "application/json"


def test_the_use_case_gets_what_was_sent():
    seen: list[HttpRequest] = []

    def act(_: Fanin, request: HttpRequest) -> list[int]:
        seen.append(request)
        return []

    call = app(act, required={"n": whole(1, 9)}, optional={"m": TEXT}, keyed=True)
    call("GET", "/things/a%b", n=3, headers={"idempotency-kEY": "mine", "other": "x"})

    (request,) = seen
    assert (request.path, request.query, request.key) == ({"name": "a%b"}, {"n": 3}, "mine")


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (errors.InvalidItemId("x"), 400),
        (errors.BatchGone("x"), 410),
        (errors.ServiceUnavailable("x"), 503),
        (errors.SendFailed("secret", items={}), 500),
        (errors.FaninError("secret"), 500),
        (KeyError("secret"), 500),
    ],
)
def test_an_error_is_a_problem_with_its_status(error, status):
    answer = raising(error)("GET", "/things/a")
    assert (answer.status, answer.json["status"]) == (status, status)
    assert answer.headers["Content-Type"] == "application/problem+json"
    assert "secret" not in answer.text


def test_a_refusal_is_logged_by_its_code_and_without_what_was_sent(caplog):
    raising(errors.InvalidRequest("secret of the caller"))("GET", "/things/a")
    (record,) = [record for record in caplog.records if record.message == "refused"]
    assert record.code == "invalid-request"
    assert "secret" not in caplog.text + str(vars(record))


@pytest.mark.parametrize(
    ("method", "path", "status", "code", "says"),
    [
        ("GET", "/thing", 404, "no-such-path", "see /openapi.json"),
        ("GET", "/things", 404, "no-such-path", "see /openapi.json"),
        ("GET", "/things/a/b", 404, "no-such-path", "see /openapi.json"),
        ("GET", "/things/a/", 404, "no-such-path", "see /openapi.json"),
        ("GET", "//things/a", 404, "no-such-path", "see /openapi.json"),
        ("GET", "/things/a\n", 404, "no-such-path", "see /openapi.json"),
        ("POST", "/things/a", 405, "method-not-allowed", "this path accepts GET"),
        ("GET", '/things/a"b', 400, "invalid-request", "a character that ids and names cannot have"),
        ("GET", "/things/a?b", 400, "invalid-request", "a character that ids and names cannot have"),
    ],
)
def test_what_leads_nowhere(method, path, status, code, says):
    answer = app(lambda _, __: ())(method, path)
    assert (answer.status, answer.json["type"]) == (status, f"urn:fanin:problem:{code}")
    assert says in answer.json["detail"]
    assert answer.headers.get("Allow") == ("GET, HEAD, OPTIONS" if status == 405 else None)


@pytest.mark.parametrize(
    ("sent", "comes_back"),
    [
        ("trip-9", "trip-9"),
        ("!" * 128, "!" * 128),
        ("!" * 129, "request-of-gateway"),
        ("", "request-of-gateway"),
        ("two words", "request-of-gateway"),
        ("a\r\nb", "request-of-gateway"),
        ("é", "request-of-gateway"),
    ],
)
def test_a_correlation_id_comes_back_if_it_can_be_a_header(sent, comes_back):
    answer = app(lambda _, __: ())("GET", "/things/a", headers={"X-CORRELATION-ID": sent})
    assert answer.headers["X-Correlation-Id"] == comes_back


@pytest.fixture
def event(ledger: LedgerService) -> dict[str, Any]:
    """Asks for a batch that the ledger has, with no headers at all."""
    path = f"/v1/batches/{ledger.open(OpenBatch()).batch_id}"
    context = {"http": {"method": "GET", "path": path}, "requestId": "r", "stage": "$default"}
    return {"rawPath": path, "requestContext": context}


@pytest.fixture
def fresh() -> Iterator[None]:
    module._application.cache_clear()
    yield
    module._application.cache_clear()


@pytest.mark.usefixtures("fresh")
def test_the_function_answers_from_the_services_of_its_environment(monkeypatch, event, ledger):
    monkeypatch.setattr(wiring, "services", lambda: SimpleNamespace(ledger=ledger))
    answer = respond(event, CONTEXT)
    assert (answer["statusCode"], answer["headers"]["X-Correlation-Id"]) == (200, "r")


@pytest.mark.usefixtures("fresh")
def test_a_function_without_its_settings_answers_all_the_same(monkeypatch, event):
    def services() -> Fanin:
        raise errors.NotConfigured("the environment variable FANIN_BATCHES_TABLE is not set")

    monkeypatch.setattr(wiring, "services", services)
    answer = respond(event, CONTEXT)
    assert (answer["statusCode"], "FANIN" in answer["body"]) == (500, False)
