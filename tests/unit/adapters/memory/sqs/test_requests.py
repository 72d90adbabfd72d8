"""What SQS refuses, and how it shows a message."""

import pytest
from botocore.exceptions import ClientError

from tests.unit.adapters.memory.sqs.conftest import code, text


@pytest.mark.parametrize(
    ("call", "request_", "expected"),
    [
        ("send_message", {"MessageBody": "x" * 262_145}, "InvalidParameterValue"),
        ("send_message", {"MessageBody": "a\x00b"}, "InvalidMessageContents"),
        ("send_message_batch", {"Entries": []}, "AWS.SimpleQueueService.EmptyBatchRequest"),
        (
            "send_message_batch",
            {"Entries": [{"Id": str(n), "MessageBody": "x"} for n in range(11)]},
            "AWS.SimpleQueueService.TooManyEntriesInBatchRequest",
        ),
        (
            "send_message_batch",
            {"Entries": [{"Id": "same", "MessageBody": "x"}] * 2},
            "AWS.SimpleQueueService.BatchEntryIdsNotDistinct",
        ),
        (
            "send_message_batch",
            {"Entries": [{"Id": str(n), "MessageBody": "x" * 140_000} for n in range(2)]},
            "AWS.SimpleQueueService.BatchRequestTooLong",
        ),
        ("receive_message", {"MaxNumberOfMessages": 11}, "InvalidParameterValue"),
        ("receive_message", {"WaitTimeSeconds": 21}, "InvalidParameterValue"),
        ("delete_message", {"ReceiptHandle": "nonsense"}, "ReceiptHandleIsInvalid"),
    ],
)
def test_what_sqs_refuses(memory, call, request_, expected):
    url = memory.create_queue(QueueName="work")["QueueUrl"]
    with pytest.raises(ClientError) as refused:
        getattr(memory, call)(QueueUrl=url, **request_)
    assert code(refused) == expected
    assert refused.value.response["ResponseMetadata"]["HTTPStatusCode"] == 400


def test_one_bad_entry_spoils_only_itself(memory):
    fifo = memory.create_queue(QueueName="work.fifo", Attributes={"FifoQueue": "true"})["QueueUrl"]
    good = {"Id": "a", "MessageBody": "x", "MessageGroupId": "g", "MessageDeduplicationId": "1"}
    entries = [good, {"Id": "b", "MessageBody": "y"}, {**good, "Id": "c", "DelaySeconds": 5}]
    answer = memory.send_message_batch(QueueUrl=fifo, Entries=entries)
    assert [entry["Id"] for entry in answer["Successful"]] == ["a"]
    assert [(entry["Id"], entry["SenderFault"], entry["Code"]) for entry in answer["Failed"]] == [
        ("b", True, "MissingParameter"),
        ("c", True, "InvalidParameterValue"),
    ]


def test_only_what_is_asked_for_comes_with_it(sqs, url):
    sqs.send_message(QueueUrl=url, MessageBody="x", MessageAttributes={"a": text("1"), "b": text("2")})
    (message,) = sqs.receive_message(
        QueueUrl=url, MessageAttributeNames=["b"], AttributeNames=["SentTimestamp"]
    )["Messages"]
    assert list(message["MessageAttributes"]) == ["b"]
    assert list(message["Attributes"]) == ["SentTimestamp"]


@pytest.mark.parametrize(
    ("entry", "refused"),
    [
        ({"MessageBody": ""}, "MissingParameter"),
        ({"MessageBody": "x", "DelaySeconds": 901}, "InvalidParameterValue"),
        ({"MessageBody": "x", "MessageAttributes": {"a": text("")}}, "InvalidParameterValue"),
        *(
            ({"MessageBody": "x", "MessageAttributes": {"a": {"DataType": "Number", "StringValue": n}}}, code)
            for n, code in (
                ("-1.5e3", None),
                ("nan", "InvalidParameterValue"),
                ("x", "InvalidParameterValue"),
            )
        ),
        (
            {"MessageBody": "x", "MessageAttributes": {f"{n}": text("v") for n in range(11)}},
            "InvalidParameterValue",
        ),
        ({"MessageBody": "x", "DelaySeconds": 900}, None),
        ({"MessageBody": "x", "MessageAttributes": {f"{n}": text("v") for n in range(10)}}, None),
    ],
)
def test_a_message_is_refused_by_a_standard_queue(memory, entry, refused):
    url = memory.create_queue(QueueName="work")["QueueUrl"]
    answer = memory.send_message_batch(QueueUrl=url, Entries=[{"Id": "a", **entry}])
    assert [failure["Code"] for failure in answer.get("Failed", [])] == ([refused] if refused else [])


INVALID = "is invalid. Reason: "
CHARACTERS = "can only include alphanumeric and punctuation characters. 1 to 128 in length."


@pytest.mark.parametrize(
    ("fifo", "more", "words"),
    [
        (True, {"MessageGroupId": "a b"}, f"Value a b for parameter MessageGroupId {INVALID}MessageGroupId "),
        (True, {"MessageGroupId": "g" * 129}, CHARACTERS),
        (True, {"MessageDeduplicationId": "é"}, f"MessageDeduplicationId {CHARACTERS}"),
        (True, {"MessageDeduplicationId": None}, "either have ContentBasedDeduplication enabled or"),
        (
            True,
            {"DelaySeconds": 5},
            f"{INVALID}The request include parameter that is not valid for this queue",
        ),
        (False, {"DelaySeconds": None}, f"Value 1 for parameter MessageDeduplicationId {INVALID}The request"),
        (False, {"MessageDeduplicationId": None, "MessageGroupId": ""}, CHARACTERS),
        (False, {"MessageDeduplicationId": None, "DelaySeconds": 901}, "must be >= 0 and <= 900."),
        (
            False,
            {"MessageDeduplicationId": None, "MessageAttributes": {f"{n}": text("v") for n in range(11)}},
            "Number of message attributes [11] exceeds the allowed maximum [10].",
        ),
    ],
)
def test_what_sqs_refuses_is_refused_in_its_words(memory, more, words, *, fifo):
    named = {"QueueName": "work.fifo", "Attributes": {"FifoQueue": "true"}} if fifo else {"QueueName": "work"}
    given = {"MessageBody": "x", "MessageGroupId": "g", "MessageDeduplicationId": "1", **more}
    with pytest.raises(ClientError) as refused:
        memory.send_message(
            QueueUrl=memory.create_queue(**named)["QueueUrl"],
            **{name: value for name, value in given.items() if value is not None},
        )
    assert words in refused.value.response["Error"]["Message"]


def test_the_size_of_a_message_is_that_of_all_it_carries(memory):
    attributes = {"MaximumMessageSize": "1024"}
    url = memory.create_queue(QueueName="work", Attributes=attributes)["QueueUrl"]
    carried = {"name": text("v" * 14)}  # with its type 24 bytes
    memory.send_message(QueueUrl=url, MessageBody="x" * 1000, MessageAttributes=carried)
    with pytest.raises(ClientError, match="1025 bytes"):
        memory.send_message(QueueUrl=url, MessageBody="x" * 1001, MessageAttributes=carried)


@pytest.mark.parametrize("wanted", [["fanin.*"], ["fanin.item", "fanin.type"]])
def test_attributes_are_asked_for_by_name_or_by_how_it_begins(sqs, url, wanted):
    carried = {name: text("v") for name in ("fanin.item", "fanin.type", "other")}
    sqs.send_message(QueueUrl=url, MessageBody="x", MessageAttributes=carried)
    (message,) = sqs.receive_message(QueueUrl=url, MessageAttributeNames=wanted)["Messages"]
    assert set(message["MessageAttributes"]) == {"fanin.item", "fanin.type"}
