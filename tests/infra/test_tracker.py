"""The tracker in the app of a user, and in its own stack."""

from __future__ import annotations

from typing import Any

import aws_cdk as cdk
import pytest
from aws_cdk import aws_iam as iam

from fanin import names
from fanin_cdk import FaninTracker, Settings
from tests.infra.conftest import UNBUNDLED, Synthesized

OUTPUTS = {names.OUTPUT_API_URL, *names.OUTPUTS.values()}


@pytest.fixture(scope="module")
def shop() -> tuple[FaninTracker, dict[str, list[dict[str, Any]]]]:
    """A tracker in the stack of a user, and what two roles may do that use it."""
    stack = cdk.Stack(cdk.App(context={**UNBUNDLED, "auth": "cognito"}), "shop")
    tracker = FaninTracker(stack, "Fanin", settings=Settings(prefix="shop"))
    roles = {}
    for name, grant in (("producer", tracker.grant_producer), ("consumer", tracker.grant_consumer)):
        roles[name] = iam.Role(stack, name, assumed_by=iam.ServicePrincipal("ecs-tasks.amazonaws.com"))
        grant(roles[name])
    made = Synthesized(stack)
    return tracker, {name: made.statements(role) for name, role in roles.items()}


def actions(shop, name):
    return {
        action
        for statement in shop[1][name]
        for action in ([statement["Action"]] if isinstance(statement["Action"], str) else statement["Action"])
    }


def test_a_producer_may_open_batches_and_set_deadlines(shop):
    allowed = actions(shop, "producer")
    assert {"execute-api:Invoke", "dynamodb:PutItem", "scheduler:CreateSchedule", "iam:PassRole"} <= allowed


def test_a_producer_on_the_tables_may_name_queues_as_targets_and_redrive_to_tracked_ones(shop):
    # Given the statements of a producer about queues that are known by a tag
    tagged = [
        (statement["Condition"]["StringLike"], set(statement["Action"]))
        for statement in shop[1]["producer"]
        if "StringLike" in statement.get("Condition", {})
    ]
    # Then it may do there what the library does when it opens a batch with targets, and when it redrives
    for tag in (names.CHANNEL_TAG, names.TRACKED_TAG):
        looks_and_sends = {"sqs:GetQueueUrl", "sqs:ListQueueTags", "sqs:SendMessage"}
        assert ({f"aws:ResourceTag/{tag}": "*"}, looks_and_sends) in tagged


def test_a_consumer_may_ack_and_fail_but_not_open(shop):
    assert actions(shop, "consumer") == {
        "execute-api:Invoke",
        "s3:PutObject",
        "sqs:SendMessage",
        *(f"dynamodb:{action}" for action in ("BatchGetItem", "Query", "UpdateItem")),
    }


def test_the_environment_is_what_the_library_reads(shop):
    tracker, _ = shop
    known = {value for name, value in vars(names).items() if name.startswith("ENV_")}
    # Some belong to functions, two to people and their programs;
    # and the API would take precedence over the tables.
    own = {names.ENV_RETRY_QUEUE_URL, names.ENV_UNROUTED_QUEUE_URL}
    webhooks = {names.ENV_WEBHOOK_HOSTS, names.ENV_WEBHOOK_SECRET_ARN, names.ENV_WEBHOOK_LOOPBACK}
    console = {names.ENV_CONSOLE_ORIGINS, names.ENV_CONSOLE_WRITE, names.ENV_JWT_SCOPE_PREFIX}
    key = {names.ENV_KMS_KEY_ARN}
    programs = {names.ENV_PROFILE, names.ENV_WORK_QUEUE_URL}
    others = {*own, *webhooks, *console, *key, *programs, names.ENV_API_URL, names.ENV_LOG_SAMPLE}
    assert set(tracker.environment) == known - others


def test_the_stack_tells_where_everything_is(fanin):
    assert set(fanin.template.to_json()["Outputs"]) == OUTPUTS
