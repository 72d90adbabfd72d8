"""One bad message in a window of n: exactly the others are handled, whoever receives them."""

import json
from collections.abc import Iterator, Mapping
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from fanin import ReceivedMessage, Tracker
from fanin.adapters.memory import Memory
from fanin.app.services import Services
from fanin.client.consuming.consumer import Consumer
from fanin.client.frames.envelopes import Envelope, JsonCodec, ProtobufCodec
from fanin.client.frames.receiver import IdempotentReceiver
from fanin.client.frames.sqs import SqsReceiver
from fanin.domain.frames import OpenFrame
from fanin.names import ITEM_ATTRIBUTE

DEEP = "[" * 200_000
TEXTS: Mapping[str, Any] = {
    "nothing": "",
    "not JSON": "}{",
    "deep JSON": DEEP,
    "a deep object": '{"n":' * 100_000,
    "NaN": "NaN",
    "NaN inside": '{"n": NaN, "frame": NaN, "index": -Infinity}',
    "a huge number": "9" * 5_000,
    "a large number inside": '{"n": 1e999, "frame": 1e999, "index": 0, "type": "t", "payload": "p"}',
    "half a pair": "\ud800",
    "half a pair, escaped": '{"n": "\\ud800", "frame": 1, "index": 0, "type": "t", "payload": "\\ud800"}',
    "null": "null",
    "a list": "[1]",
    "wrong types": '{"frame": "1", "index": [], "type": {}, "payload": 5}',
    "control characters": "\x00\x0b",
    "base64 of nothing known": "AAAA",
    "not text": 5,
    "no body": None,
}
"""Bodies that no handler and no codec understands."""


class World:
    """A ledger in memory with one batch, one frame, and a batch that was removed."""

    def __init__(self, count: int) -> None:
        self.services = Services(Memory().ports())
        self.tracker = tracker = Tracker(self.services)
        self.items = list(tracker.add(tracker.open().batch_id, count))
        gone = tracker.open().batch_id
        self.gone_item = tracker.add(gone, 1)[0]
        tracker.cancel(gone)
        tracker.remove(gone)
        self.frame = self.services.frames.open(OpenFrame(count)).frame_id
        self.gone_frame = self.services.frames.open(OpenFrame(1)).frame_id
        tracker.cancel(self.gone_frame)
        tracker.remove(self.gone_frame)
        self.handled: list[str] = []

    def handle(self, message: ReceivedMessage) -> None:
        message.json()["n"]
        self.handled.append(message.message_id)

    def done(self, batch_id: int) -> set[int]:
        """Ordinals of the items of a batch that are marked."""
        size = self.tracker.status(batch_id).batch.items
        spans = self.tracker.iter_missing(batch_id)
        return set(range(size)) - {n for span in spans for n in range(span.start, span.stop)}


def item_poisons(world: World) -> dict[str, Any]:
    """Item ids that the ledger refuses, or that are none."""
    batch, group, _ = world.items[0].split(":")
    return {
        "no item id": "nonsense",
        "half a pair": "\ud800:\ud800:0",
        "a number": 5,
        "a huge index": f"{batch}:{group}:{'9' * 5_000}",
        "a huge batch": f"{'9' * 5_000}:{group}:0",
        "beyond the group": f"{batch}:{group}:{len(world.items)}",
        "a foreign batch": f"7:{group}:0",
        "a forged group": f"{batch}:{world.gone_item.split(':')[1]}:0",
        "a gone batch": world.gone_item,
        "no attribute": None,
    }


ITEMS = list(item_poisons(World(1)))
FRAMES = ["a gone frame", "an unknown frame", "a batch that is none", "beyond the frame"]


@st.composite
def windows(draw: st.DrawFn, poisons: list[tuple[str, str]]) -> tuple[int, int, tuple[str, str]]:
    """How many messages, where the bad one is among them, and what is bad about it."""
    count = draw(st.integers(1, 10))
    return count, draw(st.integers(0, count)), draw(st.sampled_from(poisons))


MESSAGES = windows([("body", name) for name in TEXTS] + [("item", name) for name in ITEMS])
ENVELOPES = windows([("body", name) for name in TEXTS] + [("envelope", name) for name in FRAMES])


def messages(world: World, at: int, poison: tuple[str, str]) -> Iterator[tuple[str, Any, Any]]:
    """Message id, body and item id of each message."""
    for number, item in enumerate(world.items):
        if number == at:
            yield bad(world, poison)
        yield f"m{number}", json.dumps({"n": number}), item
    if at == len(world.items):
        yield bad(world, poison)


def bad(world: World, poison: tuple[str, str]) -> tuple[str, Any, Any]:
    what, name = poison
    if what == "body":
        return "bad", TEXTS[name], None
    return "bad", json.dumps({"n": -1}), item_poisons(world)[name]


def lambda_record(message_id: str, body: Any, item: Any) -> dict[str, Any]:
    record: dict[str, Any] = {
        "messageId": message_id,
        "receiptHandle": message_id,
        "attributes": {"ApproximateReceiveCount": "1"},
        "messageAttributes": {ITEM_ATTRIBUTE: {"stringValue": item, "dataType": "String"}} if item else {},
        "eventSource": "aws:sqs",
        "eventSourceARN": "arn:aws:sqs:eu-west-1:1:work",
    }
    return record if body is None else {**record, "body": body}


class OneReceive:
    """A client of a queue that gives its messages once, and notes which are deleted."""

    def __init__(self, given: Iterator[tuple[str, Any, Any]]) -> None:
        self._messages = [self._message(*one) for one in given]
        self.deleted: set[str] = set()

    @staticmethod
    def _message(message_id: str, body: Any, item: Any) -> dict[str, Any]:
        message: dict[str, Any] = {"MessageId": message_id, "ReceiptHandle": message_id}
        if item:
            message["MessageAttributes"] = {ITEM_ATTRIBUTE: {"StringValue": item, "DataType": "String"}}
        return message if body is None else {**message, "Body": body}

    def receive_message(self, **_: Any) -> dict[str, Any]:
        return {"Messages": self._messages}

    def delete_message_batch(self, *, QueueUrl: str, Entries: list[dict[str, str]]) -> dict[str, Any]:  # noqa: N803
        self.deleted |= {entry["ReceiptHandle"] for entry in Entries}
        return {}


def others(world: World) -> set[str]:
    return {f"m{number}" for number in range(len(world.items))}


def check_messages(world: World, again: set[str]) -> None:
    assert [name for name in world.handled if name != "bad"] == sorted(
        others(world), key=lambda m: int(m[1:])
    )
    assert world.done(int(world.items[0].split(":")[0])) == set(range(len(world.items)))
    assert again <= {"bad"}


@given(MESSAGES)
@example((3, 1, ("body", "deep JSON")))
@example((3, 1, ("item", "a gone batch")))
def test_on_lambda_a_bad_message_concerns_itself_only(window):
    count, at, poison = window
    world = World(count)
    records = [lambda_record(*one) for one in messages(world, at, poison)]
    answer = world.tracker.sqs_handler(world.handle)({"Records": records})
    check_messages(world, {failure["itemIdentifier"] for failure in answer["batchItemFailures"]})


@given(MESSAGES)
@example((3, 1, ("body", "deep JSON")))
@example((3, 1, ("item", "a gone batch")))
def test_for_a_consumer_a_bad_message_concerns_itself_only(window):
    count, at, poison = window
    world = World(count)
    queue = OneReceive(messages(world, at, poison))
    consumer = Consumer(queue, "https://sqs/work", world.handle, world.tracker.acknowledger())
    assert consumer.poll() == count + 1
    check_messages(world, (others(world) | {"bad"}) - queue.deleted)


def envelope_poison(world: World, name: str) -> Envelope:
    frame, index = {
        "a gone frame": (world.gone_frame, 0),
        "an unknown frame": (7, 0),
        "a batch that is none": (int(world.items[0].split(":")[0]), 0),
        "beyond the frame": (world.frame, len(world.items)),
    }[name]
    return Envelope(frame, index, b"-1", "text/plain")


def envelope_records(
    world: World, codec: JsonCodec | ProtobufCodec, at: int, poison: tuple[str, str]
) -> list[dict[str, Any]]:
    """The messages of a window of envelopes, as Lambda hands them over."""
    envelopes = [Envelope(world.frame, n, b"%d" % n, "text/plain") for n in range(len(world.items))]
    records: list[dict[str, Any]] = [
        {"messageId": f"m{n}", "body": codec.encode_text(envelope)} for n, envelope in enumerate(envelopes)
    ]
    what, name = poison
    body = TEXTS[name] if what == "body" else codec.encode_text(envelope_poison(world, name))
    records.insert(at, {"messageId": "bad"} | ({} if body is None else {"body": body}))
    return records


@pytest.mark.parametrize("codec", [JsonCodec(), ProtobufCodec()], ids=lambda codec: type(codec).__name__)
@given(window=ENVELOPES)
@example(window=(3, 1, ("body", "deep JSON")))
@example(window=(3, 1, ("envelope", "a batch that is none")))
def test_for_a_receiver_of_frames_a_bad_message_concerns_itself_only(codec, window):
    count, at, poison = window
    world = World(count)
    acknowledge = world.tracker.acknowledger()
    handled: list[int] = []
    receiver = SqsReceiver(
        IdempotentReceiver(
            world.tracker.frames, lambda delivery: handled.append(int(delivery.payload)), acknowledge
        ),
        codec,
    )
    answer = receiver({"Records": envelope_records(world, codec, at, poison)})
    again = {failure["itemIdentifier"] for failure in answer["batchItemFailures"]}
    assert handled == list(range(count))
    assert world.done(world.frame) == set(range(count))
    assert again == (set() if poison == ("envelope", "a gone frame") else {"bad"})
