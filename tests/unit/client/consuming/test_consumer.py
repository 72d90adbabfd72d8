"""A consumer that polls: what it acknowledges and deletes, and what it leaves to the queue."""

from dataclasses import replace

import pytest
from botocore.exceptions import EndpointConnectionError

from fanin.client import marking
from fanin.client.consuming.consumer import Consumer
from fanin.domain.batch import State
from fanin.errors import AccessDenied, InvalidRequest, NotConfigured, Throttled
from tests.unit.client.conftest import raising, received, refusal


@pytest.fixture
def sent(tracker, queue):
    with tracker.batch() as batch:
        batch.send(queue, map(str, range(5)))
    return batch


def test_it_acknowledges_and_then_deletes(tracker, queue, sent, sqs, faulty):
    order = []
    mark = tracker.ledger.mark
    tracker.ledger.mark = lambda marks: order.append("mark") or mark(marks)
    faulty.instead("delete_message_batch", lambda real, a: order.append("delete") or real(**a))
    consumer = tracker.consumer(queue, lambda message: None, wait=0)
    received_in_all = consumer.run(until=lambda: sent.status().batch.state.terminal)
    assert received_in_all == 5
    assert order == ["mark", "delete"] * (len(order) // 2)
    assert received(sqs, queue) == []


def test_an_error_leaves_the_message_to_the_queue(tracker, queue, sent, sqs, caplog):
    def handle(message):
        if message.body == "3":
            raise ValueError("odd")

    tracker.consumer(queue, handle, wait=0, visibility_timeout=0).poll()
    assert "odd" in caplog.text
    (left,) = received(sqs, queue)
    assert left["Body"] == "3"
    assert f"message {left['MessageId']} of batch {sent.id}, item" in caplog.text
    assert sent.status(exact=True).done_min == 4


def test_a_message_not_deleted_is_a_duplicate_and_no_harm(tracker, queue, sent, faulty, caplog):
    # Given: a queue that loses every deletion
    def keep(real, arguments):
        return {"Failed": [{"Id": entry["Id"], "Code": "InternalError"} for entry in arguments["Entries"]]}

    faulty.instead("delete_message_batch", keep)
    consumer = tracker.consumer(queue, lambda message: None, wait=0, visibility_timeout=0)
    consumer.poll()
    consumer.poll()
    assert sent.status().batch.state is State.COMPLETE
    assert "comes again" in caplog.text


def test_fifo_deletes_nothing_of_a_group_behind_a_mark_that_is_left(tracker, fifo_queue, faulty, monkeypatch):
    # Given two messages of one group, and a ledger that leaves the first
    with tracker.batch() as batch:
        batch.send(fifo_queue, ["0", "1"])
    mark = tracker.ledger.mark

    def busy(marks):
        marked = mark(marks[1:]).at(range(1, len(marks)))
        return replace(marked, left={0: Throttled("slow down")})

    monkeypatch.setattr(tracker.ledger, "mark", busy)
    monkeypatch.setattr(tracker, "_ack_queue_url", None)
    monkeypatch.setattr(marking, "REPEATS", replace(marking.REPEATS, tries=1))
    tracker.consumer(fifo_queue, lambda message: None, wait=0).poll()
    # Then both stay in the queue, although the second is marked
    assert "delete_message_batch" not in [name for name, _ in faulty.requests]
    assert [span.start for span in tracker.iter_missing(batch.id)] == [0]


def test_it_waits_longer_and_longer_up_to_20_s_and_begins_anew_after_an_answer(
    tracker, queue, faulty, longest_waits
):
    # Given a queue that does not answer seven times, then once, and then again not
    answers = iter([False] * 7 + [True, False])

    def answer(real, arguments):
        if next(answers):
            return {}
        raise EndpointConnectionError(endpoint_url=queue)

    faulty.instead("receive_message", answer)
    consumer = tracker.consumer(queue, lambda message: None, wait=0)
    consumer.run(until=lambda: len(longest_waits) == 8)
    assert longest_waits == [0.5, 1, 2, 4, 8, 16, 20, 0.5]


def test_a_consumer_that_skips_nothing_has_skipped_none(tracker, queue, sent):
    consumer = Consumer(tracker.sqs, queue, lambda message: None, tracker.acknowledger(), wait=0)
    sent.cancel()
    assert consumer.poll() == 5
    assert consumer.skipped == 0


def test_an_empty_queue_is_polled_without_calling_anything(tracker, queue, faulty):
    consumer = tracker.consumer(queue, lambda message: pytest.fail("handled"), wait=0)
    assert consumer.poll() == 0
    assert [name for name, _ in faulty.requests] == ["receive_message"]


@pytest.mark.parametrize(
    ("options", "asked"),
    [
        ({}, {"WaitTimeSeconds": 20}),
        ({"wait": 3, "visibility_timeout": 90}, {"WaitTimeSeconds": 3, "VisibilityTimeout": 90}),
    ],
)
def test_it_asks_the_queue_for_what_it_was_told(tracker, queue, faulty, options, asked):
    faulty.instead("receive_message", lambda real, arguments: {})
    tracker.consumer(queue, lambda message: None, **options).poll()
    [(_, arguments)] = faulty.requests
    assert {name: arguments.get(name) for name in ("WaitTimeSeconds", "VisibilityTimeout")} == {
        "VisibilityTimeout": None,
        **asked,
    }
    assert arguments["MaxNumberOfMessages"] == 10


@pytest.mark.parametrize(
    ("code", "error"), [("AccessDenied", AccessDenied), ("QueueDoesNotExist", NotConfigured)]
)
def test_it_gives_up_where_waiting_does_not_help(tracker, queue, faulty, code, error):
    faulty.instead("receive_message", raising(refusal(code)))
    with pytest.raises(error, match=queue):
        tracker.consumer(queue, lambda message: None, wait=0).run()


def test_it_stops_before_a_poll_when_told_to(tracker, queue, faulty):
    assert tracker.consumer(queue, lambda message: None).run(until=lambda: True) == 0
    assert faulty.requests == []


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"wait": 21}, "wait must be a whole number from 0 to 20"),
        ({"wait": -1}, "wait must be a whole number from 0 to 20"),
        ({"visibility_timeout": 43_201}, "visibility_timeout must be a whole number from 0 to 43200"),
        ({"queue_url": ""}, "queue_url must be text"),
        ({"handle": None}, "a handler must be a function of a ReceivedMessage, not NoneType"),
    ],
)
def test_arguments_that_cannot_work_are_refused_at_once(tracker, queue, options, expected):
    with pytest.raises(InvalidRequest, match=expected):
        tracker.consumer(**{"queue_url": queue, "handle": print, **options})
