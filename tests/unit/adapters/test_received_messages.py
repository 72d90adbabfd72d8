"""Messages that a function received: they come again later, or go to another queue.

What the tags of a dead-letter queue say.
"""

import json
from typing import Any, cast

import pytest
from botocore.exceptions import ClientError

from fanin.adapters.memory import FixedClock, Memory
from fanin.adapters.memory.accesses import Accesses
from fanin.adapters.memory.sqs import InMemorySqs, QueueStore
from fanin.adapters.received_messages import FRESH_MS, DeadLetterQueues, ReceivedMessages
from fanin.domain.failures import Keep
from fanin.entry.in_memory.event_source import record
from fanin.errors import ServiceUnavailable, Throttled


class World:
    """A queue, and what a function received from it."""

    def __init__(self) -> None:
        self.clock = FixedClock()
        self.store = QueueStore(self.clock, Memory().ports().random)
        self.queue = self.store.create("work", {"VisibilityTimeout": "360"}, {})
        self.sqs = InMemorySqs(self.store, Accesses())
        self.received = ReceivedMessages(lambda: cast("Any", self.sqs))

    def send(self, body: str, attributes: dict[str, Any]) -> dict[str, Any]:
        """Send one message to the queue, and receive it."""
        self.queue.send(body, attributes)
        (held,) = self.queue.receive(1, None)
        return record(self.queue, held)

    def receive(self, count: int) -> list[dict[str, Any]]:
        for number in range(count):
            attributes = {"fanin-item": {"DataType": "String", "StringValue": f"1:g:{number}"}}
            self.queue.send(json.dumps(number), attributes)
        return [record(self.queue, held) for held in self.queue.receive(count, None)]


@pytest.fixture
def world() -> World:
    return World()


def test_messages_come_again_when_it_is_said(world):
    messages = world.receive(25)

    world.received.postpone([(message, 30 + n) for n, message in enumerate(messages)])

    world.clock.advance(30_000)
    assert [held.body for held in world.queue.receive(10, None)] == ["0"]
    world.clock.advance(24_000)
    assert len(world.queue.receive(25, None)) == 24


def test_nothing_to_postpone_asks_nothing():
    ReceivedMessages(lambda: pytest.fail("a client was made")).postpone([])


def test_what_is_put_back_comes_as_a_new_message_after_a_while(world):
    (message,) = world.receive(1)

    world.received.put_back({**message, "body": "left"}, 30)

    assert world.queue.receive(10, None) == []
    world.clock.advance(30_000)
    assert [held.body for held in world.queue.receive(10, None)] == ["left"]


@pytest.mark.parametrize(
    "attribute",
    [
        {"DataType": "String", "StringValue": "1:g:0"},
        {"DataType": "Number.int", "StringValue": "7"},
        {"DataType": "Binary", "BinaryValue": b"\x00\xff"},
        {"DataType": "Binary.png", "BinaryValue": b"\x89PNG"},
    ],
)
def test_a_message_is_copied_with_its_attributes(world, attribute):
    # Given a message with an attribute
    message = world.send("body", {"name": attribute})
    other = world.store.create("other", {}, {})
    # When it is sent to another queue
    world.received.send_to(other.url, message)
    # Then it arrives there as it was
    (held,) = other.receive(1, None)
    assert (held.body, held.attributes) == ("body", {"name": attribute})


def test_a_large_message_that_is_not_ascii_is_copied_as_it_is(world):
    """As JSON with ASCII escapes it would have three times as many bytes, which no queue takes."""
    body = "é" * 100_000  # 200 KB of UTF-8
    message = world.send(body, {})
    other = world.store.create("other", {}, {})

    world.received.send_to(other.url, message)

    (held,) = other.receive(1, None)
    assert held.body == body


def test_what_cannot_be_done_is_an_error_of_ours(world):
    (message,) = world.receive(1)

    with pytest.raises(Exception, match="no such table, queue"):
        world.received.send_to("http://nowhere", message)
    unreachable = ReceivedMessages(lambda: (_ for _ in ()).throw(ServiceUnavailable("no answer")))
    with pytest.raises(ServiceUnavailable):
        unreachable.postpone([(message, 5)])


ARN = "arn:aws:sqs:eu-west-1:1:work-dlq"
WORK = "arn:aws:sqs:eu-west-1:1:work"


class Sqs:
    def __init__(self, *sources: str) -> None:
        self.sources = sources
        self.failing = False
        self.asked = 0

    def get_queue_url(self, **_: str) -> Any:
        return {"QueueUrl": "https://sqs/1/work-dlq"}

    def list_dead_letter_source_queues(self, *, QueueUrl: str) -> Any:  # noqa: N803
        assert QueueUrl.endswith("/work-dlq")
        self.asked += 1
        if self.failing:
            raise ClientError({"Error": {"Code": "AccessDenied"}}, "ListDeadLetterSourceQueues")
        return {"queueUrls": [f"https://sqs/1/{name}" for name in self.sources]}


def dead_letters(sqs: Any, clock: FixedClock | None = None) -> DeadLetterQueues:
    return DeadLetterQueues(clock or FixedClock(), lambda: sqs)


def test_the_source_is_asked_for_once():
    sqs = Sqs("work")
    found = dead_letters(sqs)

    assert [found.source_of(ARN), found.source_of(ARN)] == [WORK, WORK]
    assert sqs.asked == 1


@pytest.mark.parametrize("names", [(), ("work", "other")])
def test_of_several_sources_none_is_named(names):
    assert dead_letters(Sqs(*names)).source_of(ARN) is None


def test_what_could_not_be_listed_is_asked_again():
    sqs = Sqs("work")
    found = dead_letters(sqs)

    sqs.failing = True
    assert found.source_of(ARN) is None
    sqs.failing = False
    assert found.source_of(ARN) == WORK


DEAD_ARN = "arn:aws:sqs:eu-west-1:123456789012:dead"


class TaggedSqs:
    """A client whose queue has some tags, or that fails with an error."""

    def __init__(self, tags: dict[str, str] | None = None, *, error: str | None = None) -> None:
        self.tags, self.error, self.asked = tags, error, 0

    def get_queue_url(self, *, QueueName: str, QueueOwnerAWSAccountId: str) -> Any:  # noqa: N803
        return {"QueueUrl": f"https://sqs/{QueueOwnerAWSAccountId}/{QueueName}"}

    def list_queue_tags(self, *, QueueUrl: str) -> Any:  # noqa: N803
        assert QueueUrl == "https://sqs/123456789012/dead"
        self.asked += 1
        if self.error:
            raise ClientError({"Error": {"Code": self.error, "Message": ""}}, "ListQueueTags")
        return {} if self.tags is None else {"Tags": self.tags}


@pytest.mark.parametrize(
    ("found", "keep"),
    [
        (None, Keep.MESSAGE),
        ({"team": "a"}, Keep.MESSAGE),
        ({"fanin:keep": "message"}, Keep.MESSAGE),
        ({"fanin:keep": "reason"}, Keep.REASON),
    ],
)
def test_messages_are_kept_unless_the_queue_says_otherwise(found, keep):
    assert dead_letters(TaggedSqs(found)).keep(DEAD_ARN) is keep


def test_tags_are_remembered_for_a_minute():
    sqs, clock = TaggedSqs(), FixedClock()
    reader = dead_letters(sqs, clock)
    reader.keep(DEAD_ARN)
    clock.advance(FRESH_MS - 1)
    assert (reader.keep(DEAD_ARN), sqs.asked) == (Keep.MESSAGE, 1)

    sqs.tags = {"fanin:keep": "reason"}
    clock.advance(1)
    assert (reader.keep(DEAD_ARN), sqs.asked) == (Keep.REASON, 2)


def test_a_queue_whose_tags_nobody_may_read_has_none():
    assert dead_letters(TaggedSqs(error="AccessDenied")).keep(DEAD_ARN) is Keep.MESSAGE


def test_a_queue_that_does_not_answer_decides_nothing():
    sqs = TaggedSqs({"fanin:keep": "reason"}, error="RequestThrottled")
    reader = dead_letters(sqs)
    with pytest.raises(Throttled):
        reader.keep(DEAD_ARN)

    sqs.error = None
    assert reader.keep(DEAD_ARN) is Keep.REASON
