"""A client of DynamoDB that answers as each test says, behind a connection that does not wait."""

import re
from collections.abc import Iterator, Mapping
from http.server import BaseHTTPRequestHandler, HTTPServer
from threading import Thread
from typing import Any

import boto3
import pytest

from fanin.adapters.backoff import Backoff
from fanin.adapters.dynamodb.batches import DynamoBatches
from fanin.adapters.dynamodb.connection import Connection
from fanin.domain.batch import Batch

BATCH = Batch(
    batch_id=11,
    salt=bytes(16),
    created_at=0,
    touched_at=0,
    expires_at=1_800_000_000,
    open_idle_ttl=7200,
    closed_idle_ttl=7200,
    items=6,
)


@pytest.fixture
def client() -> Any:
    return boto3.client("dynamodb")


@pytest.fixture
def waits() -> list[float]:
    return []


@pytest.fixture
def connection(client: Any, waits: list[float]) -> Connection:
    return Connection(
        lambda: client, threads=4, backoff=Backoff(tries=3, sleep=waits.append, fraction=lambda: 1.0)
    )


@pytest.fixture
def batches(connection: Connection) -> DynamoBatches:
    return DynamoBatches("batches", "parts", connection)


@pytest.fixture
def asked(client: Any) -> list[dict[str, Any]]:
    """The requests that the client was asked to make, in order."""
    requests: list[dict[str, Any]] = []

    def note(params: Mapping[str, Any], **_: object) -> None:
        requests.append(dict(params))

    client.meta.events.register("provide-client-params.dynamodb", note)
    return requests


def refused(item: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """Arguments of a stubbed error: the condition failed, on a row that was as ``item`` tells."""
    return {
        "service_error_code": "ConditionalCheckFailedException",
        "modeled_fields": None if item is None else {"Item": item},
    }


def plainly(request: dict[str, Any]) -> tuple[str, str]:
    """The update and the condition of a request, with names and values in their places."""
    values = {
        name: next(iter(typed.values())) for name, typed in request["ExpressionAttributeValues"].items()
    }
    plain = {**request["ExpressionAttributeNames"], **values}
    update, condition = (
        re.sub(r"[#:]\w+", lambda found: str(plain[found[0]]), request.get(part, ""))
        for part in ("UpdateExpression", "ConditionExpression")
    )
    return update, condition


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
    Thread(target=server.serve_forever, args=[0.01], daemon=True).start()  # seconds until it sees its end
    monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://127.0.0.1:{server.server_port}")
    monkeypatch.setenv("AWS_REGION", "eu-west-1")
    monkeypatch.setenv("AWS_DEFAULT_REGION", "eu-west-1")
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "test")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "test")
    yield server
    server.shutdown()
    server.server_close()
