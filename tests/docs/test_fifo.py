"""docs/how-to/fifo.md runs, and its queues are what a tracker needs."""

from datetime import timedelta
from typing import Any

import aws_cdk as cdk
import pytest
from aws_cdk import aws_lambda as lambda_
from aws_cdk.assertions import Template

from fanin import ItemFailed, Message
from fanin.testing import InMemoryService
from fanin_cdk import FaninTracker
from fanin_cdk.permissions import RECEIVE
from tests.docs import pages
from tests.infra.conftest import UNBUNDLED

EXAMPLE, REFUSED, QUEUES = pages.code("how-to/fifo.md")


def test_its_examples_run_one_after_the_other():
    scope: dict[str, Any] = {}
    for example in (EXAMPLE, REFUSED):
        exec(compile(example, "docs/how-to/fifo.md", "exec"), scope)


def test_a_batch_without_groups_is_in_order_and_an_item_is_its_own_deduplication_id():
    # Given messages that name neither
    service = InMemoryService()
    url = service.queue(fifo=True)
    with service.tracker.batch() as batch:
        batch.send(url, ["a", "a"])
    # Then both are there, in the group of the batch
    messages = service.sqs.receive_message(
        QueueUrl=url,
        MaxNumberOfMessages=10,
        MessageSystemAttributeNames=["All"],
        MessageAttributeNames=["All"],
    )["Messages"]
    assert [message["Attributes"]["MessageGroupId"] for message in messages] == [str(batch.id)] * 2
    items = [message["MessageAttributes"]["fanin-item"]["StringValue"] for message in messages]
    assert [message["Attributes"]["MessageDeduplicationId"] for message in messages] == items


def test_a_deduplication_id_that_occurs_twice_leaves_an_item_behind():
    service = InMemoryService()
    url = service.queue(fifo=True)
    service.consume(url, service.tracker.sqs_handler(lambda _: None))
    with service.tracker.batch() as batch:
        batch.send(url, [Message("a", dedup_id="order-17"), Message("b", dedup_id="order-17")])
    service.advance(timedelta(hours=1))
    progress = service.tracker.status(batch.id, exact=True)
    assert (progress.batch.state, progress.done_min) == ("closed", 1)


@pytest.mark.parametrize(("batch_size", "done"), [(10, ["1"]), (1, ["1", "3"])])
def test_a_message_that_dies_takes_along_what_was_received_with_it(batch_size, done):
    # Given a queue that gives messages up, and a handler that never gets the second one done
    service = InMemoryService()
    url = service.queue(fifo=True, max_receives=3, visibility_timeout=60)
    handled: list[str] = []

    def handle(message: Any) -> None:
        if message.body == "2":
            raise ValueError("never")
        handled.append(message.body)

    with service.tracker.batch() as batch:
        batch.send(url, ["1", "2", "3"])
    # When its messages are received together, or one by one
    service.consume(url, service.tracker.sqs_handler(handle), batch_size=batch_size)
    assert handled == ["1"]
    service.advance(timedelta(minutes=5))
    # Then what stood behind it in its batch has failed with it, or was handled after it
    assert handled == done
    *_, event = service.events_of(batch.id)
    assert (event.detail["state"], event.detail["failed"]) == ("complete", 3 - len(done))


def test_an_item_that_fails_at_once_lets_its_group_go_on():
    service = InMemoryService()
    url = service.queue(fifo=True, max_receives=3)
    handled: list[str] = []

    def handle(message: Any) -> None:
        if message.body == "1":
            raise ItemFailed("no such customer")
        handled.append(message.body)

    with service.tracker.batch() as batch:
        batch.send(url, ["1", "2"])
    service.consume(url, service.tracker.sqs_handler(handle))
    assert handled == ["2"]
    assert service.tracker.status(batch.id).batch.state == "complete"


def test_its_queues_have_what_a_tracked_queue_has():
    # Given a stack with the page's queue
    scope: dict[str, Any] = {}
    exec(compile(QUEUES, "docs/how-to/fifo.md", "exec"), scope)
    stack = cdk.Stack(cdk.App(context=UNBUNDLED), "shop")
    tracker = FaninTracker(stack, "Fanin")
    consumer = lambda_.Function(
        stack,
        "Consumer",
        runtime=lambda_.Runtime.PYTHON_3_14,
        architecture=lambda_.Architecture.ARM_64,
        handler="index.handler",
        code=lambda_.Code.from_inline("def handler(event, context): pass"),
        timeout=cdk.Duration.seconds(30),
    )
    queue = scope["ordered_queue"](stack, tracker, consumer)
    resources = Template.from_stack(stack).to_json()["Resources"]
    # Then it is a FIFO queue whose dead letters are tagged, and go to the tracker's function
    fifo = {name: one for name, one in resources.items() if one["Properties"].get("FifoQueue")}
    assert len(fifo) == 2
    name = stack.get_logical_id(queue.node.default_child)
    target = fifo[name]["Properties"]["RedrivePolicy"]["deadLetterTargetArn"]["Fn::GetAtt"][0]
    assert {name, target} == set(fifo)
    for one in fifo.values():
        assert {"Key": "fanin:tracked", "Value": "orders"} in one["Properties"]["Tags"]
    sources = [
        one["Properties"] for one in resources.values() if one["Type"] == "AWS::Lambda::EventSourceMapping"
    ]
    fed = {
        source["EventSourceArn"]["Fn::GetAtt"][0]: (
            source["FunctionName"]["Ref"],
            source["FunctionResponseTypes"],
        )
        for source in sources
        if source["EventSourceArn"]["Fn::GetAtt"][0] in fifo
    }
    dead_letters = stack.get_logical_id(tracker.dead_letters.function.node.default_child)
    reports = ["ReportBatchItemFailures"]
    assert fed == {
        name: (stack.get_logical_id(consumer.node.default_child), reports),
        target: (dead_letters, reports),
    }
    # And the function may do there what it may with a dead-letter queue of the tracker
    allowed = {
        action
        for one in resources.values()
        if one["Type"] == "AWS::IAM::Policy"
        for statement in one["Properties"]["PolicyDocument"]["Statement"]
        if statement["Resource"] == {"Fn::GetAtt": [target, "Arn"]}
        for action in statement["Action"]
    }
    assert allowed == set(RECEIVE)
