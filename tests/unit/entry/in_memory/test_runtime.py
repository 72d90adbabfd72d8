"""The service at work in one process: what follows, in which order, and in whose thread."""

import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest

from fanin import names
from fanin.adapters.memory import SeededRandom
from fanin.adapters.system import SystemRandom
from fanin.domain.batch import OpenBatch, State
from fanin.domain.directory import Register
from fanin.domain.scatter import Recipient, Scatter
from fanin.entry.in_memory import clock as clocks
from fanin.entry.in_memory.clock import RealClock, ServiceClock, StandingClock
from fanin.entry.in_memory.runtime import Runtime
from fanin.entry.in_memory.sources import PAUSE_MS

HOUR_MS = 3_600_000


@pytest.fixture
def clock() -> StandingClock:
    return StandingClock()


@pytest.fixture
def runtime(clock: StandingClock) -> Runtime:
    return Runtime(clock, SeededRandom())


def told(runtime: Runtime) -> list[str]:
    return [event.detail_type for event in runtime.bus.told]


def make_queue(runtime: Runtime, name: str = "rows", *, channel: bool = False, **attributes: str) -> str:
    tags = {names.CHANNEL_TAG: "test"} if channel else {}
    return runtime.queue(name, attributes=attributes, tags=tags).url


class TestCalls:
    def test_what_follows_is_done_before_the_call_returns(self, runtime):
        ledger = runtime.services.ledger
        parent = ledger.open(OpenBatch())
        group = ledger.add(parent.batch_id, 1)
        ledger.close(parent.batch_id)
        child = ledger.open(OpenBatch(parent_item=f"{group.prefix}:0"))
        ledger.close(child.batch_id)
        assert told(runtime) == ["Batch Completed"] * 2
        assert ledger.status(parent.batch_id).batch.state is State.COMPLETE

    def test_what_follows_is_done_though_the_call_fails(self, runtime):
        ledger = runtime.services.ledger
        batch = ledger.open(OpenBatch())

        def answer_lost(call: str, moment: str) -> None:
            if (call, moment) == ("batches.end", "after"):
                runtime.on_call = lambda _call, _moment: None
                raise ConnectionError

        runtime.on_call = answer_lost
        with pytest.raises(ConnectionError):
            ledger.cancel(batch.batch_id)
        assert told(runtime) == ["Batch Cancelled"]


class TestTime:
    def test_a_deadline_is_met_when_it_is_due_and_not_at_the_end_of_the_wait(self, runtime, clock):
        ledger, start = runtime.services.ledger, clock.now()
        batch = ledger.open(OpenBatch(deadline=start + 1_000))
        runtime.clock.sleep(7200)
        row = ledger.status(batch.batch_id).batch
        assert (row.state, row.ended_at) == (State.TIMED_OUT, start + 1_000)
        assert clock.now() == start + 2 * HOUR_MS

    def test_the_reaper_comes_every_five_minutes(self, runtime, clock):
        start = clock.now()
        batch = runtime.services.ledger.open(OpenBatch(idle_ttl=60))
        runtime.clock.sleep(299)
        assert told(runtime) == []
        runtime.clock.sleep(1)
        assert told(runtime) == ["Batch Orphaned"]
        row = runtime.services.ledger.status(batch.batch_id).batch
        assert row.ended_at == start + 300_000

    def test_the_registrar_drops_who_is_over_and_whose_queue_is_gone(self, runtime):
        directory = runtime.services.directory
        here, gone = make_queue(runtime, "here", channel=True), make_queue(runtime, "gone", channel=True)
        directory.register(Register("cars", "late", here, lease=60))
        directory.register(Register("cars", "gone", gone, lease=86_400))
        runtime.sqs.delete_queue(QueueUrl=gone)
        runtime.clock.sleep(300)
        reasons = {event.detail["name"]: event.detail["reason"] for event in runtime.bus.told[2:]}
        assert reasons == {"late": "lease over", "gone": "queue gone"}

    def test_a_year_passes_fast(self, runtime, clock):
        runs: list[str] = []
        runtime.on_call = lambda call, _moment: runs.append(call)
        begun, start = time.monotonic(), clock.now()
        runtime.clock.sleep(365 * 86_400)
        assert clock.now() == start + 365 * 86_400_000
        assert runs.count("batches.page") <= 4
        assert time.monotonic() - begun < 60

    def test_a_receive_that_waits_gets_what_an_alarm_sends_meanwhile(self, runtime, clock):
        # Given a recipient that let the first message of a scatter go by
        url, start = make_queue(runtime, channel=True, VisibilityTimeout="900"), clock.now()
        runtime.services.scatters.start(Scatter("x", [Recipient("one", url)], timeout=10, max_retries=1))
        assert runtime.sqs.receive_message(QueueUrl=url)["Messages"]
        # When it polls, Then it gets the second when that is sent
        assert runtime.sqs.receive_message(QueueUrl=url, WaitTimeSeconds=20)["Messages"]
        assert clock.now() == start + 10_000


class TestFunctionsThatFail:
    def test_an_event_whose_answer_was_lost_is_told_twice_with_one_id(self, runtime):
        failures = iter([True])

        def lost(call: str, moment: str) -> None:
            if (call, moment) == ("events.publish", "after") and next(failures, False):
                raise ConnectionError

        runtime.on_call = lost
        batch = runtime.services.ledger.cancel(runtime.services.ledger.open(OpenBatch()).batch_id)
        assert [event.id for event in runtime.bus.told] == [f"{batch.batch_id}.cancelled"] * 2

    def test_one_that_fails_for_ever_leaves_a_dead_letter(self, runtime):
        def outage(call: str, _moment: str) -> None:
            if call == "events.publish":
                raise ConnectionError

        runtime.on_call = outage
        batch = runtime.services.ledger.cancel(runtime.services.ledger.open(OpenBatch()).batch_id)
        runtime.clock.sleep(10 * PAUSE_MS / 1000)
        (dead,) = runtime.dead
        assert dead.where == "notifier"
        assert dead.what[1].batch_id == batch.batch_id

    def test_a_malformed_message_of_the_ack_queue_ends_in_its_dead_letters(self, runtime):
        runtime.sqs.send_message(QueueUrl=runtime.ack_queue_url, MessageBody="nonsense")
        runtime.clock.sleep(1)
        grave = runtime.sqs.get_queue_url(QueueName="fanin-acks-dead-letters")["QueueUrl"]
        assert runtime.sqs.receive_message(QueueUrl=grave)["Messages"][0]["Body"] == "nonsense"


def test_threads_lose_nothing_of_what_follows(runtime):
    # Given four threads whose calls all have something follow
    ledger = runtime.services.ledger
    start = threading.Barrier(4)

    def end(_: int) -> None:
        start.wait()
        for _ in range(100):
            ledger.cancel(ledger.open(OpenBatch()).batch_id)

    # When they are through, Then all of it has been done
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(end, range(4)))
    assert len({event.id for event in runtime.bus.told}) == len(runtime.bus.told) == 400


class TestRealTime:
    @pytest.fixture
    def clock(self) -> RealClock:
        return RealClock()

    @pytest.fixture
    def runtime(self, clock: RealClock) -> Runtime:
        return Runtime(clock, SystemRandom())

    def test_what_is_due_is_done_with_the_next_call(self, runtime, clock, monkeypatch):
        ledger, now = runtime.services.ledger, clock.now
        batch = ledger.open(OpenBatch(deadline=now() + HOUR_MS))
        assert ledger.status(batch.batch_id).batch.state is State.OPEN
        monkeypatch.setattr(clock, "now", lambda: now() + HOUR_MS)
        assert ledger.status(batch.batch_id).batch.state is State.TIMED_OUT
        assert told(runtime) == ["Batch Timed Out"]

    def test_a_receive_gets_what_another_thread_sends_meanwhile(self, runtime):
        url = make_queue(runtime)

        def later(act: Callable[[], object]) -> None:
            time.sleep(0.1)
            act()

        with ThreadPoolExecutor(1) as pool:
            begun = time.monotonic()
            pool.submit(later, lambda: runtime.sqs.send_message(QueueUrl=url, MessageBody="x"))
            assert runtime.sqs.receive_message(QueueUrl=url, WaitTimeSeconds=20)["Messages"]
        assert 0.05 < time.monotonic() - begun < 20


# Clocks of a service in memory.


def test_on_a_standing_clock_time_passes_at_once_and_never_back():
    clock = StandingClock(1_000)
    assert clock.now() == clock.now() == 1_000
    clock.pass_until(5_000)
    clock.pass_until(2_000)
    assert clock.now() == 5_000


def test_a_real_clock_sleeps_a_moment_at_the_most(monkeypatch):
    slept: list[float] = []
    monkeypatch.setattr(clocks.time, "sleep", slept.append)
    clock = RealClock()
    clock.pass_until(clock.now() + 60_000)
    clock.pass_until(clock.now() - 60_000)
    assert slept == [0.05, 0]
    assert abs(clock.now() - time.time() * 1000) < 60_000


def test_whoever_uses_a_service_gets_the_time_in_the_units_of_the_module_time():
    waits: list[float] = []
    clock = ServiceClock(StandingClock(1_500), waits.append)
    clock.sleep(2)
    assert (clock.now(), clock.seconds(), clock.monotonic(), waits) == (1_500, 1.5, 1.5, [2])
