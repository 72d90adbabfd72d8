"""Queues: each has an end for lost messages or an alarm, and refuses plain HTTP."""

import json

import aws_cdk as cdk
import pytest
from aws_cdk import aws_lambda as lambda_
from aws_cdk.assertions import Match, Template

from fanin import names
from fanin.app.redrives.records import WORK_MS
from fanin_cdk import FaninStack, TrackedQueue
from fanin_cdk.redrives import TIMEOUT
from tests.infra.conftest import UNBUNDLED


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


def test_every_queue_refuses_plain_http_but_on_an_emulator(fanin, local):
    assert refusing_plain_http(fanin) == set(fanin.of_type("AWS::SQS::Queue"))
    assert refusing_plain_http(local) == set()


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


def consumer(stack: cdk.Stack, name: str) -> lambda_.Function:
    code = lambda_.Code.from_inline("def handler(event, context): pass")
    return lambda_.Function(
        stack, name, runtime=lambda_.Runtime.PYTHON_3_13, handler="index.handler", code=code
    )


class Shop:
    """A tracker, and stacks beside it with queues: one alone, and two for buffers, with functions."""

    def __init__(self) -> None:
        app = cdk.App(context=UNBUNDLED)
        self.fanin = FaninStack(app, "fanin")
        self.other, self.paced = cdk.Stack(app, "shop"), cdk.Stack(app, "paced")
        TrackedQueue(
            self.other,
            "Orders",
            dead_letters_function=self.fanin.tracker.dead_letters.function,
            max_receive_count=3,
            visibility_timeout=cdk.Duration.seconds(90),
        )
        self.consumers = {most: consumer(self.paced, f"Consumer{most}") for most in (None, 0, 20)}
        self.queues = {
            most: TrackedQueue(self.paced, f"Renders{most}", tracker=self.fanin.tracker, channel=True)
            for most in self.consumers
        }
        for most, queue in self.queues.items():
            queue.consume(self.consumers[most], **({} if most == 0 else {"max_concurrency": most}))
        self.template, self.of_paced = (Template.from_stack(stack) for stack in (self.other, self.paced))


@pytest.fixture(scope="module")
def shop() -> Shop:
    return Shop()


def test_a_tracked_queue_sends_its_dead_messages_to_the_tracker(shop):
    template = shop.template
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


def test_the_function_that_empties_dead_letters_waits_for_its_permission(fanin):
    # Given the function, which Lambda refuses as the target of a queue from which it may not receive
    tracker = fanin.stack.tracker
    name = fanin.stack.get_logical_id(tracker.dead_letters.function.node.default_child)
    role = fanin.stack.get_logical_id(tracker.dead_letters.function.role.node.default_child)
    # Then it is there only once its role has the policy that allows it for every queue with the tag
    (policy,) = (
        name
        for name, one in fanin.template.find_resources("AWS::IAM::Policy").items()
        if {"Ref": role} in one["Properties"]["Roles"] and "sqs:ReceiveMessage" in json.dumps(one)
    )
    assert policy in fanin.template.to_json()["Resources"][name]["DependsOn"]


def test_the_trackers_stack_does_not_depend_on_the_queue(shop):
    """Both stacks are synthesized: only then does the CDK know what depends on what."""
    assert [stack.stack_name for stack in shop.other.dependencies] == ["fanin"]
    assert shop.fanin.dependencies == []


@pytest.mark.parametrize(
    ("most", "scaling"), [(None, None), (0, {"MaximumConcurrency": 5}), (20, {"MaximumConcurrency": 20})]
)
def test_the_consumer_of_a_queue_may_be_held_to_a_concurrency(shop, most, scaling):
    # Given a queue that a buffer may use, in a stack beside the tracker's, and a function that consumes it
    made, queue = shop.consumers[most], shop.queues[most].queue
    # Then it reports partial failures, and its concurrency is limited
    shop.of_paced.has_resource_properties(
        "AWS::Lambda::EventSourceMapping",
        {
            "FunctionName": shop.paced.resolve(made.function_name),
            "EventSourceArn": shop.paced.resolve(queue.queue_arn),
            "FunctionResponseTypes": ["ReportBatchItemFailures"],
            "ScalingConfig": scaling or Match.absent(),
        },
    )
    # And the queue carries the tags that let the service use it, and look at it
    tags = [{"Key": "fanin:channel", "Value": "work"}, {"Key": "fanin:tracked", "Value": "work"}]
    shop.of_paced.has_resource_properties("AWS::SQS::Queue", {"Tags": tags})


@pytest.mark.parametrize(("keep", "kept"), [("message", {}), ("reason", {"fanin:keep": "reason"})])
def test_a_queue_may_say_that_the_messages_of_failed_items_are_not_kept(keep, kept):
    # Given a queue of a stack beside the tracker's, which is no channel
    stack = cdk.Stack(cdk.App(context=UNBUNDLED), "shop")
    queue = TrackedQueue(stack, "Renders", dead_letters_function=consumer(stack, "Dead"), keep=keep)
    # Then its dead-letter queue says so where the function reads it, and itself is for redrives only
    queues = Template.from_stack(stack).find_resources("AWS::SQS::Queue")
    tags, of_dead_letters = (
        {
            tag["Key"]: tag["Value"]
            for tag in queues[stack.get_logical_id(one.node.default_child)]["Properties"]["Tags"]
        }
        for one in (queue.queue, queue.dead_letters)
    )
    assert tags == {names.TRACKED_TAG: "work"}
    assert of_dead_letters == {names.TRACKED_TAG: names.DEAD_LETTERS} | kept


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


# The worker of redrives.


def test_lambda_lets_the_chain_of_jobs_go_on(fanin, tracker):
    # Given the worker, whose jobs put the next job on their own queue
    properties = fanin.properties(tracker.functions["redriver"].function)
    # Then Lambda does not stop it after sixteen
    assert properties["RecursiveLoop"] == "Allow"
    # And a job leaves the rest to the next one long before its time is over
    assert properties["Timeout"] == TIMEOUT
    assert WORK_MS * 2 < TIMEOUT * 1_000
    assert fanin.properties(tracker.redrives.jobs.queue)["VisibilityTimeout"] == 6 * TIMEOUT


# The bucket for large replies to scatters.


@pytest.mark.parametrize("given", ["altered", "frugal"])
def test_how_long_a_claim_is_kept_does_not_follow_a_setting_that_may_be_lowered(request, given):
    # Given a stack with the shortest, or the longest lifetime for new batches
    fanin = request.getfixturevalue(given)
    properties = fanin.properties(fanin.stack.tracker.scatter.claims)
    # Then the bucket deletes by what the key of a claim says, and everything else after the longest time
    rules = properties["LifecycleConfiguration"]["Rules"]
    kept = {rule.get("Prefix"): rule["ExpirationInDays"] for rule in rules}
    assert kept == {f"days-{days}/": days for days in names.CLAIM_DAYS} | {None: 366}
