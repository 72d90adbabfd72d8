"""Queues: each has an end for lost messages or an alarm, and refuses plain HTTP."""

from __future__ import annotations

import json

import aws_cdk as cdk
import pytest
from aws_cdk import aws_lambda as lambda_
from aws_cdk.assertions import Match, Template

from fanin_cdk import FaninStack, TrackedQueue


def test_every_queue_is_encrypted_and_keeps_its_messages(fanin):
    queues = fanin.of_type("AWS::SQS::Queue")
    assert queues
    for queue in queues.values():
        assert queue["SqsManagedSseEnabled"] is True
        assert queue["MessageRetentionPeriod"] in {10 * 86_400, 14 * 86_400}


def refusing_plain_http(fanin) -> set[str]:
    return {
        queue["Ref"]
        for policy in fanin.of_type("AWS::SQS::QueuePolicy").values()
        for queue in policy["Queues"]
        for statement in policy["PolicyDocument"]["Statement"]
        if statement["Effect"] == "Deny"
        and statement["Condition"] == {"Bool": {"aws:SecureTransport": "false"}}
    }


def test_every_queue_refuses_plain_http_but_on_an_emulator(fanin, synthesize):
    assert refusing_plain_http(fanin) == set(fanin.of_type("AWS::SQS::Queue"))
    assert refusing_plain_http(synthesize(local=True)) == set()


def test_every_queue_has_dead_letters_or_is_watched(fanin):
    # Given the queues that give a message up, and those that an alarm watches
    queues = fanin.of_type("AWS::SQS::Queue")
    giving_up = {name for name, queue in queues.items() if "RedrivePolicy" in queue}
    watched = {
        dimension["Value"]["Fn::GetAtt"][0]
        for alarm in fanin.of_type("AWS::CloudWatch::Alarm").values()
        for dimension in alarm.get("Dimensions", [])
        if dimension["Name"] == "QueueName"
    }
    # Then every queue is one or the other
    assert giving_up | watched == set(queues)


def test_a_queue_hides_a_message_for_six_runs_of_its_function(fanin):
    functions, queues = fanin.of_type("AWS::Lambda::Function"), fanin.of_type("AWS::SQS::Queue")
    fed = 0
    for source in fanin.of_type("AWS::Lambda::EventSourceMapping").values():
        queue = queues.get(source["EventSourceArn"]["Fn::GetAtt"][0])
        if queue:
            timeout = functions[source["FunctionName"]["Ref"]]["Timeout"]
            assert queue["VisibilityTimeout"] >= 6 * timeout
            fed += 1
    assert fed > 4


def test_only_functions_whose_chains_end_may_feed_themselves(fanin, tracker):
    # Given the functions that may send to a queue that feeds them, which Lambda would stop after 16 rounds
    functions = {fanin.id_of(one.function): name for name, one in tracker.functions.items()}
    fed = {
        (functions[source["FunctionName"]["Ref"]], source["EventSourceArn"]["Fn::GetAtt"][0])
        for source in fanin.of_type("AWS::Lambda::EventSourceMapping").values()
    }
    looping = {
        name
        for name, queue in fed
        for statement in fanin.statements(tracker.functions[name].function.role)
        if "sqs:SendMessage" in statement["Action"]
        and statement["Resource"] == {"Fn::GetAtt": [queue, "Arn"]}
    }
    # Then those are allowed to whose every message leaves less to do. Readers of streams never park what
    # comes from their queue.
    allowed = {
        name
        for name, one in tracker.functions.items()
        if fanin.properties(one.function).get("RecursiveLoop") == "Allow"
    }
    assert allowed == {"acks", "redriver", "scatter"}
    assert looping - allowed == {"notifier", "settler", "directory"}


def test_dead_letters_are_kept_for_days_after_their_queue_gave_them_up(fanin):
    # Given queues whose dead letters go elsewhere, where a message's age goes on counting
    queues = fanin.of_type("AWS::SQS::Queue")
    pairs = [
        (queue, queues[queue["RedrivePolicy"]["deadLetterTargetArn"]["Fn::GetAtt"][0]])
        for queue in queues.values()
        if "RedrivePolicy" in queue
    ]
    # Then even a message that was given up at the last moment stays for days
    assert pairs
    for queue, dead in pairs:
        assert dead["MessageRetentionPeriod"] - queue["MessageRetentionPeriod"] >= 3 * 86_400


@pytest.fixture(scope="module")
def shop():
    """A tracker, and a queue in another stack of the app."""
    app = cdk.App(context={"aws:cdk:bundling-stacks": []})
    fanin = FaninStack(app, "fanin")
    other = cdk.Stack(app, "shop")
    TrackedQueue(
        other,
        "Orders",
        dead_letters_function=fanin.tracker.dead_letters.function,
        max_receive_count=3,
        visibility_timeout=cdk.Duration.seconds(90),
    )
    return fanin, other


def test_a_tracked_queue_sends_its_dead_messages_to_the_tracker(shop):
    _, other = shop
    template = Template.from_stack(other)
    template.resource_count_is("AWS::SQS::Queue", 2)
    template.has_resource_properties(
        "AWS::SQS::Queue",
        {
            "VisibilityTimeout": 90,
            "RedrivePolicy": {
                "deadLetterTargetArn": {"Fn::GetAtt": [Match.string_like_regexp("OrdersDeadLetters"), "Arn"]},
                "maxReceiveCount": 3,
            },
        },
    )
    template.has_resource_properties(
        "AWS::Lambda::EventSourceMapping",
        {
            "EventSourceArn": {"Fn::GetAtt": [Match.string_like_regexp("OrdersDeadLetters"), "Arn"]},
            "FunctionName": {"Fn::ImportValue": Match.string_like_regexp("DeadLettersFunction")},
            "FunctionResponseTypes": ["ReportBatchItemFailures"],
        },
    )


def test_the_source_waits_for_the_permission_to_read(shop):
    _, other = shop
    template = Template.from_stack(other)
    (policy,) = template.find_resources("AWS::IAM::Policy")
    (source,) = template.find_resources("AWS::Lambda::EventSourceMapping").values()
    assert policy in source["DependsOn"]


def test_the_trackers_stack_does_not_depend_on_the_queue(shop):
    # Given both stacks, synthesized: only then does the CDK know what depends on what
    fanin, other = shop
    for stack in shop:
        Template.from_stack(stack)
    assert [stack.stack_name for stack in other.dependencies] == ["fanin"]
    assert fanin.dependencies == []


def test_an_imported_function_must_bring_its_role():
    stack = cdk.Stack(cdk.App(), "shop")
    arn = "arn:aws:lambda:eu-west-1:123456789012:function:dead"
    function = lambda_.Function.from_function_arn(stack, "Dead", arn)
    with pytest.raises(ValueError, match="import the function with its role"):
        TrackedQueue(stack, "Orders", dead_letters_function=function)


@pytest.mark.parametrize(("most", "scaling"), [(None, None), (5, {"MaximumConcurrency": 5})])
def test_the_consumer_of_a_queue_may_be_held_to_a_concurrency(most, scaling):
    # Given a queue that a buffer may use, in a stack beside the tracker's
    app = cdk.App(context={"aws:cdk:bundling-stacks": []})
    stack = cdk.Stack(app, "shop")
    code = lambda_.Code.from_inline("def handler(event, context): pass")
    consumer = lambda_.Function(
        stack, "Consumer", runtime=lambda_.Runtime.PYTHON_3_13, handler="index.handler", code=code
    )
    queue = TrackedQueue(stack, "Renders", tracker=FaninStack(app, "fanin").tracker, channel=True)

    # When a function consumes it
    queue.consume(consumer, max_concurrency=most)

    # Then it reports partial failures, and its concurrency is limited
    template = Template.from_stack(stack)
    template.has_resource_properties(
        "AWS::Lambda::EventSourceMapping",
        {
            "FunctionName": stack.resolve(consumer.function_name),
            "EventSourceArn": stack.resolve(queue.queue.queue_arn),
            "FunctionResponseTypes": ["ReportBatchItemFailures"],
            "ScalingConfig": scaling or Match.absent(),
        },
    )
    # And the queue carries the tags that let the service use it, and look at it
    tags = [{"Key": "fanin:channel", "Value": "work"}, {"Key": "fanin:tracked", "Value": "work"}]
    template.has_resource_properties("AWS::SQS::Queue", {"Tags": tags})


@pytest.mark.parametrize(("keep", "tagged"), [("message", False), ("reason", True)])
def test_a_queue_may_say_that_the_messages_of_failed_items_are_not_kept(keep: str, *, tagged: bool):
    # Given a queue of a stack beside the tracker's
    stack = cdk.Stack(cdk.App(context={"aws:cdk:bundling-stacks": []}), "shop")
    code = lambda_.Code.from_inline("def handler(event, context): pass")
    dead = lambda_.Function(
        stack, "Dead", runtime=lambda_.Runtime.PYTHON_3_13, handler="index.handler", code=code
    )

    # When it says what is kept
    queue = TrackedQueue(stack, "Renders", dead_letters_function=dead, keep=keep)

    # Then its dead-letter queue, and no other, carries the tag that the function reads
    queues = Template.from_stack(stack).find_resources("AWS::SQS::Queue")
    kept = {
        name: tag["Value"]
        for name, one in queues.items()
        for tag in one["Properties"]["Tags"]
        if tag["Key"] == "fanin:keep"
    }
    dead_letters = stack.get_logical_id(queue.dead_letters.node.default_child)
    assert kept == ({dead_letters: "reason"} if tagged else {})


def test_the_dead_letters_of_buffers_free_their_slots(fanin):
    # Given the queue that the service names when it creates the queue of a buffer
    functions = {
        name: fanin.properties(fanin.stack.tracker.functions[name].function)["Environment"]["Variables"]
        for name in ("api", "dead_letters")
    }
    (queue,) = {
        json.dumps(variables["FANIN_BUFFER_DEAD_LETTERS_ARN"]["Fn::GetAtt"])
        for variables in functions.values()
    }
    # Then the function for dead letters reads it
    name = fanin.stack.get_logical_id(fanin.stack.tracker.dead_letters.function.node.default_child)
    sources = fanin.of_type("AWS::Lambda::EventSourceMapping").values()
    assert name in {
        source["FunctionName"]["Ref"]
        for source in sources
        if json.dumps(source["EventSourceArn"]["Fn::GetAtt"]) == queue
    }
