"""Batch rows on DynamoDB, beyond the contract of all stores: answers that never come."""

from __future__ import annotations

from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from threading import Thread

import pytest

from fanin.adapters.dynamodb import Connection, DynamoBatches
from fanin.errors import ServiceUnavailable


class Silent(HTTPServer):
    """Takes requests, and closes the connection instead of answering."""

    calls: list[str]


class _Handler(BaseHTTPRequestHandler):
    server: Silent

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        self.server.calls.append(self.headers["X-Amz-Target"].rpartition(".")[2])
        self.close_connection = True


@pytest.fixture
def silent(monkeypatch: pytest.MonkeyPatch) -> Iterator[Silent]:
    server = Silent(("127.0.0.1", 0), _Handler)
    server.calls = []
    Thread(target=server.serve_forever, daemon=True).start()
    monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://127.0.0.1:{server.server_port}")
    monkeypatch.setenv("AWS_REGION", "eu-west-1")
    monkeypatch.setenv("AWS_DEFAULT_REGION", "eu-west-1")
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "test")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "test")
    yield server
    server.shutdown()
    server.server_close()


def test_an_addition_without_a_key_is_sent_once_and_says_so(silent: Silent) -> None:
    batches = DynamoBatches("batches", "parts", Connection())

    with pytest.raises(ServiceUnavailable, match="idempotency key"):
        batches.allocate(7, 10, activity=None, room=None)

    assert silent.calls == ["UpdateItem"]
