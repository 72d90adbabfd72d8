"""Why a batch is not finished: each finding from the situation that it names, on the service in memory."""

from datetime import timedelta
from typing import Any

import pytest

from fanin import ReceivedMessage, Tracker
from fanin.testing import InMemoryService
from fanin.types import Code, Diagnosis, Finding, Known, Severity, Trouble


@pytest.fixture
def service() -> InMemoryService:
    return InMemoryService()


@pytest.fixture
def tracker(service: InMemoryService) -> Tracker:
    return service.tracker


def found(diagnosis: Diagnosis, code: Code) -> Finding:
    return next(one for one in diagnosis.findings if one.code is code)


def codes(diagnosis: Diagnosis) -> list[Code]:
    return [one.code for one in diagnosis.findings]


def sent(tracker: Tracker, queue: str, items: int = 3, **options: Any) -> int:
    """A closed batch whose messages were sent."""
    with tracker.batch(**options) as batch:
        batch.send(queue, [str(n) for n in range(items)])
    return batch.id


def test_items_that_were_added_and_not_sent_are_told_from_those_that_were(service, tracker):
    # Given a producer that sent three messages and died before the next two
    queue = service.queue("work")
    batch = tracker.attach(tracker.open().batch_id)
    batch.send(queue, ["a", "b", "c"])
    batch.add(2)
    batch.close()

    diagnosis = tracker.why(batch.id)

    assert found(diagnosis, Code.NEVER_SENT).evidence == {"first": 3, "items": 2}
    assert [(one.range.start, one.range.stop, one.known) for one in diagnosis.missing] == [
        (0, 3, Known.WAITING),
        (3, 5, Known.NEVER_SENT),
    ]


def test_messages_that_nobody_receives_wait(service, tracker):
    queue = service.queue("work")
    batch = sent(tracker, queue)

    early = found(tracker.why(batch), Code.WAITING)
    service.advance(timedelta(hours=1))
    late = tracker.why(batch)

    # While the send is fresh a consumer may just not have come yet
    assert (early.severity, late.findings[0].severity) == (Severity.WARNING, Severity.ERROR)
    assert late.findings[0].code is Code.WAITING
    assert late.findings[0].evidence == {"queue": "work", "visible": 3, "in_flight": 0}
    (one,) = late.missing
    assert (one.range.start, one.range.stop, one.known) == (0, 3, Known.WAITING)


def test_a_consumer_that_raises_is_told_with_its_last_error(service, tracker):
    # Given a consumer that fails on one item of three
    queue = service.queue("work")

    @tracker.sqs_handler
    def handle(message: ReceivedMessage) -> None:
        if message.body == "1":
            raise ValueError("no such customer")

    service.consume(queue, handle)
    batch = sent(tracker, queue)
    # When it has failed once, Then nothing is noted: it may have been an accident
    assert Code.RETRYING not in codes(tracker.why(batch))
    # When it fails again, Then the error is told
    service.advance(timedelta(seconds=31))
    diagnosis = tracker.why(batch)
    retrying = diagnosis.findings[0]
    assert (retrying.code, retrying.severity) == (Code.RETRYING, Severity.WARNING)
    assert "ValueError: no such customer" in retrying.detail
    assert retrying.evidence["attempt"] == 2
    assert [(one.range.start, one.known) for one in diagnosis.missing] == [(1, Known.RETRYING)]


def test_a_consumer_that_never_acknowledges_makes_messages_vanish(service, tracker):
    queue = service.queue("work")
    service.consume(queue, lambda _event, _context: {"batchItemFailures": []})
    batch = sent(tracker, queue)

    service.advance(timedelta(hours=1))
    diagnosis = tracker.why(batch)

    assert codes(diagnosis) == [Code.VANISHED]
    assert diagnosis.findings[0].severity is Severity.ERROR
    assert "probably" in diagnosis.findings[0].detail


def test_dead_letters_that_nobody_reads_are_told(service, tracker):
    # Given a queue whose dead letters no function fails
    grave = service.queue("grave")
    arn = service.sqs.get_queue_attributes(QueueUrl=grave, AttributeNames=["QueueArn"])["Attributes"][
        "QueueArn"
    ]
    policy = f'{{"deadLetterTargetArn": "{arn}", "maxReceiveCount": 1}}'
    queue = service.queue("work", visibility_timeout=1, attributes={"RedrivePolicy": policy})
    batch = sent(tracker, queue)
    # When its messages die
    for _ in range(2):
        service.sqs.receive_message(QueueUrl=queue, MaxNumberOfMessages=10)
        service.advance(timedelta(seconds=2))
    diagnosis = tracker.why(batch)

    assert codes(diagnosis) == [Code.DEAD_LETTERS_WAITING]
    assert diagnosis.findings[0].evidence == {"queue": "work", "dead_letter_queue": "grave", "messages": 3}
    assert f"--source-arn {arn}`" in diagnosis.findings[0].advice
    # Then once the batch has stalled, they are a trouble of their own, until it moves again
    service.advance(timedelta(hours=1))
    (dead,) = tracker.attention().batches
    reason = "3 messages wait in grave, the dead-letter queue of work"
    assert (dead.trouble, dead.reason, dead.action) == (Trouble.DEAD_LETTERS, reason, "why")
    assert tracker.attention().counts == {"dead_letters": 1}
    tracker.ack(f"{tracker.missing(batch).ranges[0].group}:0")
    assert tracker.attention().batches == ()


def test_a_slow_batch_is_never_called_stuck(service, tracker):
    # Given a process that takes ten messages in four minutes, without an event source mapping
    queue = service.queue("work")
    batch = sent(tracker, queue, 120)
    consumer = tracker.consumer(queue, lambda _message: None)

    for _ in range(11):
        consumer.poll()
        service.advance(timedelta(minutes=4))
        diagnosis = tracker.why(batch)
        assert {one.severity for one in diagnosis.findings} == {Severity.INFO}, diagnosis.findings
        assert Code.SLOW in codes(diagnosis)
    # Then it says how fast it is, and nothing is told on the bus
    slow = found(tracker.why(batch), Code.SLOW)
    assert slow.evidence["done_min"] == 110
    assert slow.evidence["eta_seconds"] == 240
    assert [event.detail_type for event in service.events_of(batch)] == []


class TestStalled:
    def test_a_stall_is_told_once_with_the_first_finding(self, service, tracker):
        # Given a batch whose messages nobody receives
        batch = sent(tracker, service.queue("work"))
        # When it has been without activity for half an hour, and hours pass
        service.advance(timedelta(minutes=29))
        assert service.events_of(batch) == []
        service.advance(timedelta(hours=6))
        # Then the bus was told once, and why
        (event,) = service.events_of(batch)
        assert event.detail_type == "Batch Stalled"
        assert event.detail["finding"]["code"] == "waiting"
        assert event.id == f"{batch}.stalled.{tracker.status(batch).batch.stall_told}"

    def test_activity_ends_a_stall_and_another_one_is_told_again(self, service, tracker):
        queue = service.queue("work")
        batch = sent(tracker, queue, 25)
        service.advance(timedelta(hours=2))

        tracker.consumer(queue, lambda _message: None).poll()
        service.advance(timedelta(hours=2))

        first, second = service.events_of(batch)
        assert first.id != second.id
        assert (first.detail["done_min"], second.detail["done_min"]) == (0, 10)

    def test_its_time_is_an_option_of_the_batch(self, service, tracker):
        queue = service.queue("work")
        quick = sent(tracker, queue, stall_after=timedelta(minutes=2))
        never = sent(tracker, queue, stall_after=0)

        service.advance(timedelta(minutes=10))
        assert [event.detail_type for event in service.events_of(quick)] == ["Batch Stalled"]

        service.advance(timedelta(days=1))
        assert service.events_of(never) == []
