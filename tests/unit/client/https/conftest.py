"""The API in this process, for clients that call it over HTTPS."""

from __future__ import annotations

from types import SimpleNamespace
from urllib.parse import parse_qsl, urlsplit

import pytest

from fanin.adapters.backoff import Backoff
from fanin.adapters.memory import Memory
from fanin.app.services import Services
from fanin.client.https.api import HttpsApi
from fanin.client.https.transport import Request, Response, unsigned
from fanin.entry.http.application import application, serve
from fanin.errors import ServiceUnavailable

CONTEXT = SimpleNamespace(
    aws_request_id="r", function_name="f", memory_limit_in_mb=1, invoked_function_arn="a"
)


class InProcessApi:
    """A transport to the API on stores in memory, which answers as the deployed one does.

    Attributes:
        lost: how many of the next answers are lost on the way back.
    """

    def __init__(self, services: Services) -> None:
        self.requests: list[Request] = []
        self.lost = 0
        self._app = application(lambda: services)

    def __call__(self, request: Request) -> Response:
        self.requests.append(request)
        url = urlsplit(request.url)
        event = {
            "version": "2.0",
            "rawPath": url.path,
            "rawQueryString": url.query,
            "queryStringParameters": dict(parse_qsl(url.query)),
            "headers": dict(request.headers),
            "requestContext": {
                "http": {"method": request.method, "path": url.path},
                "requestId": "r",
                "stage": "$default",
            },
            "body": (request.body or b"").decode(),
            "isBase64Encoded": False,
        }
        answer = serve(self._app, event, CONTEXT)
        if self.lost:
            self.lost -= 1
            raise ServiceUnavailable("no answer came")
        headers = {name.lower(): value for name, value in answer["headers"].items()}
        return Response(answer["statusCode"], headers, answer["body"].encode())

    def client(self) -> HttpsApi:
        """A client of it that repeats requests without waiting."""
        patient = Backoff(sleep=lambda _: None)
        return HttpsApi("https://api.example.com", sign=unsigned, transport=self, backoff=patient)


@pytest.fixture
def memory() -> Memory:
    return Memory()


@pytest.fixture
def api(memory: Memory) -> InProcessApi:
    return InProcessApi(Services(memory.ports()))
