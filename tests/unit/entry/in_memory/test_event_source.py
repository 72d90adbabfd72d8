"""A queue that a handler consumes as Lambda would have it."""

from typing import Any

import pytest

from fanin.adapters.memory import FixedClock, SeededRandom
from fanin.adapters.memory.sqs import Queue, QueueStore
from fanin.client.messages import read_message
from fanin.entry.in_memory.event_source import Consumers, EventSource, each


@pytest.fixture
def clock() -> FixedClock:
    return FixedClock()


@pytest.fixture
def store(clock: FixedClock) -> QueueStore:
    return QueueStore(clock, SeededRandom())


@pytest.fixture
def queue(store: QueueStore) -> Queue:
    return store.create("work", {"VisibilityTimeout": "10"}, {})


class Handler:
    """Answers what it is told to, and keeps the bodies that it got, invocation by invocation."""

    def __init__(self, answer: Any = None, error: Exception | None = None) -> None:
        self.bodies: list[list[str]] = []
        self.answer = answer
        self.error = error

    def __call__(self, event: dict[str, Any], context: Any) -> Any:
        self.bodies.append([record["body"] for record in event["Records"]])
        assert context.get_remaining_time_in_millis() > 0
        if self.error:
            raise self.error
        return self.answer(event) if callable(self.answer) else self.answer


def exhaust(source: EventSource) -> None:
    while source.run():
        pass


def test_messages_come_in_tens_and_are_gone_once_handled(store, queue):
    for n in range(12):
        queue.send(f"{n}", {})
    handler = Handler()
    exhaust(EventSource(store, queue.url, handler))
    assert [len(bodies) for bodies in handler.bodies] == [10, 2]
    assert queue.counts() == (0, 0, 0)


def test_a_record_is_read_by_the_library(store, queue):
    attributes = {
        "fanin-item": {"DataType": "String", "StringValue": "1:a:0"},
        "raw": {"DataType": "Binary", "BinaryValue": b"\xff"},
    }
    queue.send("{}", attributes)
    records: list[Any] = []
    exhaust(EventSource(store, queue.url, lambda event, _context: records.extend(event["Records"])))
    message = read_message(records[0])
    assert (message.item, message.json(), message.receive_count) == ("1:a:0", {}, 1)
    assert records[0]["messageAttributes"]["raw"]["binaryValue"] == "/w=="
    assert records[0]["eventSourceARN"] == queue.arn


def test_only_what_is_reported_comes_again(store, queue, clock):
    for n in range(3):
        queue.send(f"{n}", {})
    handler = Handler(
        lambda event: {"batchItemFailures": [{"itemIdentifier": event["Records"][1]["messageId"]}]}
    )
    source = EventSource(store, queue.url, handler)
    exhaust(source)
    assert source.due() == clock.now() + 10_000
    handler.answer = None
    clock.advance(10_000)
    exhaust(source)
    assert handler.bodies == [["0", "1", "2"], ["1"]]
    assert source.due() is None


@pytest.mark.parametrize(
    "failures",
    [
        *([{"itemIdentifier": of}] for of in ("nobody's", None, [])),
        *([{}], [{"id": "a"}], ["a"], "a", 7),
        RuntimeError("boom"),
    ],
    ids=str,
)
def test_after_an_error_or_a_malformed_answer_all_messages_come_again(store, queue, failures):
    queue.send("a", {})
    queue.send("b", {})
    error = failures if isinstance(failures, Exception) else None
    exhaust(EventSource(store, queue.url, Handler({"batchItemFailures": failures}, error)))
    assert queue.counts() == (0, 2, 0)


def test_a_queue_that_hides_nothing_does_not_make_it_go_on_for_ever(store, queue, clock):
    queue.attributes["VisibilityTimeout"] = "0"
    queue.send("a", {})
    handler = Handler(error=RuntimeError("boom"))
    source = EventSource(store, queue.url, handler)
    exhaust(source)
    assert len(handler.bodies) == 1
    assert source.due() == clock.now() + 1_000


def test_a_message_that_was_received_again_meanwhile_is_left_to_its_receiver(store, queue, clock):
    # Given a handler so slow that its message is visible again, and received by somebody else
    queue.send("a", {})

    def slow(_event: Any, _context: Any) -> None:
        clock.advance(10_000)
        assert queue.receive(1, None)

    # When it is through, Then the message is still the other one's
    exhaust(EventSource(store, queue.url, slow))
    assert queue.counts() == (0, 1, 0)


def test_messages_that_are_dead_by_now_are_work_too(store, queue, clock):
    # Given a queue with one try a message, and two sources of which that of the dead letters comes first
    grave = store.create("grave", {}, {})
    queue.dead_letters, queue.max_receives = grave, 1
    buried = Handler()
    sources = (
        EventSource(store, grave.url, buried),
        EventSource(store, queue.url, Handler(error=ValueError())),
    )
    queue.send("a", {})
    # When both have nothing more to do, Then the dead letter was handled
    clock.advance(10_000)
    while any(source.run() for source in sources):
        clock.advance(10_000)
    assert buried.bodies == [["a"]]


def test_each_reports_those_that_failed():
    def handle(message: Any) -> None:
        if message["messageId"] == "m1":
            raise ValueError

    answer = each(handle)({"Records": [{"messageId": f"m{n}"} for n in range(3)]}, None)
    assert answer == {"batchItemFailures": [{"itemIdentifier": "m1"}]}


ARN = "arn:aws:sqs:memory:000000000000:work"


def test_a_queue_has_the_functions_that_consume_it():
    mappings = Consumers()

    def importer(_event: object, _context: object) -> None: ...

    mappings.add("memory://sqs/000000000000/work", importer)
    mappings.add("memory://sqs/000000000000/other", importer)

    (found,) = mappings.list_event_source_mappings(EventSourceArn=ARN)["EventSourceMappings"]
    assert found["FunctionArn"].endswith(":function:importer")
    assert found["State"] == "Enabled"
