"""SQS's limits and shapes: what it refuses of a request, with which code, and how it shows a message."""

from __future__ import annotations

from typing import Any

import pytest
from botocore.exceptions import ClientError

from fanin.adapters.memory import FixedClock
from fanin.adapters.memory.sqs import Queue, QueueStore, requests
from tests.unit.adapters.memory.sqs.conftest import NOW, code

OWN = "AWS.SimpleQueueService."
TRIP = {"DataType": "String", "StringValue": "trip"}
BINARY = {"DataType": "Binary", "BinaryValue": b"\0" * 9}


def entries(*ids: str) -> list[dict[str, Any]]:
    return [{"Id": one, "MessageBody": "x"} for one in ids]


def test_a_refusal_reads_as_botocores_does() -> None:
    error = requests.refusal("SendMessage", "InvalidParameterValue", "why")

    assert error.operation_name == "SendMessage"
    assert error.response["ResponseMetadata"]["HTTPStatusCode"] == 400
    assert (
        str(error) == "An error occurred (InvalidParameterValue) when calling the SendMessage operation: why"
    )
    assert requests.no_queue("X").response["Error"]["Code"] == f"{OWN}NonExistentQueue"
    assert requests.not_in_flight("X").response["Error"]["Code"] == f"{OWN}MessageNotInflight"


@pytest.mark.parametrize("value", [1, 7, 10])
def test_a_number_within_its_bounds_is_taken(value: int) -> None:
    requests.check_number("ReceiveMessage", "MaxNumberOfMessages", value, 1, 10)


@pytest.mark.parametrize("value", [0, 11, -1])
def test_a_number_out_of_its_bounds_is_refused_with_them(value: int) -> None:
    with pytest.raises(ClientError, match="between 1 and 10") as caught:
        requests.check_number("ReceiveMessage", "MaxNumberOfMessages", value, 1, 10)

    assert code(caught) == "InvalidParameterValue"


@pytest.mark.parametrize(
    ("batch", "refused"),
    [
        (entries(), "EmptyBatchRequest"),
        (entries(*"abcdefghijk"), "TooManyEntriesInBatchRequest"),
        (entries("a", "b", "a"), "BatchEntryIdsNotDistinct"),
    ],
)
def test_a_batch_has_one_to_ten_entries_with_ids_of_their_own(
    batch: list[dict[str, Any]], refused: str
) -> None:
    requests.check_entries("SendMessageBatch", entries(*"abcdefghij"))

    with pytest.raises(ClientError) as caught:
        requests.check_entries("SendMessageBatch", batch)
    assert code(caught) == OWN + refused


@pytest.mark.parametrize(
    ("operation", "refused"),
    [("SendMessage", "InvalidParameterValue"), ("SendMessageBatch", f"{OWN}BatchRequestTooLong")],
)
def test_the_messages_of_a_request_are_together_no_larger_than_one_may_be(
    queue: Queue, operation: str, refused: str
) -> None:
    fits = [{"MessageBody": "x" * 131_072}, {"MessageBody": "y" * 131_072}]
    requests.check_size(operation, queue, fits)

    with pytest.raises(ClientError, match="262145 bytes") as caught:
        requests.check_size(operation, queue, [*fits, {"MessageBody": "z"}])
    assert code(caught) == refused


@pytest.mark.parametrize(
    ("entry", "size"),
    [
        ({"MessageBody": "☂"}, 3),
        ({"MessageBody": "x", "MessageAttributes": {"kind": TRIP}}, 1 + 4 + 6 + 4),
        ({"MessageBody": "x", "MessageAttributes": {"b": BINARY}}, 1 + 1 + 6 + 9),
    ],
)
def test_the_size_of_a_message_is_that_of_its_bytes_and_its_attributes(
    store: QueueStore, entry: dict[str, Any], size: int
) -> None:
    fits = store.create("fits", {"MaximumMessageSize": str(size)}, {})
    small = store.create("small", {"MaximumMessageSize": str(size - 1)}, {})

    requests.check_size("SendMessage", fits, [entry])
    with pytest.raises(ClientError, match=f"{size} bytes"):
        requests.check_size("SendMessage", small, [entry])


@pytest.mark.parametrize(
    ("more", "why"),
    [
        ({}, None),
        ({"MessageBody": ""}, "MessageBody"),
        ({"DelaySeconds": 900}, None),
        ({"DelaySeconds": 901}, "DelaySeconds"),
        ({"DelaySeconds": -1}, "DelaySeconds"),
        ({"MessageGroupId": "x"}, None),
        ({"MessageAttributes": {f"a{n}": TRIP for n in range(10)}}, None),
        ({"MessageAttributes": {f"a{n}": TRIP for n in range(11)}}, "exceeds 10"),
        ({"MessageAttributes": {"kind": {"DataType": "String", "StringValue": ""}}}, "'kind'"),
        ({"MessageAttributes": {"kind": {"DataType": "Binary", "StringValue": "x"}}}, "'kind'"),
        ({"MessageAttributes": {"kind": {"DataType": "Binary.png", "BinaryValue": b"x"}}}, None),
    ],
)
def test_a_standard_queue_says_why_it_does_not_take_a_message(
    queue: Queue, more: dict[str, Any], why: str | None
) -> None:
    fault = requests.fault(queue, {"MessageBody": "x", **more})

    if why is None:
        assert fault is None
    else:
        assert fault is not None
        assert why in fault[1]


@pytest.mark.parametrize(
    ("more", "why"),
    [
        ({"MessageGroupId": "x", "MessageDeduplicationId": "d"}, None),
        ({"MessageDeduplicationId": "d"}, "MessageGroupId"),
        ({"MessageGroupId": "x"}, "MessageDeduplicationId"),
        ({"MessageGroupId": "x", "MessageDeduplicationId": "d", "DelaySeconds": 5}, "DelaySeconds"),
    ],
)
def test_a_fifo_queue_wants_a_group_and_what_to_know_a_repeat_by(
    fifo: Queue, more: dict[str, Any], why: str | None
) -> None:
    fault = requests.fault(fifo, {"MessageBody": "x", **more})

    assert (fault is None) if why is None else (fault is not None and why in fault[1])


def test_content_may_tell_a_repeat(store: QueueStore) -> None:
    by_content = store.create("c.fifo", {"ContentBasedDeduplication": "true"}, {})
    one, same, other = ({"MessageBody": body, "MessageGroupId": "x"} for body in ("a", "a", "b"))

    assert requests.fault(by_content, one) is None
    assert requests.dedup_id(by_content, one) == requests.dedup_id(by_content, same)
    assert requests.dedup_id(by_content, one) != requests.dedup_id(by_content, other)
    assert requests.dedup_id(by_content, {**one, "MessageDeduplicationId": "d"}) == "d"


def test_a_sender_is_told_the_sequence_number_by_a_fifo_queue_only(queue: Queue, fifo: Queue) -> None:
    plain = queue.send("☂", {})
    ordered = fifo.send("☂", {}, group_id="x", dedup_id="d")
    digest = "bc94e356b07acee6a390569c9d2a6565"

    assert requests.sent(plain, queue) == {"MessageId": plain.message_id, "MD5OfMessageBody": digest}
    assert requests.sent(ordered, fifo)["SequenceNumber"] == str(ordered.sequence)


def test_a_receiver_gets_of_a_message_only_what_it_asked_for(queue: Queue) -> None:
    queue.send("hello", {"trip.id": TRIP, "trip.kind": TRIP, "other": TRIP})
    (held,) = queue.receive(1, None)

    plain = requests.delivered(held, [], [])
    assert plain == {
        "MessageId": held.message_id,
        "ReceiptHandle": held.handle,
        "MD5OfBody": "5d41402abc4b2a76b9719d911017c592",
        "Body": "hello",
    }
    for names, found in {
        ("other", "none"): {"other"},
        ("trip.*",): {"trip.id", "trip.kind"},
        ("All",): {"trip.id", "trip.kind", "other"},
        (".*",): {"trip.id", "trip.kind", "other"},
        ("trip",): set(),
    }.items():
        assert requests.delivered(held, names, []).get("MessageAttributes", {}).keys() == found
    assert requests.delivered(held, [], ["SentTimestamp"])["Attributes"] == {"SentTimestamp": str(NOW)}


def test_the_system_attributes_are_text_and_those_that_the_message_has(
    queue: Queue, fifo: Queue, clock: FixedClock
) -> None:
    queue.send("a", {})
    clock.advance(1_000)
    (held,) = queue.receive(1, None)
    assert requests.delivered(held, [], ["All"])["Attributes"] == {
        "SenderId": "memory",
        "SentTimestamp": str(NOW),
        "ApproximateReceiveCount": "1",
        "ApproximateFirstReceiveTimestamp": str(NOW + 1_000),
    }

    fifo.dead_letters, fifo.max_receives = queue, 1
    fifo.send("b", {}, group_id="x", dedup_id="d")
    fifo.receive(1, 0)
    assert fifo.receive(1, 0) == []
    (dead,) = queue.receive(1, None)
    told = requests.system_attributes(dead)
    assert (told["MessageGroupId"], told["MessageDeduplicationId"]) == ("x", "d")
    assert told["DeadLetterQueueSourceArn"] == fifo.arn
