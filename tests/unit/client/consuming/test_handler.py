"""A consumer on Lambda: what is acknowledged, what fails, and what comes again."""

from __future__ import annotations

import pytest

from fanin.client.consuming import handler
from fanin.errors import InvalidRequest, NotConfigured, Throttled
from tests.unit.client.conftest import raising
from tests.unit.client.consuming.conftest import ARN, event, failed, record


def test_an_error_brings_back_its_message_only(tracker, batch):
    @tracker.sqs_handler
    def handle(message):
        if message.body in "37":
            raise ValueError(message.body)

    group = batch.add(10)
    assert failed(handle(event(group))) == ["m3", "m7"]
    assert [span.start for span in tracker.iter_missing(batch.id)] == [3, 7]


def test_what_could_not_be_acknowledged_comes_again_all_of_it(tracker, batch, monkeypatch):
    # Given: a ledger that is out of reach
    handle = tracker.sqs_handler(lambda message: None)
    group = batch.add(3)
    monkeypatch.setattr(tracker.ledger, "ack", raising(Throttled("slow down")))
    monkeypatch.setattr(tracker, "_ack_queue_url", None)
    # When
    response = handle(event([*group, None]))
    # Then: the message without an item is not among them
    assert failed(response) == ["m0", "m1", "m2"]


def test_fifo_stops_a_group_at_its_first_failure(tracker, batch):
    # Given: two groups, the second message of group a fails
    handled = []

    @tracker.sqs_handler
    def handle(message):
        handled.append(message.body)
        if message.body == "a2":
            raise ValueError

    group = batch.add(6)
    names = ["a1", "b1", "a2", "b2", "a3", "b3"]
    records = [
        record(name, item, group=name[0], arn=f"{ARN}.fifo") for name, item in zip(names, group, strict=True)
    ]
    # When
    response = handle({"Records": records})
    # Then
    assert failed(response) == ["ma2", "ma3"]
    assert handled == ["a1", "b1", "a2", "b2", "b3"]
    assert [span.start for span in tracker.iter_missing(batch.id)] == [2, 4]


@pytest.mark.parametrize("queue", [{}, {"group": "g", "arn": f"{ARN}.fifo"}], ids=["standard", "fifo"])
def test_a_round_that_fails_whole_is_an_answer_too(tracker, batch, queue):
    handle = tracker.sqs_handler(lambda message: 1 / 0)
    assert failed(handle(event(batch.add(2), **queue))) == ["m0", "m1"]


def test_the_function_keeps_its_name_and_can_be_tested_alone(tracker):
    @tracker.sqs_handler
    def handle(message):
        """Does it."""
        return message

    assert (handle.__name__, handle.__doc__, handle.handle("x")) == ("handle", "Does it.", "x")


def test_without_powertools_it_says_what_to_install(tracker, monkeypatch):
    monkeypatch.setattr(handler, "find_spec", lambda name: None)
    with pytest.raises(NotConfigured, match=r"fanin\[lambda\]"):
        tracker.sqs_handler(lambda message: None)


def test_an_event_without_messages_is_an_answer_too(tracker):
    assert tracker.sqs_handler(lambda message: None)({"Records": []}) == {"batchItemFailures": []}


@pytest.mark.parametrize(
    "other",
    [
        None,
        {"Records": None},
        {"detail-type": "Batch Completed", "detail": {}},
        {"Records": [{"eventSource": "aws:s3", "s3": {}}]},
        {"Records": ["m1"]},
    ],
)
def test_an_event_of_another_service_is_refused(tracker, other):
    with pytest.raises(InvalidRequest, match=r"SQS.*map a queue to this function"):
        tracker.sqs_handler(lambda message: pytest.fail("handled"))(other)


def test_a_handler_must_be_a_function(tracker):
    with pytest.raises(InvalidRequest, match="not str; pass the function itself"):
        tracker.sqs_handler("handle")
