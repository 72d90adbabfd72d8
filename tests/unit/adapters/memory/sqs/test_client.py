"""Messages by the client in memory; the same tests run on moto, but for those of time.

A receive that finds nothing waits, by what the client was given for it.
"""

import json
from collections.abc import Callable
from typing import Any

import pytest
from botocore.exceptions import ClientError

from fanin.adapters.memory import Accesses, SeededRandom
from fanin.adapters.memory.sqs import InMemorySqs, QueueStore
from tests.unit.adapters.memory.sqs.conftest import NO_QUEUE, bodies, code, text


def test_a_message_arrives_with_what_it_carries(sqs, url):
    sent = sqs.send_message(
        QueueUrl=url,
        MessageBody="häuser",
        MessageAttributes={"item": text("7"), "raw": {"DataType": "Binary", "BinaryValue": b"\0"}},
    )
    (message,) = sqs.receive_message(
        QueueUrl=url, MessageAttributeNames=["All"], MessageSystemAttributeNames=["All"]
    )["Messages"]
    assert message["MessageId"] == sent["MessageId"]
    assert message["MD5OfBody"] == sent["MD5OfMessageBody"]
    assert message["Body"] == "häuser"
    assert message["MessageAttributes"]["item"]["StringValue"] == "7"
    assert message["MessageAttributes"]["raw"]["BinaryValue"] == b"\0"
    assert message["Attributes"]["ApproximateReceiveCount"] == "1"
    assert int(message["Attributes"]["SentTimestamp"]) > 1_700_000_000_000


def test_a_received_message_is_hidden_and_gone_once_deleted(sqs, url):
    sqs.send_message(QueueUrl=url, MessageBody="x")
    (message,) = sqs.receive_message(QueueUrl=url)["Messages"]
    assert "Messages" not in sqs.receive_message(QueueUrl=url)
    counts = sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["All"])["Attributes"]
    assert counts["ApproximateNumberOfMessagesNotVisible"] == "1"
    sqs.delete_message(QueueUrl=url, ReceiptHandle=message["ReceiptHandle"])
    counts = sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["All"])["Attributes"]
    assert counts["ApproximateNumberOfMessagesNotVisible"] == "0"


def test_a_batch_is_sent_received_and_deleted(sqs, url):
    entries = [{"Id": str(n), "MessageBody": f"m{n}"} for n in range(10)]
    answer = sqs.send_message_batch(QueueUrl=url, Entries=entries)
    assert sorted(sent["Id"] for sent in answer["Successful"]) == sorted(entry["Id"] for entry in entries)
    assert not answer.get("Failed")
    received = sqs.receive_message(QueueUrl=url, MaxNumberOfMessages=10)["Messages"]
    assert sorted(message["Body"] for message in received) == sorted(
        entry["MessageBody"] for entry in entries
    )
    gone = sqs.delete_message_batch(
        QueueUrl=url, Entries=[{"Id": m["MessageId"], "ReceiptHandle": m["ReceiptHandle"]} for m in received]
    )
    assert {entry["Id"] for entry in gone["Successful"]} == {m["MessageId"] for m in received}


def test_visibility_is_changed(sqs, url):
    sqs.send_message(QueueUrl=url, MessageBody="x")
    (message,) = sqs.receive_message(QueueUrl=url)["Messages"]
    handle = message["ReceiptHandle"]
    sqs.change_message_visibility(QueueUrl=url, ReceiptHandle=handle, VisibilityTimeout=0)
    (message,) = sqs.receive_message(QueueUrl=url, MessageSystemAttributeNames=["All"])["Messages"]
    assert message["Attributes"]["ApproximateReceiveCount"] == "2"
    entries = [{"Id": "a", "ReceiptHandle": message["ReceiptHandle"], "VisibilityTimeout": 0}]
    answer = sqs.change_message_visibility_batch(QueueUrl=url, Entries=entries)
    assert [entry["Id"] for entry in answer["Successful"]] == ["a"]
    assert bodies(sqs.receive_message(QueueUrl=url)) == ["x"]


def test_a_message_that_was_received_too_often_goes_to_the_dead_letters(sqs, url):
    # Given a queue that gives a message two tries
    grave = sqs.create_queue(QueueName="dead")["QueueUrl"]
    arn = sqs.get_queue_attributes(QueueUrl=grave, AttributeNames=["QueueArn"])["Attributes"]["QueueArn"]
    policy = json.dumps({"deadLetterTargetArn": arn, "maxReceiveCount": 2})
    sqs.set_queue_attributes(QueueUrl=url, Attributes={"RedrivePolicy": policy})
    sqs.send_message(QueueUrl=url, MessageBody="x")
    # When it is received a third time
    tries = [bodies(sqs.receive_message(QueueUrl=url, VisibilityTimeout=0)) for _ in range(3)]
    # Then it is in the other queue
    assert tries == [["x"], ["x"], []]
    assert bodies(sqs.receive_message(QueueUrl=grave)) == ["x"]


def test_a_fifo_queue_keeps_its_order_within_a_group(sqs):
    url = sqs.create_queue(QueueName="work.fifo", Attributes={"FifoQueue": "true"})["QueueUrl"]
    for n, group in enumerate("aab"):
        sqs.send_message(
            QueueUrl=url, MessageBody=f"{group}{n}", MessageGroupId=group, MessageDeduplicationId=str(n)
        )
    (first,) = sqs.receive_message(QueueUrl=url, MessageSystemAttributeNames=["All"])["Messages"]
    assert (first["Body"], first["Attributes"]["MessageGroupId"]) == ("a0", "a")
    assert bodies(sqs.receive_message(QueueUrl=url, MaxNumberOfMessages=10)) == ["b2"]
    sqs.delete_message(QueueUrl=url, ReceiptHandle=first["ReceiptHandle"])
    assert bodies(sqs.receive_message(QueueUrl=url, MaxNumberOfMessages=10)) == ["a1"]


def test_a_fifo_queue_takes_a_message_once(sqs):
    attributes = {"FifoQueue": "true", "ContentBasedDeduplication": "true"}
    url = sqs.create_queue(QueueName="work.fifo", Attributes=attributes)["QueueUrl"]
    for _ in range(2):
        sqs.send_message(QueueUrl=url, MessageBody="x", MessageGroupId="g")
    assert bodies(sqs.receive_message(QueueUrl=url, MaxNumberOfMessages=10)) == ["x"]


def test_a_message_that_is_not_in_flight_keeps_its_visibility(memory, clock):
    url = memory.create_queue(QueueName="work")["QueueUrl"]
    memory.send_message(QueueUrl=url, MessageBody="x")
    (message,) = memory.receive_message(QueueUrl=url)["Messages"]
    clock.advance(30_000)
    with pytest.raises(ClientError) as late:
        memory.change_message_visibility(
            QueueUrl=url, ReceiptHandle=message["ReceiptHandle"], VisibilityTimeout=60
        )
    assert code(late) == "AWS.SimpleQueueService.MessageNotInflight"


def test_tags_and_names(sqs, url):
    sqs.tag_queue(QueueUrl=url, Tags={"fanin:channel": "yes"})
    assert sqs.list_queue_tags(QueueUrl=url)["Tags"] == {"fanin:channel": "yes"}
    assert sqs.get_queue_url(QueueName="work")["QueueUrl"] == url
    assert sqs.create_queue(QueueName="work")["QueueUrl"] == url


def test_a_queue_that_is_purged_is_empty_and_one_that_is_deleted_is_gone(sqs, url):
    sqs.send_message(QueueUrl=url, MessageBody="x")
    sqs.purge_queue(QueueUrl=url)
    assert "Messages" not in sqs.receive_message(QueueUrl=url)
    sqs.delete_queue(QueueUrl=url)
    with pytest.raises(ClientError) as gone:
        sqs.receive_message(QueueUrl=url)
    assert code(gone) == NO_QUEUE


@pytest.mark.parametrize(
    "call", ["send_message", "receive_message", "get_queue_attributes", "list_queue_tags"]
)
def test_a_queue_that_is_not_there(sqs, call):
    more = {"MessageBody": "x"} if call == "send_message" else {}
    with pytest.raises(ClientError) as missing:
        getattr(sqs, call)(QueueUrl="https://sqs.us-east-1.amazonaws.com/123456789012/gone", **more)
    assert code(missing) == NO_QUEUE
    with pytest.raises(ClientError) as unknown:
        sqs.get_queue_url(QueueName="gone")
    assert code(unknown) == NO_QUEUE


def test_a_redrive_policy_must_name_a_queue(memory):
    policy = json.dumps({"deadLetterTargetArn": "arn:aws:sqs:memory:0:gone", "maxReceiveCount": 1})
    with pytest.raises(ClientError) as refused:
        memory.create_queue(QueueName="work", Attributes={"RedrivePolicy": policy})
    assert code(refused) == "InvalidParameterValue"
    with pytest.raises(ClientError):
        memory.get_queue_url(QueueName="work")


def test_an_onlooker_is_let_in_around_each_call(clock):
    seen: list[tuple[str, str]] = []
    sqs = InMemorySqs(QueueStore(clock, SeededRandom()), Accesses(lambda *call: seen.append(call)))
    sqs.create_queue(QueueName="work")
    assert seen == [("sqs.create_queue", "before"), ("sqs.create_queue", "after")]


def test_attributes_are_told_as_they_were_set(sqs):
    url = sqs.create_queue(QueueName="work.fifo", Attributes={"FifoQueue": "true", "DelaySeconds": "5"})[
        "QueueUrl"
    ]
    sqs.set_queue_attributes(QueueUrl=url, Attributes={"VisibilityTimeout": "77"})
    names = ["VisibilityTimeout", "DelaySeconds", "FifoQueue", "MessageRetentionPeriod"]
    told = sqs.get_queue_attributes(QueueUrl=url, AttributeNames=names)["Attributes"]
    assert told == {
        "VisibilityTimeout": "77",
        "DelaySeconds": "5",
        "FifoQueue": "true",
        "MessageRetentionPeriod": "345600",
    }


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("VisibilityTimeout", "abc"),
        ("VisibilityTimeout", "43201"),
        ("DelaySeconds", "-1"),
        ("MessageRetentionPeriod", "59"),
        ("ReceiveMessageWaitTimeSeconds", "21"),
        ("MaximumMessageSize", "1023"),
    ],
)
def test_an_attribute_out_of_bounds_is_refused_and_changes_nothing(memory, name, value):
    url = memory.create_queue(QueueName="work")["QueueUrl"]
    before = memory.get_queue_attributes(QueueUrl=url, AttributeNames=["All"])

    with pytest.raises(ClientError) as error:
        memory.set_queue_attributes(QueueUrl=url, Attributes={"DelaySeconds": "7", name: value})
    assert code(error) == "InvalidAttributeValue"
    assert memory.get_queue_attributes(QueueUrl=url, AttributeNames=["All"]) == before

    with pytest.raises(ClientError) as error:
        memory.create_queue(QueueName="other", Attributes={name: value})
    assert code(error) == "InvalidAttributeValue"


@pytest.mark.parametrize("name", ["", "a" * 81, "a b", "a.b", ".fifo"])
def test_a_queue_name_that_sqs_refuses_is_refused(memory, name):
    with pytest.raises(ClientError) as error:
        memory.create_queue(QueueName=name)
    assert code(error) == "InvalidParameterValue"


def receive(sqs: InMemorySqs, url: str) -> list[Any]:
    return sqs.receive_message(QueueUrl=url, WaitTimeSeconds=20).get("Messages", [])


@pytest.mark.parametrize(
    ("asked", "of_queue", "waits"), [(None, "0", []), (None, "7", [7]), (5, "7", [5]), (0, "7", [])]
)
def test_a_receive_waits_as_long_as_it_was_asked_to_or_the_queue_says(store, asked, of_queue, waits):
    waited: list[float] = []
    sqs = InMemorySqs(store, Accesses(), lambda seconds, _ready: waited.append(seconds))
    url = store.create("polled", {"ReceiveMessageWaitTimeSeconds": of_queue}, {}).url

    assert sqs.receive_message(QueueUrl=url, WaitTimeSeconds=asked) == {}
    assert waited == waits


def test_a_wait_ends_when_a_message_can_be_received(store, queue, clock):
    ready: list[bool] = []

    def wait(_seconds: float, has_messages: Callable[[], bool]) -> None:
        ready.append(has_messages())
        queue.send("late", {}, delay=3)
        ready.append(has_messages())
        clock.advance(3_000)
        ready.append(has_messages())

    sqs = InMemorySqs(store, Accesses(), wait)

    assert [message["Body"] for message in receive(sqs, queue.url)] == ["late"]
    assert ready == [False, False, True]


def test_a_wait_ends_when_the_queue_is_deleted(store, queue):
    def wait(_seconds: float, has_messages: Callable[[], bool]) -> None:
        store.delete(queue.url)
        assert has_messages()

    with pytest.raises(ClientError, match="does not exist"):
        receive(InMemorySqs(store, Accesses(), wait), queue.url)


def test_a_message_that_is_there_is_not_waited_for(store, queue):
    queue.send("a", {})
    sqs = InMemorySqs(store, Accesses(), lambda _seconds, _ready: pytest.fail("waited"))

    assert len(receive(sqs, queue.url)) == 1
