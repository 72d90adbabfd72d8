"""Messages are sent, received, hidden and deleted as by boto3's client."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from botocore.exceptions import ClientError

from fanin.adapters.memory import Accesses, FixedClock
from fanin.adapters.memory.sqs import InMemorySqs, Queue
from tests.unit.adapters.memory.sqs.conftest import code

NONE = "memory://sqs/000000000000/none"


@pytest.fixture
def url(queue: Queue) -> str:
    return queue.url


def send(sqs: InMemorySqs, url: str, *bodies: str) -> None:
    for body in bodies:
        sqs.send_message(QueueUrl=url, MessageBody=body)


def receive(sqs: InMemorySqs, url: str, most: int = 10, **options: Any) -> list[Any]:
    return sqs.receive_message(QueueUrl=url, MaxNumberOfMessages=most, **options).get("Messages", [])


def test_a_message_is_received_as_it_was_sent(sqs: InMemorySqs, url: str) -> None:
    attributes = {"kind": {"DataType": "String", "StringValue": "trip"}}

    sent = sqs.send_message(QueueUrl=url, MessageBody="☂", MessageAttributes=attributes)
    (message,) = receive(sqs, url, MessageAttributeNames=["All"], AttributeNames=["SentTimestamp"])

    assert (message["Body"], message["MessageAttributes"]) == ("☂", attributes)
    assert (message["MessageId"], message["MD5OfBody"]) == (sent["MessageId"], sent["MD5OfMessageBody"])
    assert message["Attributes"].keys() == {"SentTimestamp"}


def test_an_answer_without_messages_has_no_list_of_them(sqs: InMemorySqs, url: str) -> None:
    assert sqs.receive_message(QueueUrl=url) == {}


def test_one_message_is_received_unless_more_are_asked_for(sqs: InMemorySqs, url: str) -> None:
    send(sqs, url, *"abc")

    assert len(sqs.receive_message(QueueUrl=url)["Messages"]) == 1
    assert len(receive(sqs, url)) == 2


@pytest.mark.parametrize("names", ["AttributeNames", "MessageSystemAttributeNames"])
def test_system_attributes_are_asked_for_by_the_old_name_and_the_new(
    sqs: InMemorySqs, url: str, names: str
) -> None:
    send(sqs, url, "a")

    (message,) = receive(sqs, url, **{names: ["ApproximateReceiveCount"]})

    assert message["Attributes"] == {"ApproximateReceiveCount": "1"}


@pytest.mark.parametrize(
    "options",
    [
        {"MaxNumberOfMessages": 0},
        {"MaxNumberOfMessages": 11},
        {"WaitTimeSeconds": 21},
        {"WaitTimeSeconds": -1},
        {"VisibilityTimeout": 43_201},
        {"VisibilityTimeout": -1},
    ],
)
def test_a_receive_beyond_the_limits_is_refused(sqs: InMemorySqs, url: str, options: dict[str, int]) -> None:
    with pytest.raises(ClientError, match=next(iter(options))) as caught:
        sqs.receive_message(QueueUrl=url, **options)

    assert code(caught) == "InvalidParameterValue"


def test_a_message_that_is_refused_is_not_in_the_queue(sqs: InMemorySqs, url: str) -> None:
    for body in ("", "x" * 262_145):
        with pytest.raises(ClientError, match="SendMessage"):
            send(sqs, url, body)

    assert receive(sqs, url) == []


def test_each_entry_of_a_batch_is_taken_or_refused_by_itself(sqs: InMemorySqs, url: str) -> None:
    bodies = {"a": "x", "b": "", "c": "y"}

    answer = sqs.send_message_batch(
        QueueUrl=url, Entries=[{"Id": one, "MessageBody": body} for one, body in bodies.items()]
    )

    assert [entry["Id"] for entry in answer["Successful"]] == ["a", "c"]
    (failed,) = answer["Failed"]
    assert (failed["Id"], failed["SenderFault"], failed["Code"]) == ("b", True, "MissingParameter")
    assert sorted(message["Body"] for message in receive(sqs, url)) == ["x", "y"]


def test_a_batch_that_is_too_large_sends_nothing(sqs: InMemorySqs, url: str) -> None:
    large = [{"Id": str(n), "MessageBody": "x" * 100_000} for n in range(3)]

    with pytest.raises(ClientError) as caught:
        sqs.send_message_batch(QueueUrl=url, Entries=large)

    assert code(caught) == "AWS.SimpleQueueService.BatchRequestTooLong"
    assert receive(sqs, url) == []


def test_a_deleted_message_is_gone_and_may_be_deleted_again(sqs: InMemorySqs, url: str) -> None:
    send(sqs, url, "a")
    (message,) = receive(sqs, url, VisibilityTimeout=0)

    for _ in range(2):
        assert sqs.delete_message(QueueUrl=url, ReceiptHandle=message["ReceiptHandle"]) == {}

    assert receive(sqs, url) == []


def test_handles_that_the_queue_cannot_have_given_fail_alone(sqs: InMemorySqs, url: str) -> None:
    send(sqs, url, "a")
    (message,) = receive(sqs, url, VisibilityTimeout=0)

    with pytest.raises(ClientError) as caught:
        sqs.delete_message(QueueUrl=url, ReceiptHandle="forged")
    assert code(caught) == "ReceiptHandleIsInvalid"

    handles = {"bad": "forged", "good": message["ReceiptHandle"]}
    entries = [{"Id": one, "ReceiptHandle": handle} for one, handle in handles.items()]
    answer = sqs.delete_message_batch(QueueUrl=url, Entries=entries)
    assert answer["Successful"] == [{"Id": "good"}]
    assert [(entry["Id"], entry["Code"]) for entry in answer["Failed"]] == [("bad", "ReceiptHandleIsInvalid")]
    assert receive(sqs, url) == []


def test_a_visibility_timeout_is_changed_from_now_on(sqs: InMemorySqs, url: str, clock: FixedClock) -> None:
    send(sqs, url, "a")
    (message,) = receive(sqs, url)
    clock.advance(20_000)

    sqs.change_message_visibility(QueueUrl=url, ReceiptHandle=message["ReceiptHandle"], VisibilityTimeout=60)

    clock.advance(59_999)
    assert receive(sqs, url) == []
    clock.advance(1)
    assert len(receive(sqs, url)) == 1


def test_a_message_is_given_back_by_a_timeout_of_0(sqs: InMemorySqs, url: str) -> None:
    send(sqs, url, *"ab")
    entries = [
        {"Id": str(n), "ReceiptHandle": message["ReceiptHandle"], "VisibilityTimeout": 0}
        for n, message in enumerate(receive(sqs, url))
    ]

    answer = sqs.change_message_visibility_batch(QueueUrl=url, Entries=entries)

    assert answer == {"Successful": [{"Id": "0"}, {"Id": "1"}]}
    assert len(receive(sqs, url)) == 2


@pytest.mark.parametrize(
    ("seconds", "later", "refused"),
    [
        (5, 30_000, "AWS.SimpleQueueService.MessageNotInflight"),
        (43_201, 0, "InvalidParameterValue"),
        (-1, 0, "InvalidParameterValue"),
    ],
)
def test_a_delivery_that_is_over_or_a_time_that_is_too_long_cannot_be_changed(
    sqs: InMemorySqs, url: str, clock: FixedClock, *, seconds: int, later: int, refused: str
) -> None:
    send(sqs, url, "a")
    (message,) = receive(sqs, url)
    clock.advance(later)

    with pytest.raises(ClientError) as caught:
        sqs.change_message_visibility(
            QueueUrl=url, ReceiptHandle=message["ReceiptHandle"], VisibilityTimeout=seconds
        )

    assert code(caught) == refused


@pytest.mark.parametrize(
    "call",
    [
        lambda sqs: sqs.send_message(QueueUrl=NONE, MessageBody="x"),
        lambda sqs: sqs.send_message_batch(QueueUrl=NONE, Entries=[{"Id": "a", "MessageBody": "x"}]),
        lambda sqs: sqs.receive_message(QueueUrl=NONE),
        lambda sqs: sqs.delete_message(QueueUrl=NONE, ReceiptHandle="h"),
        lambda sqs: sqs.delete_message_batch(QueueUrl=NONE, Entries=[{"Id": "a", "ReceiptHandle": "h"}]),
        lambda sqs: sqs.change_message_visibility(QueueUrl=NONE, ReceiptHandle="h", VisibilityTimeout=1),
    ],
)
def test_of_a_queue_that_is_not_there_every_call_says_so(
    sqs: InMemorySqs, call: Callable[[InMemorySqs], object]
) -> None:
    with pytest.raises(ClientError) as caught:
        call(sqs)

    assert code(caught) == "AWS.SimpleQueueService.NonExistentQueue"


def test_every_call_is_counted_once(sqs: InMemorySqs, accesses: Accesses, url: str) -> None:
    send(sqs, url, "a")
    (message,) = receive(sqs, url)
    sqs.delete_message_batch(QueueUrl=url, Entries=[{"Id": "a", "ReceiptHandle": message["ReceiptHandle"]}])

    assert accesses.sends == {"sqs.send_message": 1, "sqs.receive_message": 1, "sqs.delete_message_batch": 1}


def test_a_fifo_queue_knows_a_message_that_is_sent_again(sqs: InMemorySqs, fifo: Queue) -> None:
    sent = [
        sqs.send_message(QueueUrl=fifo.url, MessageBody="x", MessageGroupId="g", MessageDeduplicationId="d")
        for _ in range(2)
    ]

    assert sent[0] == sent[1]
    assert len(receive(sqs, fifo.url)) == 1
