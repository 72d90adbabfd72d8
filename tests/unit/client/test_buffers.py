"""Producers wait for room and takers give it back, over the API and straight on the stores."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from fanin import Tracker
from fanin.adapters.backoff import Backoff
from fanin.adapters.memory import Memory
from fanin.app.api import Buffers
from fanin.app.buffers.service import BufferService
from fanin.app.services import Services
from fanin.client.buffers import Producer, Taker
from fanin.client.https.buffers import HttpsBuffers
from fanin.client.https.transport import unsigned
from fanin.domain.buffer import Outcome
from fanin.errors import LimitReached
from tests.unit.client.https.conftest import Gateway, https


@pytest.fixture
def memory() -> Memory:
    return Memory()


@pytest.fixture(params=["https", "direct"])
def buffers(request: pytest.FixtureRequest, memory: Memory) -> Buffers:
    direct = Services(memory.ports())
    return direct.buffers if request.param == "direct" else https(Gateway(direct)).buffers


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


def test_a_tracker_has_buffers_producers_and_takers() -> None:
    tracker = Tracker.in_memory()
    tracker.buffers.define("jobs", 2)
    tracker.producer("jobs").put("a")
    found: list[str] = []
    assert tracker.taker("jobs", wait=0).run(found.append, until_empty=True) == 1
    assert found == ["a"]
    assert isinstance(tracker.buffers, BufferService)
    assert isinstance(Tracker.over_https("https://x.example.com", sign=unsigned).buffers, HttpsBuffers)
