"""The console as a function behind the API."""

from __future__ import annotations

import json
import logging
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


def ask(path: str, method: str = "GET", body: str = "", **headers: str) -> dict[str, Any]:
    """An answer of the handler to a request as API Gateway hands it over."""
    event = {
        "version": "2.0",
        "routeKey": "GET /console/{proxy+}",
        "rawPath": path.partition("?")[0],
        "rawQueryString": path.partition("?")[2],
        "headers": {"host": "api.example", **headers},
        "requestContext": {
            "http": {"method": method, "path": path.partition("?")[0], "sourceIp": "192.0.2.1"},
            "authorizer": {"iam": {"userArn": ARN, "accountId": "123456789012"}},
            "domainName": "api.example",
            "stage": "$default",
        },
        "body": body,
        "isBase64Encoded": False,
    }
    return behind_api.respond(event, CONTEXT)


def test_it_serves_the_pages_below_its_path(memory) -> None:
    # Given a batch
    Services(memory.ports()).ledger.open(OpenBatch(user_key="catalog"))
    # When its pages are asked for
    first, lists = ask("/console"), ask("/console/batches?state=open")
    # Then they show the stack and the batch, and nobody needs a launch link
    assert first["statusCode"] == 200
    assert lists["statusCode"] == 200
    assert "catalog" in lists["body"]
    assert "shop" in lists["body"]
    assert 'href="/console/' in lists["body"]


def test_nothing_redirects_to_the_host_of_the_api(memory) -> None:
    # Given a proxy in front, which signs requests, and has another host than the API
    for path in ("/console", "/console/", "/console/batches/", "/console/nowhere/"):
        # Then no answer leads a browser past it
        assert "location" not in {name.lower() for name in ask(path)["headers"]}


@pytest.mark.parametrize(
    ("sent", "status"),
    [
        ({"origin": "http://localhost:8080", "sec-fetch-site": "same-origin"}, 200),
        ({"origin": "http://localhost:8080", "sec-fetch-site": "same-site"}, 403),
        ({"origin": "http://localhost:8080", "sec-fetch-site": "cross-site"}, 403),
        ({"origin": "https://api.example", "sec-fetch-site": "cross-site"}, 403),
        ({"origin": "http://localhost:8080"}, 403),
        ({}, 403),
    ],
)
def test_forms_come_through_a_proxy_with_another_host(memory, monkeypatch, sent, status) -> None:
    # Given a form that a page behind the proxy has shown
    monkeypatch.setenv(names.ENV_CONSOLE_WRITE, "true")
    behind_api._served.cache_clear()
    address = f"/console/batches/{Services(memory.ports()).ledger.open(OpenBatch()).batch_id}/actions/cancel"
    page = ask(address)
    cookie = page["cookies"][0].partition(";")[0]
    token = page["body"].partition('name="form_token" value="')[2].partition('"')[0]
    # When it is sent, then it is answered if the browser says that the page is of the same origin
    assert ask(address, "POST", f"form_token={token}", cookie=cookie, **sent)["statusCode"] == status


def test_its_cookie_is_for_this_host_over_https_only(memory) -> None:
    answer = ask("/console/batches")
    (cookie,) = answer["cookies"]
    assert cookie.startswith("__Host-fanin=")
    assert {"secure", "httponly", "samesite=strict", "path=/"} <= {
        part.strip().lower() for part in cookie.split(";")
    }


def test_a_live_view_is_answered_at_once(memory) -> None:
    answer = ask("/console/live/batches")
    assert answer["headers"]["content-type"].startswith("text/event-stream")
    assert "event: view" in answer["body"]
    assert answer["body"].startswith("retry:")


def test_static_files_are_served(memory) -> None:
    answer = ask("/console/static/style.css")
    assert answer["statusCode"] == 200
    assert not answer["isBase64Encoded"]


@pytest.mark.parametrize(("setting", "text"), [("false", "Read-only"), ("true", "Buttons are on")])
def test_buttons_are_a_setting(memory, monkeypatch, setting, text) -> None:
    monkeypatch.setenv(names.ENV_CONSOLE_WRITE, setting)
    behind_api._served.cache_clear()
    assert text in ask("/console/batches")["body"]


def test_a_button_that_was_pressed_is_in_the_log_with_who_pressed_it(memory, monkeypatch, capsys) -> None:
    # Given a console with buttons, and a batch
    monkeypatch.setenv(names.ENV_CONSOLE_WRITE, "true")
    behind_api._served.cache_clear()
    logging.getLogger(LOGGER).handlers.clear()
    batch = Services(memory.ports()).ledger.open(OpenBatch()).batch_id
    address = f"/console/batches/{batch}/actions/cancel"
    page = ask(address)
    cookie = page["cookies"][0].partition(";")[0]
    token = page["body"].partition('name="form_token" value="')[2].partition('"')[0]
    # When somebody presses
    answer = ask(address, "POST", f"form_token={token}", cookie=cookie, origin="https://api.example")
    # Then it is done, and the log says by whom
    assert answer["statusCode"] == 200
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines() if '"action"' in line]
    (line,) = [one for one in lines if one["message"] == "action"]
    assert line["action"] == "cancelBatch"
    assert ARN in json.dumps(line)


def test_a_form_of_another_site_is_refused(memory) -> None:
    assert ask("/console/batches", "POST", origin="https://evil.example")["statusCode"] == 403
