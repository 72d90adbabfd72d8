"""The console as a function behind the API."""

import json
import logging
from base64 import b64decode, b64encode
from types import SimpleNamespace
from typing import Any

import pytest

from fanin import names
from fanin.adapters.memory import Memory
from fanin.app.services import Services
from fanin.console import behind_api
from fanin.console.actions.log import LOGGER
from fanin.domain.batch import OpenBatch
from fanin.entry import wiring

CONTEXT = SimpleNamespace(
    function_name="console",
    memory_limit_in_mb=512,
    invoked_function_arn="arn:aws:lambda:eu-west-1:123456789012:function:console",
    aws_request_id="1",
    get_remaining_time_in_millis=lambda: 30_000,
)
ARN = "arn:aws:sts::123456789012:assumed-role/operator/jane"


@pytest.fixture
def memory(monkeypatch) -> Memory:
    found = Memory()
    monkeypatch.setattr(wiring, "connect", lambda _settings: found.ports())
    monkeypatch.setenv("POWERTOOLS_SERVICE_NAME", "shop")
    behind_api._served.cache_clear()
    return found


def ask(
    path: str, method: str = "GET", body: str = "", *, authorizer: Any = None, **headers: str
) -> dict[str, Any]:
    """An answer of the handler to a request as API Gateway hands it over."""
    event = {
        "version": "2.0",
        "routeKey": "GET /console/{proxy+}",
        "rawPath": path.partition("?")[0],
        "rawQueryString": path.partition("?")[2],
        "headers": {"host": "api.example", **headers},
        "requestContext": {
            "http": {"method": method, "path": path.partition("?")[0], "sourceIp": "192.0.2.1"},
            "authorizer": authorizer or {"iam": {"userArn": ARN, "accountId": "123456789012"}},
            "domainName": "api.example",
            "stage": "$default",
            "requestId": "request-1",
        },
        # API Gateway encodes forms, as it does all that is not text, JSON or XML.
        "body": b64encode(body.encode()).decode(),
        "isBase64Encoded": True,
    }
    return behind_api.respond(event, CONTEXT)


def test_it_serves_the_pages_below_its_path(memory):
    # Given a batch
    Services(memory.ports()).ledger.open(OpenBatch(user_key="catalog"))
    first, lists = ask("/console"), ask("/console/batches?state=open")
    # Then they show the stack and the batch, and nobody needs a launch link
    assert first["statusCode"] == 200
    assert "Overview" in first["body"]
    assert lists["statusCode"] == 200
    assert "catalog" in lists["body"]
    assert "shop" in lists["body"]
    assert 'href="/console/' in lists["body"]
    # And none links to the root with a slash: API Gateway has a route for /console, and for what is below it
    assert 'href="/console/"' not in first["body"]


def test_its_cookie_is_for_this_host_over_https_only(memory):
    answer = ask("/console/batches")
    (cookie,) = answer["cookies"]
    assert cookie.startswith("__Host-fanin=")
    assert {"secure", "httponly", "samesite=strict", "path=/"} <= {
        part.strip().lower() for part in cookie.split(";")
    }


def test_a_live_view_is_answered_at_once(memory):
    answer = ask("/console/live/batches")
    assert answer["headers"]["content-type"].startswith("text/event-stream")
    assert "event: view" in answer["body"]
    assert answer["body"].startswith("retry:")


@pytest.mark.parametrize(("setting", "text"), [("false", "Read-only"), ("true", "Buttons are on")])
def test_buttons_are_a_setting(memory, monkeypatch, setting, text):
    monkeypatch.setenv(names.ENV_CONSOLE_WRITE, setting)
    behind_api._served.cache_clear()
    assert text in ask("/console/batches")["body"]


def test_a_button_that_was_pressed_is_in_the_log_with_who_pressed_it(memory, monkeypatch, capsys):
    # Given a console with buttons, and a batch
    monkeypatch.setenv(names.ENV_CONSOLE_WRITE, "true")
    behind_api._served.cache_clear()
    logging.getLogger(LOGGER).handlers.clear()
    batch = Services(memory.ports()).ledger.open(OpenBatch()).batch_id
    address = f"/console/batches/{batch}/actions/cancel"
    page = ask(address)
    cookie = page["cookies"][0].partition(";")[0]
    token = page["body"].partition('name="form_token" value="')[2].partition('"')[0]
    answer = ask(address, "POST", f"form_token={token}", cookie=cookie, origin="https://api.example")
    # Then it is done, and the log says by whom
    assert answer["statusCode"] == 200
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines() if '"action"' in line]
    (line,) = [one for one in lines if one["message"] == "action"]
    assert line["action"] == "cancelBatch"
    assert line["request_id"] == "request-1"
    assert ARN in json.dumps(line)


@pytest.mark.parametrize("address", ["/console/", "/console/batches/", "/console/batches/?state=open"])
def test_no_redirect_names_the_host_of_the_api(memory, address):
    """A browser that comes through a proxy that signs would leave it, and be refused."""
    answer = ask(address)
    path, _, query = address.partition("?")
    if answer["statusCode"] != 200:
        assert answer["statusCode"] == 307
        assert answer["headers"]["location"] == path.rstrip("/") + ("?" + query if query else "")


@pytest.mark.parametrize(
    ("origin", "status"),
    [("http://localhost:8080", 405), ("https://fanin.example", 405), ("http://localhost:9090", 403)],
)
def test_a_proxy_in_front_may_have_another_name(memory, monkeypatch, origin, status):
    # Given a console to which browsers come through proxies that change the header Host
    monkeypatch.setenv(names.ENV_CONSOLE_ORIGINS, "http://localhost:8080,https://fanin.example")
    behind_api._served.cache_clear()
    # When a page sends a form, Then it is let through if it was loaded from one of them
    site = {"sec-fetch-site": "same-origin"}
    assert ask("/console/batches", "POST", origin=origin, **site)["statusCode"] == status
    assert (
        ask("/console/batches", "POST", origin=origin, **{"sec-fetch-site": "cross-site"})["statusCode"]
        == 403
    )


@pytest.mark.parametrize(("level", "lines"), [("INFO", 1), ("ERROR", 0)])
def test_the_log_has_the_level_of_all_functions(memory, monkeypatch, capsys, level, lines):
    monkeypatch.setenv("POWERTOOLS_LOG_LEVEL", level)
    behind_api._served.cache_clear()
    logging.getLogger(LOGGER).handlers.clear()
    ask("/console")
    logging.getLogger(LOGGER).info("line")
    assert capsys.readouterr().out.count("line") == lines


def test_static_files_are_sent_as_what_they_are(memory):
    """API Gateway decodes what a function marks as Base64."""
    style = ask("/console/static/style.css")
    assert (style["statusCode"], style["isBase64Encoded"]) == (200, False)
    answer = ask("/console/static/icon.svg")
    assert answer["isBase64Encoded"]
    assert answer["headers"]["content-type"] == "image/svg+xml"
    assert b64decode(answer["body"]).startswith(b"<svg")


@pytest.mark.parametrize(
    ("scopes", "status"),
    [("fanin/read", 200), ("fanin/operate", 403), ("", 403), ("fanin/read fanin/operate", 200)],
)
def test_with_tokens_the_pages_need_the_scope_of_readers(memory, monkeypatch, scopes, status):
    monkeypatch.setenv(names.ENV_JWT_SCOPE_PREFIX, "fanin/")
    answer = ask("/console/batches", authorizer={"jwt": {"claims": {"sub": "jane", "scope": scopes}}})
    assert answer["statusCode"] == status


@pytest.mark.parametrize(("scopes", "status"), [("fanin/read", 403), ("fanin/read fanin/operate", 200)])
def test_with_tokens_a_button_needs_the_scope_of_its_call(memory, monkeypatch, scopes, status):
    # Given a console with buttons, and an open batch
    monkeypatch.setenv(names.ENV_JWT_SCOPE_PREFIX, "fanin/")
    monkeypatch.setenv(names.ENV_CONSOLE_WRITE, "true")
    batch = Services(memory.ports()).ledger.open(OpenBatch())
    jane = {"jwt": {"claims": {"sub": "jane", "scope": scopes}}}
    path = f"/console/batches/{batch.batch_id}/actions/cancel"
    # When somebody asks for a button, then the page is for those who may press it
    asked = ask(path, authorizer=jane)
    assert asked["statusCode"] == status
    # And whoever sends the form without asking is refused before it is read
    if status == 403:
        pressed = ask(path, "POST", "form_token=x", authorizer=jane)
        assert pressed["statusCode"] == 403
        assert memory.batches.read([batch.batch_id])[batch.batch_id].state == "open"
