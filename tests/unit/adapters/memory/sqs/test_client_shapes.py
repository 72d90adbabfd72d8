"""Parameters and answers are those that botocore's model of SQS names."""

import inspect
from collections.abc import Callable, Iterator
from typing import Any

import boto3
import pytest
from botocore.model import OperationModel
from botocore.validate import validate_parameters

from fanin.adapters.memory.sqs import InMemorySqs, Queue

Call = Callable[[InMemorySqs, str, str], Any]
ATTRIBUTES = {"kind": {"DataType": "String", "StringValue": "trip"}}
CALLS = [name for name, _ in inspect.getmembers(InMemorySqs, inspect.isfunction) if not name.startswith("_")]


@pytest.fixture(scope="module")
def models() -> dict[str, OperationModel]:
    """Method of boto3's client → what botocore knows of its operation."""
    client = boto3.client("sqs", region_name="eu-west-1")
    methods = client.meta.method_to_api_mapping
    return {name: client.meta.service_model.operation_model(methods[name]) for name in methods}


def answers(sqs: InMemorySqs, queue: Queue, fifo: Queue) -> Iterator[tuple[str, Any]]:
    """Every call that answers with something, by its method."""
    url, entry = queue.url, {"MessageBody": "x", "MessageAttributes": ATTRIBUTES}
    ordered = {"MessageBody": "x", "MessageGroupId": "g", "MessageDeduplicationId": "d"}
    yield "send_message", sqs.send_message(QueueUrl=url, **entry)
    yield "send_message", sqs.send_message(QueueUrl=fifo.url, **ordered)
    bad = {"Id": "b", "MessageBody": ""}
    yield "send_message_batch", sqs.send_message_batch(QueueUrl=url, Entries=[{"Id": "a", **entry}, bad])
    received = sqs.receive_message(
        QueueUrl=url,
        MaxNumberOfMessages=10,
        MessageAttributeNames=["All"],
        MessageSystemAttributeNames=["All"],
    )
    yield "receive_message", received
    handles = [
        {"Id": "a", "ReceiptHandle": received["Messages"][0]["ReceiptHandle"], "VisibilityTimeout": 1},
        {"Id": "b", "ReceiptHandle": "forged", "VisibilityTimeout": 1},
    ]
    hidden = sqs.change_message_visibility_batch(QueueUrl=url, Entries=handles)
    yield "change_message_visibility_batch", hidden
    yield "delete_message_batch", sqs.delete_message_batch(QueueUrl=url, Entries=handles)
    yield "create_queue", sqs.create_queue(QueueName="other")
    yield "get_queue_url", sqs.get_queue_url(QueueName="other")
    yield "get_queue_attributes", sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["All"])
    yield "list_queue_tags", sqs.list_queue_tags(QueueUrl=url)


@pytest.mark.parametrize("call", CALLS)
def test_a_call_takes_parameters_of_boto3s_and_all_that_it_must_have(models, call):
    taken = {
        name: parameter
        for name, parameter in inspect.signature(getattr(InMemorySqs, call)).parameters.items()
        if parameter.kind is inspect.Parameter.KEYWORD_ONLY
    }
    wanted = {name for name, parameter in taken.items() if parameter.default is inspect.Parameter.empty}

    assert taken.keys() <= models[call].input_shape.members.keys()
    assert wanted == set(models[call].input_shape.required_members)


def test_every_answer_has_the_shape_of_boto3s(models, memory, queue, fifo):
    for call, answer in answers(memory, queue, fifo):
        assert answer
        validate_parameters(answer, models[call].output_shape)  # raises of a name or a type it does not know


def test_a_received_message_has_the_system_attributes_that_sqs_names(models, memory, queue, fifo):
    known = set(models["receive_message"].input_shape.members["MessageSystemAttributeNames"].member.enum)
    fifo.dead_letters, fifo.max_receives = queue, 1
    fifo.send("x", {}, group_id="g", dedup_id="d")
    for _ in range(2):
        memory.receive_message(QueueUrl=fifo.url, VisibilityTimeout=0)

    (dead,) = memory.receive_message(QueueUrl=queue.url, MessageSystemAttributeNames=["All"])["Messages"]

    assert dead["Attributes"].keys() <= known
    assert {"DeadLetterQueueSourceArn", "MessageGroupId", "SequenceNumber"} <= dead["Attributes"].keys()


def test_a_queue_has_the_attributes_that_sqs_names(models, memory, fifo):
    known = set(models["get_queue_attributes"].input_shape.members["AttributeNames"].member.enum)

    told = memory.get_queue_attributes(QueueUrl=fifo.url, AttributeNames=["All"])["Attributes"]

    assert told.keys() <= known
