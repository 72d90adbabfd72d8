"""Transports for tests: one of scripted answers, and one to the API in this process."""

import json
from collections.abc import Callable, Mapping
from types import SimpleNamespace
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

import pytest

from fanin.adapters.backoff import Backoff
from fanin.adapters.memory import Memory
from fanin.app.api import Fanin
from fanin.app.services import Services
from fanin.client.https.api import HttpsApi
from fanin.client.https.services import HttpsServices
from fanin.client.https.transport import HttpsRequest, Response, unsigned
from fanin.entry.http.application import application, serve
from fanin.entry.http.table import ROUTES
from fanin.entry.http.validation import checked
from fanin.errors import FaninError, ServiceUnavailable
from fanin.names import API_ROOT
from fanin.wire.problems import DOCUMENT

URL = "https://abc123.execute-api.eu-west-1.amazonaws.com"
CONTEXT = SimpleNamespace(
    aws_request_id="r", function_name="f", memory_limit_in_mb=1, invoked_function_arn="a"
)


class Script:
    """A transport that gives one answer after the other, and keeps what it was asked."""

    def __init__(self, *answers: Response | FaninError) -> None:
        self.answers = list(answers)
        self.requests: list[HttpsRequest] = []

    def __call__(self, request: HttpsRequest) -> Response:
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
        self.backoff = Backoff(tries=4, base=1, cap=8, sleep=self.seconds.append, fraction=lambda: 1.0)


OUTAGES = {
    "503 of API Gateway": Response(503, {}, b'{"message": "Service Unavailable"}'),
    "a fault of the service": problem(503, ServiceUnavailable.code),
    "a connection that is cut": ServiceUnavailable("no answer came"),
}
"""What a client sees of an API that is down."""


class Gateway:
    """Answers as the deployed API does, from services in this process.

    Attributes:
        requests: all that came.
        lost: how many of the next answers are lost on the way back.
        down: what every request gets while the API is down: an answer, or an error of the connection.
    """

    def __init__(self, services: Services) -> None:
        self.requests: list[HttpsRequest] = []
        self.lost = 0
        self.down: Response | FaninError | None = None
        self._app = application(lambda: services)

    def __call__(self, request: HttpsRequest) -> Response:
        self.requests.append(request)
        if isinstance(self.down, FaninError):
            raise self.down
        if self.down is not None:
            return self.down
        url = urlsplit(request.url)
        event = {
            "version": "2.0",
            "rawPath": unquote(url.path),
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
        self._check(request.method, unquote(url.path), answer)
        if self.lost:
            self.lost -= 1
            raise ServiceUnavailable("no answer came")
        headers = {name.lower(): value for name, value in answer["headers"].items()}
        return Response(answer["statusCode"], headers, answer["body"].encode())

    @staticmethod
    def _check(method: str, path: str, answer: Mapping[str, Any]) -> None:
        """An answer has the status and the form that the document promises."""
        if answer["statusCode"] < 400:
            (route,) = [route for route in ROUTES if route.method == method and route.matches(path)]
            assert answer["statusCode"] == route.status
            if route.answer and route.answer is not DOCUMENT:
                checked(route.answer, answer["body"])

    @property
    def asked(self) -> list[tuple[str, str]]:
        """Method of each request, and its path below the API's root."""
        return [(request.method, request.url.removeprefix(URL + API_ROOT)) for request in self.requests]


def https(transport: Callable[[HttpsRequest], Response]) -> HttpsServices:
    """All services over a transport, with no wait between attempts."""
    patient = Backoff(tries=6, sleep=lambda _: None)
    return HttpsServices(HttpsApi(URL, sign=unsigned, transport=transport, backoff=patient))


@pytest.fixture
def waits() -> Waits:
    return Waits()


@pytest.fixture
def direct(memory: Memory) -> Services:
    """The services themselves, on the same stores."""
    return Services(memory.ports())


@pytest.fixture
def gateway(direct: Services) -> Gateway:
    return Gateway(direct)


@pytest.fixture
def over_https(gateway: Gateway) -> HttpsServices:
    return https(gateway)


@pytest.fixture(params=["direct", "https"])
def services(request: pytest.FixtureRequest, direct: Services, over_https: HttpsServices) -> Fanin:
    """Both faces, one after the other."""
    return direct if request.param == "direct" else over_https
