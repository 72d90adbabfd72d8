"""A consumer on Lambda: what is acknowledged, what fails, and what comes again."""

from datetime import timedelta

import pytest

from fanin import ItemFailed, Tracker
from fanin.client.consuming import consumer
from fanin.domain.batch import State
from fanin.errors import InvalidRequest, NotConfigured
from fanin.testing import InMemoryService
from tests.unit.client.consuming.conftest import ARN, event, failed, record


class Instead:
    """A client of which some calls are made by others."""

    def __init__(self, client, **calls):
        self._client = client
        vars(self).update(calls)

    def __getattr__(self, name):
        return getattr(self._client, name)


def test_an_error_brings_back_its_message_only(tracker, batch):
    @tracker.sqs_handler
    def handle(message):
        if message.body in "37":
            raise ValueError(message.body)

    group = batch.add(10)
    assert failed(handle(event(group))) == ["m3", "m7"]
    assert [span.start for span in tracker.iter_missing(batch.id)] == [3, 7]


@pytest.mark.parametrize(
    ("via", "fails", "polls"), [("api", False, True), ("queue", True, False), ("api", True, True)]
)
def test_one_message_twice_the_first_delivery_decides_with_its_values_and_both_are_deleted(
    via, fails, polls, monkeypatch
):
    """A standard queue may deliver a message twice within one receive, and the handler may notice."""
    # Given a message whose second delivery adds nothing, or fails
    service, seen = InMemoryService(), set()
    queue = service.queue("rows")
    with service.tracker.batch(totals=["rows"]) as batch:
        batch.send(queue, ["a"])

    def handle(message):
        if message.body not in seen:
            seen.add(message.body)
            message.add(rows=5)
        elif fails:
            raise ItemFailed("was imported before")

    if polls:
        receive = service.sqs.receive_message

        def twice(**request):
            return {"Messages": [one for one in receive(**request)["Messages"] for _ in range(2)]}

        consumer = service.tracker.consumer(queue, handle, via=via, wait=0)
        monkeypatch.setattr(consumer._queue, "_sqs", Instead(service.sqs, receive_message=twice))
        consumer.poll()
    else:
        item = f"{next(iter(service.tracker.iter_missing(batch.id))).group}:0"
        one = record(0, item)
        handler = service.tracker.sqs_handler(via=via)(handle)
        assert failed(handler({"Records": [one, {**one, "receiptHandle": "other"}]})) == []
    service.advance(timedelta(minutes=2))

    row = batch.status().batch
    assert (row.state, row.totals, row.failed) == (State.COMPLETE, {"rows": 5}, 0)
    if polls:
        assert service.tracker.consumer(queue, handle, wait=0).poll() == 0


def test_on_fifo_nothing_of_a_group_is_deleted_behind_a_refused_mark(tracker, batch):
    # Given two groups, of which the first message of one brings a total that the batch does not have
    @tracker.sqs_handler
    def handle(message):
        handled.append(message.body)
        if message.body == "a1" and len(handled) == 1:
            message.add(rows=1)

    handled, group = [], batch.add(4)
    names = ["a1", "b1", "a2", "b2"]
    records = [
        record(name, item, group=name[0], arn=f"{ARN}.fifo") for name, item in zip(names, group, strict=True)
    ]
    batch.close()
    # When, then
    assert failed(handle({"Records": records})) == ["ma1", "ma2"]
    # And when they come again, the second is handled behind the first although its item is done, also when
    # the batch is complete by then
    tracker.ack(group[0])
    assert batch.status().batch.state is State.COMPLETE
    assert failed(handle({"Records": [records[0], records[2]]})) == []
    assert handled == [*names, "a1", "a2"]


def test_the_handler_of_a_message_whose_batch_was_cancelled_runs_about_once(monkeypatch):
    """Its child is refused, which tells the process that the batch has ended; else it would run each time."""
    # Given fifty messages of a batch that was cancelled, and a process that has not heard of it
    service, calls = InMemoryService(), []
    queue = service.queue("catalogs", visibility_timeout=60)
    with service.tracker.batch() as batch:
        batch.send(queue, map(str, range(50)))
    service.tracker.cancel(batch.id)
    other = Tracker(service.services, lambda: service.sqs, None, service.clock)

    @other.sqs_handler
    def handle(message):
        calls.append(message.body)
        with other.batch(parent_item=message.item) as child:
            child.add(1)

    service.consume(queue, handle)
    service.advance(timedelta(hours=1))

    assert len(calls) == 1
    assert service.tracker.consumer(queue, handle, wait=0).poll() == 0


def test_the_function_keeps_its_name_and_can_be_tested_alone(tracker):
    @tracker.sqs_handler
    def handle(message):
        """Does it."""
        return message

    assert (handle.__name__, handle.__doc__, handle.handle("x")) == ("handle", "Does it.", "x")


def test_without_powertools_it_says_what_to_install(tracker, monkeypatch):
    monkeypatch.setattr(consumer, "find_spec", lambda name: None)
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
