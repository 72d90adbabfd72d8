"""docs/how-to/environments.md: two environments share nothing, and one cannot mark items of the other.

docs/how-to/accounts.md opens one of them to another account.
"""

import json
from datetime import timedelta
from typing import Any

import aws_cdk as cdk
import pytest
from aws_cdk import aws_iam as iam
from aws_cdk.assertions import Template

from fanin.testing import InMemoryService
from tests.docs import pages
from tests.infra.conftest import UNBUNDLED

STACKS, CLIENT, WRONG = pages.code("how-to/environments.md")
PARTNER, PRODUCER, OPEN, FORWARD = pages.code("how-to/accounts.md")
THEIRS = "222222222222"
THEIR_BUS = f"arn:aws:events:eu-west-1:{THEIRS}:event-bus/shop"
NAMES = (
    "Name",
    "QueueName",
    "TableName",
    "FunctionName",
    "BucketName",
    "RoleName",
    "LogGroupName",
    "GroupName",
)


def named(stack: cdk.Stack) -> set[tuple[str, str]]:
    """The resources that a template names itself: type and name. Two stacks cannot have one twice."""
    return {
        (one["Type"], one["Properties"][key])
        for one in Template.from_stack(stack).to_json()["Resources"].values()
        for key in NAMES
        if one["Type"].startswith("AWS::")
        and isinstance(one.get("Properties", {}).get(key), str)
        and one["Type"] != "AWS::ApiGatewayV2::Api"  # a title, which may occur twice
    }


@pytest.fixture(scope="module")
def stacks() -> dict[str, cdk.Stack]:
    """Both environments, in one account and region; prod is open to another account."""
    scope: dict[str, Any] = {}
    for code in (STACKS, PARTNER, OPEN, FORWARD, *pages.code("how-to/access.md")):
        exec(code, scope)
    built: dict[str, cdk.Stack] = scope["build"](cdk.App(context=UNBUNDLED))
    prod = built["prod"]
    tracker = prod.node.find_child("Fanin")
    scope["partner"](prod, tracker, THEIRS)
    scope["open_to"](tracker.acks.queue, THEIRS)
    scope["forward"](prod, tracker, THEIR_BUS)
    people = [iam.Role(prod, name, assumed_by=iam.AccountRootPrincipal()) for name in "ABCDE"]
    scope["grant"](tracker, *people)
    return built


def test_another_account_may_produce_send_acks_and_get_events(stacks):
    resources = json.loads(json.dumps(Template.from_stack(stacks["prod"]).to_json()))["Resources"].values()
    trusted = [json.dumps(one["Properties"]) for one in resources if one["Type"] == "AWS::IAM::Role"]
    assert len([role for role in trusted if f":iam::{THEIRS}:root" in role]) == 1
    granted = [
        json.dumps(one["Properties"])
        for one in resources
        if one["Type"] == "AWS::IAM::Policy" and "Partner" in json.dumps(one["Properties"]["Roles"])
    ]
    assert len(granted) == 1
    assert "execute-api:Invoke" in granted[0]
    assert "dynamodb:" not in granted[0]
    queues = [json.dumps(one["Properties"]) for one in resources if one["Type"] == "AWS::SQS::QueuePolicy"]
    assert len([policy for policy in queues if THEIRS in policy and "sqs:SendMessage" in policy]) == 1
    rules = [one["Properties"] for one in resources if one["Type"] == "AWS::Events::Rule"]
    assert [rule["EventPattern"] for rule in rules if THEIR_BUS in json.dumps(rule)] == [
        {"source": ["fanin"]}
    ]


def test_its_stacks_share_no_name(stacks):
    # Given both environments
    dev, prod = named(stacks["dev"]), named(stacks["prod"])
    # Then each has the names that its prefix gives, and none is in both
    assert {("AWS::Events::EventBus", "shop-dev"), ("AWS::Scheduler::ScheduleGroup", "shop-dev")} <= dev
    assert dev & prod == set()
    # And neither template mentions the other
    for one, other in (("dev", "prod"), ("prod", "dev")):
        assert f"shop-{other}" not in json.dumps(Template.from_stack(stacks[one]).to_json())


def test_a_consumer_of_the_wrong_environment_marks_nothing():
    exec(compile(WRONG, "docs/how-to/environments.md", "exec"), {})


@pytest.mark.parametrize(("via", "old"), [("queue", False), ("api", True)])
def test_an_item_that_the_wrong_environment_took_stays_pending(via, *, old):
    # Given a message of prod, fresh or of the day before
    dev, prod = InMemoryService(seed=1), InMemoryService(seed=2)
    rows = prod.queue("rows", max_receives=3, visibility_timeout=60)
    with prod.tracker.batch() as batch:
        batch.send(rows, ["row"])
    for service in (dev, prod):
        service.advance(timedelta(hours=25 if old else 0))
    # When a consumer of dev handles it
    prod.consume(rows, dev.tracker.sqs_handler(lambda _: None, via=via))
    prod.advance(timedelta(hours=1))
    dev.advance(timedelta(hours=4))
    # Then prod knows that it vanished, and where dev's ack queue took it, it is among dev's dead letters
    assert prod.tracker.status(batch.id).batch.state == "closed"
    assert "vanished" in [finding.code for finding in prod.tracker.why(batch.id).findings]
    grave = dev.sqs.get_queue_url(QueueName="fanin-acks-dead-letters")["QueueUrl"]
    assert len(dev.sqs.receive_message(QueueUrl=grave).get("Messages", [])) == (1 if via == "queue" else 0)


def test_its_client_can_be_made(monkeypatch, tmp_path):
    config = tmp_path / "config"
    config.write_text("[profile shop-dev]\nregion = eu-west-1\n")
    monkeypatch.setenv("AWS_CONFIG_FILE", str(config))
    scope: dict[str, Any] = {}
    exec(compile(CLIENT, "docs/how-to/environments.md", "exec"), scope)
    scope["tracker"].acknowledger("queue")
