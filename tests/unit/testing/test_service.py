"""The service in memory as tests of applications use it."""

import json
import subprocess
import sys
from collections import Counter
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from fanin import (
    IdempotentReceiver,
    ItemFailed,
    MemoryRepeatBuffer,
    Message,
    OpenFrame,
    ReceivedMessage,
    Repeater,
)
from fanin.client.frames.sqs import SqsReceiver, SqsTransport, queue_notices
from fanin.domain.scatter import Recipient
from fanin.errors import InvalidRequest, NotConfigured, ServiceUnavailable, Throttled
from fanin.testing import Fault, InMemoryService
from fanin.types import Delivery

HOUR = timedelta(hours=1)


def kinds(service: InMemoryService) -> list[str]:
    return [event.detail_type for event in service.events]


class TestTime:
    def test_it_starts_where_it_is_told_to_and_stands_still(self):
        start = datetime(2030, 1, 1, tzinfo=UTC)
        service = InMemoryService(start=start)
        service.advance(HOUR)
        service.tracker.ack(service.tracker.add(service.tracker.open().batch_id, 10))
        assert service.now == start + HOUR

    def test_batches_idle_since_are_expired_by_it(self, service):
        service.tracker.open()
        service.advance(HOUR)
        assert service.tracker.expire("open", idle_since=-timedelta(minutes=40)).batches == 1


class TestSeed:
    @staticmethod
    def run(seed: int) -> list[str]:
        service = InMemoryService(seed=seed)
        with service.tracker.batch() as batch:
            batch.add(3)
        batch.cancel()
        return [event.id for event in service.events]

    def test_a_run_is_repeated_by_its_seed(self):
        assert self.run(1) == self.run(1) != self.run(2)


class TestQueues:
    @pytest.mark.parametrize("via", ["api", "queue"])
    def test_a_lambda_handler_is_called_as_messages_come(self, service, via):
        # Given a handler that gives one message up, and gets another the second time only
        url, tries = service.queue("rows", visibility_timeout=60), Counter[str]()

        @service.tracker.sqs_handler(via=via)
        def handle(message: ReceivedMessage) -> None:
            tries[message.body] += 1
            if message.body == "7":
                raise ItemFailed("unlucky")
            if message.body == "8" and tries["8"] == 1:
                raise ConnectionError

        service.consume(url, handle)
        # When a batch is sent
        with service.tracker.batch() as batch:
            batch.send(url, (f"{n}" for n in range(25)))
        # Then all but one are done, and that one when it is visible again
        assert kinds(service) == ["Batch Failing"]
        assert [span.stop - span.start for span in service.tracker.iter_missing(batch.id)] == [1]
        service.advance(timedelta(minutes=1))
        assert kinds(service) == ["Batch Failing", "Batch Completed"]
        assert tries["8"] == 2
        assert service.events[1].detail["failed"] == 1

    @pytest.mark.parametrize("via", ["api", "queue"])
    def test_one_bad_mark_of_a_window_harms_no_other(self, service, via):
        # Given a handler that names a total which the batch does not have, for one message of ten
        url = service.queue("rows", max_receives=3, visibility_timeout=60)

        @service.tracker.sqs_handler(via=via)
        def handle(message: ReceivedMessage) -> None:
            message.add(**{"lines" if message.body == "3" else "rows": int(message.body)})

        service.consume(url, handle)
        # When a batch is sent
        with service.tracker.batch(totals=["rows"]) as batch:
            batch.send(url, (f"{n}" for n in range(10)))
        service.advance(HOUR)
        # Then nine are done with what they bring; through the queue, the bad mark is among the dead messages,
        # and over the API the message comes again until its queue gives it up
        status = service.tracker.status(batch.id, exact=True)
        if via == "queue":
            assert (status.done_min, status.batch.totals) == (9, {"rows": 42})
            (dead,) = service.dead
            (bad,) = json.loads(dead.what["body"])["marks"]
            assert (dead.where, bad["item"][-2:], bad["totals"]) == ("acks", ":3", {"lines": 3})
        else:
            assert (status.batch.failed, status.batch.totals) == (1, {"rows": 42})
            assert service.dead == []

    def test_messages_that_were_there_before_are_consumed(self, service):
        url, seen = service.queue(), list[str]()
        service.sqs.send_message(QueueUrl=url, MessageBody="x")
        service.consume(url, lambda event, _context: seen.append(event["Records"][0]["body"]))
        assert seen == ["x"]

    def test_a_dead_letter_of_no_batch_is_kept(self, service):
        url = service.queue("rows", max_receives=1, visibility_timeout=1)
        service.sqs.send_message(QueueUrl=url, MessageBody="whose am I?")
        for _ in range(2):
            service.sqs.receive_message(QueueUrl=url)
            service.advance(timedelta(seconds=1))
        (dead,) = service.dead
        assert dead.where == "dead_letters"

    def test_a_fifo_queue_keeps_the_order_of_a_batch(self, service):
        url, seen = service.queue("rows", fifo=True), list[str]()
        assert url.endswith(".fifo")
        with service.tracker.batch() as batch:
            batch.send(url, [f"{n}" for n in range(30)])
        consumer = service.tracker.consumer(url, lambda message: seen.append(message.body))
        consumer.run(until=lambda: batch.status().batch.state.terminal)
        assert seen == [f"{n}" for n in range(30)]

    @pytest.mark.parametrize(("hours", "again"), [(23, True), (25, False)])
    def test_a_message_of_an_unknown_batch_is_dropped_once_it_is_a_day_old(self, service, hours, again):
        # Given messages of another service, for a consumer on Lambda and for one that polls
        with InMemoryService(seed=1).tracker.batch() as other:
            (item,) = other.add(1)
        attributes = {"fanin-item": {"DataType": "String", "StringValue": item}}
        service.advance(timedelta(hours=hours))
        queues = [service.queue(visibility_timeout=60) for _ in range(2)]
        for url in queues:
            service.sqs.send_message(QueueUrl=url, MessageBody=url, MessageAttributes=attributes)
        # When both have handled them, and some minutes pass
        seen = Counter[str]()
        service.consume(queues[0], service.tracker.sqs_handler(lambda message: seen.update([message.body])))
        consumer = service.tracker.consumer(queues[1], lambda message: seen.update([message.body]), wait=0)
        for _ in range(3):
            consumer.poll()
            service.advance(timedelta(seconds=61))
        # Then they came again, unless their batch is over a day old by the clock of the service
        assert [count > 1 for count in seen.values()] == [again, again]

    def test_a_delayed_message_comes_when_it_is_due(self, service):
        url, seen = service.queue(), list[datetime]()
        start = service.now
        service.consume(url, lambda _event, _context: seen.append(service.now))
        with service.tracker.batch() as batch:
            batch.send(url, [Message("x", delay=90)])
        service.advance(HOUR)
        assert seen == [start + timedelta(seconds=90)]

    def test_one_that_is_not_there(self, service):
        with pytest.raises(NotConfigured, match=r"service\.queue"):
            service.consume("https://sqs/rows", lambda _event, _context: None)
        with pytest.raises(NotConfigured, match="check the URL"), service.tracker.batch() as batch:
            batch.send("https://sqs/rows", ["x"])


class TestFaults:
    def test_a_full_batch_is_waited_for_while_others_work(self, service):
        # Given a bounded batch whose consumer is slow to come back
        url = service.queue(visibility_timeout=30)
        tries = Counter[str]()

        def handle(message: ReceivedMessage) -> None:
            tries[message.body] += 1
            if tries[message.body] == 1:
                raise ConnectionError

        service.consume(url, service.tracker.sqs_handler(handle))
        # When more is sent than it takes, Then the producer waits, and all goes through
        with service.tracker.batch(limit=8) as batch:
            assert batch.send(url, (f"{n}" for n in range(40))) == 40
        service.advance(HOUR)
        assert kinds(service) == ["Batch Completed"]


def scenario(service: InMemoryService, patience: int) -> int:
    """A batch of two, of which one item is a batch of its own; every step is repeated until it goes well."""
    tracker, url = service.tracker, service.queue("rows", visibility_timeout=10)

    def again(step: Any) -> Any:
        for _ in range(patience):
            try:
                return step()
            except ConnectionError:
                continue
        raise AssertionError("it never goes well")

    service.consume(url, tracker.sqs_handler(lambda _message: None, via="queue"))
    parent = again(lambda: tracker.open(key="parent", deadline=service.now + 24 * HOUR))
    group = again(lambda: tracker.add(parent.batch_id, 2, key="parent"))
    child = again(lambda: tracker.open(key="child", parent_item=group[0]))
    part = again(lambda: tracker.add(child.batch_id, 1, key="child"))
    for item in (part[0], group[1]):
        attributes = {"fanin-item": {"DataType": "String", "StringValue": item}}
        again(
            lambda: service.sqs.send_message(QueueUrl=url, MessageBody="x", MessageAttributes=attributes)  # noqa: B023
        )
    for batch in (child, parent):
        again(lambda: tracker.close(batch.batch_id))  # noqa: B023
    service.advance(HOUR)
    return parent.batch_id


@pytest.mark.parametrize("moment", ["before", "after"])
def test_a_process_may_die_at_any_access_and_the_end_is_told(moment):
    # Given how many accesses there are when all goes well
    accesses: list[str] = []
    healthy = InMemoryService(on_call=lambda call, when: accesses.append(call) if when == moment else None)
    scenario(healthy, 1)
    assert kinds(healthy) == ["Batch Completed"] * 2
    # When somebody dies at one of them, each in a run of its own
    for number in range(len(accesses)):
        countdown = iter(range(number + 1))

        def die(_call: str, when: str, countdown: Any = countdown, number: int = number) -> None:
            if when == moment and next(countdown, None) == number:
                raise ConnectionError

        service = InMemoryService(on_call=die)
        parent_id = scenario(service, 3)
        # Then both batches complete, and whoever hears of one twice hears the same id
        assert service.tracker.status(parent_id).batch.state == "complete", accesses[number]
        assert len({event.id for event in service.events}) == 2
        assert not service.dead


class TestPatterns:
    def test_a_payload_that_nobody_can_do_frees_its_slot_and_is_kept(self, service):
        # Given a full buffer with a queue of its own, and a payload that always fails
        service.tracker.buffers.define("jobs", 2)
        service.tracker.producer("jobs").put("poison", "good")
        tries: list[str] = []

        def handle(payload: str) -> None:
            tries.append(payload)
            if payload == "poison":
                raise ValueError("bad")

        # When it is tried for a day
        for _ in range(24):
            with suppress(ValueError):
                service.tracker.taker("jobs", wait=0).run(handle, until_empty=True)
            service.advance(HOUR)
        # Then there is room again, and the payload is kept with its reason
        assert (tries.count("poison"), tries.count("good")) == (10, 1)
        level = service.tracker.buffers.status("jobs")
        assert level.pending == 0
        (failure,) = service.tracker.failures(level.buffer.batch_id).failures
        assert failure.reason.startswith("dead letter: received")
        (dead,) = service.dead
        assert dead.what["body"] == "poison"

    def test_a_claimed_payload_is_a_reply(self, service):
        url = service.queue(channel=True)
        started = service.tracker.scatters.start([Recipient("car", url)], "video!")
        seen: list[ReceivedMessage] = []
        service.tracker.consumer(url, seen.append, wait=0).poll()
        claim = service.tracker.scatters.claim(seen[0], 300_000, "video/mp4")
        service.upload(claim.key)
        assert service.tracker.scatters.reply(seen[0], claim=claim.key).first
        assert service.events_of(started.batch.batch_id)[0].detail_type == "Gather Ready"

    def test_a_repeater_and_a_receiver_work_by_its_clock(self, service):
        # Given a sender and a receiver, and envelopes of which the first are lost
        url, channel = service.queue(visibility_timeout=60), service.queue(channel=True)
        repeater = Repeater(
            service.tracker.frames,
            SqsTransport(service.sqs, url),
            MemoryRepeatBuffer(),
            template=OpenFrame(10, reply_to=channel),
            notices=queue_notices(service.sqs, channel),
            clock=service.clock.monotonic,
        )
        effects: list[bytes] = []

        def handle(delivery: Delivery) -> None:
            effects.append(delivery.payload)

        receiver = SqsReceiver(
            IdempotentReceiver(
                service.tracker.frames,
                handle,
                service.tracker.acknowledger("api"),
                clock=service.clock.seconds,
            )
        )
        service.consume(url, receiver)
        for n in range(10):
            repeater.put(f"{n}".encode())
        service.on_call = Fault("sqs.send_message_batch")
        # When it sends, and repeats what is missing by and by
        repeater.flush()
        assert effects == []
        service.advance(timedelta(minutes=1))
        repeater.tick()
        # Then all arrive once, and it hears that they did
        assert sorted(effects) == [f"{n}".encode() for n in range(10)]
        assert repeater.tick() == 0

    def test_work_that_was_taken_comes_again(self, service):
        service.tracker.buffers.define("jobs", 2)
        service.tracker.producer("jobs").put("a")
        assert service.tracker.buffers.take("jobs", wait=0, visibility_timeout=40)
        assert not service.tracker.buffers.take("jobs", wait=20)
        assert [work.payload for work in service.tracker.buffers.take("jobs", wait=20)] == ["a"]


def test_it_needs_nothing_but_fanin_itself():
    """Neither Powertools nor the schemas' compiler, which are extras, nor a network or credentials."""
    code = """
import sys
for extra in ("aws_lambda_powertools", "fastjsonschema", "moto"):
    sys.modules[extra] = None
from datetime import timedelta
from fanin import Tracker
from fanin.testing import InMemoryService
service = InMemoryService()
url = service.queue("rows", max_receives=3)
with service.tracker.batch(deadline=timedelta(hours=1)) as batch:
    batch.send(url, ["a", "b"])
consumer = service.tracker.consumer(url, print, via="queue")
consumer.run(until=lambda: batch.status().batch.state.terminal)
assert [event.detail_type for event in service.events] == ["Batch Completed"]
assert Tracker.in_memory().open().state == "open"
"""
    subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True, timeout=60)


def test_faults_that_were_given_at_the_start_stop_when_on_call_is_taken_away():
    service = InMemoryService(on_call=Fault("batches.create", times=100))
    with pytest.raises(ServiceUnavailable):
        service.tracker.open()
    service.on_call = None
    assert service.tracker.open().batch_id


@pytest.mark.parametrize(
    ("call", "about"),
    [
        (lambda _: InMemoryService(start=datetime(2030, 1, 1)), "no time zone"),  # noqa: DTZ001
        (lambda service: service.advance(timedelta(seconds=-1)), "timedelta"),
        (lambda service: service.advance(60), "timedelta"),
        (lambda service: service.queue("work", max_receives=0), "max_receives"),
        (lambda service: service.queue("work", visibility_timeout=43_201), "visibility_timeout"),
        (lambda service: service.consume(service.queue(), print, batch_size=0), "batch_size"),
        (lambda service: service.consume(service.queue(), print, batch_size=10_001), "batch_size"),
        (lambda service: service.deliver_twice(service.queue(), share=2), "share"),
    ],
)
def test_what_sqs_and_the_clock_would_refuse_is_refused(service, call, about):
    before = service.now
    with pytest.raises(InvalidRequest, match=about):
        call(service)
    assert service.now == before


def test_it_happens_at_its_place_so_often_and_no_more():
    fault = Fault("words.clear", "after", times=2)
    fault("words.clear", "before")
    fault("words.read", "after")
    for _ in range(2):
        with pytest.raises(ServiceUnavailable):
            fault("words.clear", "after")
    assert fault.left == 0
    fault("words.clear", "after")


def test_some_accesses_may_go_well_first():
    fault = Fault("words.clear", skip=1, error=Throttled("slow down"))
    fault("words.clear", "before")
    with pytest.raises(Throttled):
        fault("words.clear", "before")


@pytest.mark.parametrize(("call", "moment"), [("clear", "before"), ("words.clear", "during")])
def test_a_fault_that_would_never_happen_is_refused(call, moment):
    with pytest.raises(InvalidRequest):
        Fault(call, moment)


@pytest.mark.parametrize(
    ("times", "told"), [(1, ["Batch Failing", "Batch Cancelled"]), (2, ["Batch Cancelled"])]
)
def test_what_the_bus_refuses_until_the_end_is_not_told_after_it(service, times, told):
    # Given a bus that refuses the first failure of a batch, once or until the batch has ended
    with service.tracker.batch() as batch:
        group = batch.add(3)
    service.on_call = Fault("events.publish", times=times)
    service.tracker.fail(group[0], "no price")
    service.on_call = None
    batch.cancel()
    # When all has been tried again, then nothing is told behind the end
    service.advance(HOUR)
    assert kinds(service) == told
