"""The state of Step Functions that opens a batch and waits for it."""

import json
from typing import Any

import aws_cdk as cdk
import pytest
from aws_cdk import aws_stepfunctions as sfn
from aws_cdk.assertions import Template

from fanin import names
from fanin_cdk import FaninStack, FanOutAndWait, Settings
from tests.infra.conftest import UNBUNDLED


@pytest.fixture(scope="module")
def made() -> tuple[FaninStack, dict[str, Any], dict[str, Any]]:
    """A stack with a state machine of one such state: the stack, its template, and the state."""
    app = cdk.App(context=UNBUNDLED)
    stack = FaninStack(app, "fanin", settings=Settings(prefix="shop"))
    given = {"tracker": stack.tracker, "queue": stack.tracker.work.queue}
    given |= {"messages": "$.orders", "timeout": cdk.Duration.hours(6)}
    state = FanOutAndWait(stack, "Import", **given)
    sfn.StateMachine(stack, "Machine", definition_body=sfn.DefinitionBody.from_chainable(state))
    template = Template.from_stack(stack).to_json()
    (machine,) = [
        resource["Properties"]
        for resource in template["Resources"].values()
        if resource["Type"] == "AWS::StepFunctions::StateMachine"
    ]
    parts = machine["DefinitionString"]["Fn::Join"][1]
    text = "".join(part if isinstance(part, str) else "ref" for part in parts)
    return stack, template, json.loads(text)["States"]["Import"]


def test_the_state_waits_for_its_token_and_hands_it_to_the_batch(made):
    _, _, state = made
    assert state["Resource"].endswith("states:::lambda:invoke.waitForTaskToken")
    payload = state["Parameters"]["Payload"]
    assert payload["on_end"] == [{"type": "step_functions", "task_token.$": "$$.Task.Token"}]
    assert payload["messages.$"] == "$.orders"
    assert state["TimeoutSeconds"] == 6 * 3600
    assert "queue_url" in payload


def test_only_an_invocation_that_never_ran_is_tried_again(made):
    _, _, state = made
    (retry,) = state["Retry"]
    assert retry["ErrorEquals"] == ["Lambda.TooManyRequestsException"]
    assert retry["MaxAttempts"] == 10


def test_its_function_may_open_batches_and_send_to_the_one_queue(made):
    stack, template, _ = made
    roles = [name for name in template["Resources"] if name.startswith("ImportSenderRole")]
    statements = [
        statement
        for name, resource in template["Resources"].items()
        if resource["Type"] == "AWS::IAM::Policy"
        and any({"Ref": role} in resource["Properties"]["Roles"] for role in roles)
        for statement in resource["Properties"]["PolicyDocument"]["Statement"]
    ]
    work = {"Fn::GetAtt": [stack.get_logical_id(stack.tracker.work.queue.node.default_child), "Arn"]}
    assert {"Action": "sqs:SendMessage", "Effect": "Allow", "Resource": work} in statements
    assert not any("states:" in str(statement["Action"]) for statement in statements)


def test_its_function_knows_the_service(made):
    _, template, _ = made
    (function,) = [
        resource["Properties"]
        for name, resource in template["Resources"].items()
        if resource["Type"] == "AWS::Lambda::Function" and name.startswith("ImportSender")
    ]
    variables = function["Environment"]["Variables"]
    assert {names.ENV_BATCHES_TABLE, names.ENV_TARGETS_QUEUE_URL} <= set(variables)
    assert function["Timeout"] == 300


def test_a_producer_of_ones_own_gets_the_token_and_the_input(made):
    stack, _, _ = made
    own = FanOutAndWait(
        stack, "Own", producer=stack.tracker.functions["acks"].function, result_path="$.batch"
    )
    payload = own.to_state_json()["Parameters"]["Payload"]
    assert payload["input.$"] == "$"
    assert payload["on_end"] == [{"type": "step_functions", "task_token.$": "$$.Task.Token"}]
    assert own.producer is stack.tracker.functions["acks"].function


def test_without_a_producer_tracker_and_queue_are_needed():
    with pytest.raises(ValueError, match="producer, or else tracker and queue"):
        FanOutAndWait(cdk.Stack(), "Import")
