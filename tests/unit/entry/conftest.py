"""A ledger in memory behind the entries, and events as AWS makes them."""

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any
from urllib.parse import urlencode

import pytest

from fanin.adapters.memory import Memory
from fanin.app.ledger.service import LedgerService
from fanin.app.services import Services
from fanin.entry import observe
from fanin.entry.http.application import application, serve
from fanin.errors import Throttled

CONTEXT = SimpleNamespace(
    function_name="fanin-test",
    memory_limit_in_mb=128,
    invoked_function_arn="arn:aws:lambda:eu-west-1:000000000000:function:fanin-test",
    aws_request_id="request-of-lambda",
    get_remaining_time_in_millis=lambda: 300_000,
)


@dataclass
class Answer:
    status: int
    headers: dict[str, str]
    text: str

    @property
    def json(self) -> Any:
        return json.loads(self.text)


@dataclass
class Client:
    """Calls the API as API Gateway does, payload format 2.0."""

    app: Any
    events: list[dict[str, Any]] = field(default_factory=list)
    authorizer: dict[str, Any] | None = None
    """What API Gateway says of the caller; without it, the API lets everybody in."""

    def __call__(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        raw: str | None = None,
        headers: dict[str, str] | None = None,
        **query: Any,
    ) -> Answer:
        event: dict[str, Any] = {
            "version": "2.0",
            "routeKey": "$default",
            "rawPath": path,
            "rawQueryString": urlencode(query),
            "headers": {"content-type": "application/json", **(headers or {})},
            "requestContext": {
                "http": {"method": method, "path": path, "sourceIp": "192.0.2.7"},
                "requestId": "request-of-gateway",
                "stage": "$default",
                "timeEpoch": 1_700_000_000_000,
            },
            "isBase64Encoded": False,
        }
        if self.authorizer is not None:
            event["requestContext"]["authorizer"] = self.authorizer
        if query:
            event["queryStringParameters"] = {name: str(value) for name, value in query.items()}
        if raw is not None or body is not None:
            event["body"] = raw if raw is not None else json.dumps(body)
        answer = serve(self.app, event, CONTEXT)
        return Answer(answer["statusCode"], answer["headers"], answer["body"])


@pytest.fixture
def call(ledger: LedgerService) -> Client:
    return Client(application(lambda: Services(ledger.ports)))


def throttle_word(memory: Memory, nth: int, kind: str = "words.clear") -> None:
    """Let one write of a kind be throttled."""
    writes: list[str] = []

    def on_call(call: str, moment: str) -> None:
        if (call, moment) == (kind, "before"):
            writes.append(call)
            if len(writes) == nth:
                raise Throttled("slow down")

    memory.accesses._on_call = on_call


@pytest.fixture
def context() -> SimpleNamespace:
    return CONTEXT


@pytest.fixture
def measured() -> Iterator[Callable[[], dict[str, list[float]]]]:
    """What was counted since the last look, by metric."""

    def look() -> dict[str, list[float]]:
        found = {name: list(metric["Value"]) for name, metric in observe.metrics.metric_set.items()}
        found |= {name: [float(value)] for name, value in observe.counted.items() if value}
        forget()
        return found

    def forget() -> None:
        observe.metrics.clear_metrics()
        observe.counted.clear()

    forget()
    yield look
    forget()
