"""Producers wait for room and takers give it back, over the API and straight on the stores."""

from __future__ import annotations

import json
from types import SimpleNamespace
from urllib.parse import parse_qsl, urlsplit

import pytest

from fanin import Tracker
from fanin.adapters.backoff import Backoff
from fanin.adapters.memory import Memory
from fanin.app.api import Buffers
from fanin.app.buffers.service import BufferService
from fanin.app.services import Services
from fanin.client.buffers import Producer, Taker
from fanin.client.https.api import HttpsApi
from fanin.client.https.buffers import HttpsBuffers
from fanin.client.https.transport import Request, Response, unsigned
from fanin.domain.buffer import Outcome
from fanin.entry.http.application import application, serve
from fanin.errors import BufferNotFound, InvalidRequest, LimitReached, ServiceUnavailable

CONTEXT = SimpleNamespace(
    aws_request_id="r", function_name="f", memory_limit_in_mb=1, invoked_function_arn="a"
)


class Api:
    """Answers as the deployed API does, from stores in memory.

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


@pytest.fixture
def memory() -> Memory:
    return Memory()


@pytest.fixture
def api(memory: Memory) -> Api:
    return Api(Services(memory.ports()))


@pytest.fixture(params=["https", "direct"])
def buffers(request: pytest.FixtureRequest, memory: Memory, api: Api) -> Buffers:
    if request.param == "direct":
        return Services(memory.ports()).buffers
    return over_https(api)


def over_https(api: Api) -> Buffers:
    patient = Backoff(sleep=lambda _: None)
    return HttpsBuffers(HttpsApi("https://api.example.com", sign=unsigned, transport=api, backoff=patient))


def test_a_buffer_is_the_same_over_the_api_and_on_the_stores(buffers: Buffers) -> None:
    # Given a buffer
    buffer = buffers.define("jobs", 3)
    assert buffers.define("jobs", 3) == buffer
    assert buffers.list().buffers == (buffer,)

    # When work goes through it
    accepted = buffers.put("jobs", ["a ☂", "b"], key="k")
    assert buffers.put("jobs", ["a ☂", "b"], key="k") == accepted
    work = buffers.take("jobs", most=2, wait=0)
    level = buffers.status("jobs")
    released = buffers.done("jobs", [one.receipt for one in work])

    # Then everybody says so
    assert accepted.outcome is Outcome.WAITING
    assert [one.payload for one in work] == ["a ☂", "b"]
    assert (level.pending, level.count, level.buffer) == (2, 0, buffer)
    assert (released.done, released.late) == (2, 0)
    assert buffers.take("jobs", wait=0) == []
    with pytest.raises(InvalidRequest):
        buffers.done("jobs", ["nonsense"])
    buffers.delete("jobs")
    with pytest.raises(BufferNotFound):
        buffers.status("jobs")


def test_a_producer_waits_as_long_as_the_buffer_is_full(buffers: Buffers) -> None:
    # Given a full buffer, out of which something is taken at the third wait
    buffers.define("jobs", 1)
    taker = Taker(buffers, "jobs", wait=0)
    waits: list[float] = []

    def sleep(seconds: float) -> None:
        waits.append(seconds)
        if len(waits) == 3:
            taker.done(*taker.take())

    producer = Producer(buffers, "jobs", backoff=Backoff(base=0.5, cap=10, sleep=sleep, fraction=lambda: 0.9))
    producer.put("a")

    # When the producer puts more in
    accepted = producer.put("b")

    # Then it waited no less than it was asked to, and longer each time
    assert accepted.outcome is Outcome.WAITING
    assert waits == [1, 1, pytest.approx(1.8)]


def test_a_producer_that_will_not_wait_is_told(buffers: Buffers) -> None:
    buffers.define("jobs", 1)
    producer = Producer(buffers, "jobs")
    producer.put_now("a")
    with pytest.raises(LimitReached) as rejected:
        producer.put_now("b")
    assert rejected.value.retry_after == 1


def test_a_producer_gives_up_in_time(buffers: Buffers) -> None:
    buffers.define("jobs", 1)
    clock = SimpleNamespace(at=0.0)

    def sleep(seconds: float) -> None:
        clock.at += seconds

    producer = Producer(buffers, "jobs", backoff=Backoff(sleep=sleep), now=lambda: clock.at)
    producer.put("a", timeout=5)
    with pytest.raises(LimitReached):
        producer.put("b", timeout=5)
    assert 5 <= clock.at < 30


def test_a_taker_gives_back_what_went_well(buffers: Buffers, memory: Memory) -> None:
    # Given four pieces of work, of which the third fails once
    buffers.define("jobs", 9)
    buffers.put("jobs", list("abcd"))
    handled: list[str] = []

    def handle(payload: str) -> None:
        if payload == "c" and "c" not in handled:
            handled.append("c")
            raise RuntimeError("once")
        handled.append(payload)

    taker = Taker(buffers, "jobs", wait=0)
    with pytest.raises(RuntimeError, match="once"):
        taker.run(handle, until_empty=True)
    assert buffers.status("jobs").pending == 2

    # When its time has passed, then what is left comes again
    memory.clock.advance(60_000)
    assert taker.run(handle, until_empty=True) == 2
    assert handled == ["a", "b", "c", "c", "d"]
    assert buffers.status("jobs").pending == 0


def test_a_put_whose_answer_was_lost_is_repeated_only_with_a_key(api: Api) -> None:
    buffers = over_https(api)
    buffers.define("jobs", 9)

    # Given a put without a key, then it is not sent again
    api.lost, api.requests[:] = 1, []
    with pytest.raises(ServiceUnavailable):
        buffers.put("jobs", ["a"])
    assert len(api.requests) == 1

    # Given one with a key, then it is, and has one slot
    api.lost, api.requests[:] = 1, []
    buffers.put("jobs", ["b"], key="k")
    assert [json.loads(request.body or b"") for request in api.requests] == [{"payloads": ["b"]}] * 2
    assert buffers.status("jobs").pending == 2


def test_a_tracker_has_buffers_producers_and_takers() -> None:
    tracker = Tracker.in_memory()
    tracker.buffers.define("jobs", 2)
    tracker.producer("jobs").put("a")
    found: list[str] = []
    assert tracker.taker("jobs", wait=0).run(found.append, until_empty=True) == 1
    assert found == ["a"]
    assert isinstance(tracker.buffers, BufferService)
    assert isinstance(Tracker.over_https("https://x.example.com", sign=unsigned).buffers, HttpsBuffers)
