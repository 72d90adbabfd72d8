"""The function that serves the console behind the API."""

from __future__ import annotations

import pytest

from fanin.adapters.memory import Memory
from fanin.console import behind_api
from fanin.entry import wiring
from tests.unit.entry.conftest import CONTEXT
from tests.unit.functions.conftest import load


@pytest.mark.parametrize("path", ["/console/batches", "/console/live/batches"])
def test_it_hands_requests_to_the_console(monkeypatch, path) -> None:
    # Given a stack
    memory = Memory()
    monkeypatch.setattr(wiring, "connect", lambda _settings: memory.ports())
    behind_api._served.cache_clear()
    # When API Gateway hands over a request
    event = {
        "version": "2.0",
        "rawPath": path,
        "rawQueryString": "",
        "headers": {"host": "api.example"},
        "requestContext": {"http": {"method": "GET", "path": path, "sourceIp": "192.0.2.1"}},
        "isBase64Encoded": False,
    }
    answer = load("console").handler(event, CONTEXT)
    # Then the console answers it
    assert answer["statusCode"] == 200
    assert "No batches here" in answer["body"]
