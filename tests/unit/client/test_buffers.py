"""Producers wait for room and takers give it back, over the API and straight on the stores."""

from dataclasses import replace
from types import SimpleNamespace

import pytest

from fanin import Tracker
from fanin.adapters.backoff import Backoff
from fanin.adapters.memory import Memory
from fanin.adapters.system import SystemClock
from fanin.app.api import Buffers
from fanin.app.services import Services
from fanin.client.buffers import ROOM_WAITS, Producer, Taker
from fanin.domain.buffer import PutOutcome
from fanin.errors import ItemFailed, LimitReached
from tests.unit.client.https.conftest import Gateway, https


@pytest.fixture(params=["https", "direct"])
def buffers(request: pytest.FixtureRequest, memory: Memory) -> Buffers:
    direct = Services(memory.ports())
    return direct.buffers if request.param == "direct" else https(Gateway(direct)).buffers


def test_a_producer_waits_as_long_as_the_buffer_is_full(buffers):
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

    accepted = producer.put("b")
    # Then it waited no less than it was asked to, and longer each time
    assert accepted.outcome is PutOutcome.WAITING
    assert waits == [1, 1, pytest.approx(1.8)]


def test_a_producer_gives_up_in_time(buffers):
    buffers.define("jobs", 1)
    clock = SimpleNamespace(at=0.0)

    def sleep(seconds: float) -> None:
        clock.at += seconds

    producer = Producer(buffers, "jobs", backoff=Backoff(sleep=sleep), now=lambda: clock.at)
    producer.put("a", timeout=5)
    with pytest.raises(LimitReached):
        producer.put("b", timeout=5)
    assert clock.at == pytest.approx(5)


def test_a_producer_with_a_timeout_tries_once_more_when_it_is_over(buffers):
    # Given a full buffer that asks for a second, and in which there is room after half of it
    buffers.define("jobs", 1)
    taker = Taker(buffers, "jobs", wait=0)
    clock = SimpleNamespace(at=0.0)

    def sleep(seconds: float) -> None:
        clock.at += seconds
        taker.done(*taker.take())

    producer = Producer(buffers, "jobs", backoff=Backoff(sleep=sleep), now=lambda: clock.at)
    producer.put("a")
    producer.put("b", timeout=0.75)
    assert clock.at == 0.75


def test_a_producer_of_a_tracker_waits_longer_and_longer_up_to_ten_seconds(memory, monkeypatch):
    # Given a full buffer, out of which something is taken at the seventh wait
    monkeypatch.setattr("fanin.client.tracker.ROOM_WAITS", replace(ROOM_WAITS, fraction=lambda: 1.0))
    waits: list[float] = []

    class Clock(SystemClock):
        def sleep(self, seconds: float) -> None:
            waits.append(seconds)
            if len(waits) == 7:
                tracker.taker("jobs", wait=0).run(lambda _: None, until_empty=True)

    tracker = Tracker(Services(memory.ports()), clock=Clock())
    tracker.buffers.define("jobs", 1)
    producer = tracker.producer("jobs")
    producer.put_now("a")
    producer.put("b")
    assert waits == [1, 1, 2, 4, 8, 10, 10]


def test_a_payload_that_always_fails_holds_up_no_other(buffers, caplog):
    # Given work of which two pieces always fail
    buffers.define("jobs", 9)
    buffers.put("jobs", ["a", "bad 1", "b", "bad 2", "c"])
    handled: list[str] = []

    def handle(payload: str) -> None:
        if payload.startswith("bad"):
            raise RuntimeError(payload)
        handled.append(payload)

    # When it is taken, Then all other work is done, and both errors can be seen
    with pytest.raises(RuntimeError, match="bad 1"):
        Taker(buffers, "jobs", wait=0).run(handle, until_empty=True)
    assert handled == ["a", "b", "c"]
    assert buffers.status("jobs").pending == 2
    assert "another payload of buffer jobs failed and comes again" in caplog.text


def test_work_that_a_handler_gives_up_frees_its_slot_and_does_not_come_again(buffers, memory):
    # Given a handler that gives up one of three payloads, with a long reason
    buffers.define("jobs", 9)
    buffers.put("jobs", ["a", "bad", "b"])
    handled: list[str] = []

    def handle(payload: str) -> None:
        handled.append(payload)
        if payload == "bad":
            raise ItemFailed("no such scene" + "!" * 2_000)

    assert Taker(buffers, "jobs", wait=0).run(handle, until_empty=True) == 3

    memory.clock.advance(60_000)
    assert Taker(buffers, "jobs", wait=0).run(handle, until_empty=True) == 0
    assert handled == ["a", "bad", "b"]
    level = buffers.status("jobs")
    assert level.pending == 0
    (failure,) = Services(memory.ports()).ledger.failures(level.buffer.batch_id).failures
    assert failure.reason.startswith("no such scene!!")
    assert len(failure.reason) == 1_024


def test_work_can_be_given_up_without_run(buffers):
    buffers.define("jobs", 1)
    taker = Taker(buffers, "jobs", wait=0)
    buffers.put("jobs", ["a"])
    (work,) = taker.take()
    assert taker.fail(work, "no such scene").done == 1
    assert taker.fail(work, "no such scene").late == 1
    assert taker.done(work).late == 1


def test_what_was_done_is_reported_even_if_the_process_is_told_to_end(buffers):
    buffers.define("jobs", 9)
    buffers.put("jobs", ["a", "stop", "b"])

    def handle(payload: str) -> None:
        if payload == "stop":
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        Taker(buffers, "jobs", wait=0).run(handle)
    assert buffers.status("jobs").pending == 2
