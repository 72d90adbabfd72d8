"""The stack, synthesized once for each of a few sets of settings; assets are not bundled.

A synthesis costs seconds, so settings that have nothing to do with each other are in one set.
"""

import os
from functools import cache
from typing import Any, Final, NamedTuple

import pytest

os.environ.setdefault("JSII_SILENCE_WARNING_END_OF_LIFE_NODE_VERSION", "18,20,22")

import aws_cdk as cdk
from aws_cdk import aws_iam as iam
from aws_cdk.assertions import Template

from fanin_cdk import FaninStack, PipelineStack, Settings

UNBUNDLED = {"aws:cdk:bundling-stacks": []}


class Synthesized:
    """A stack with its template, and lookups in it."""

    def __init__(self, stack: cdk.Stack) -> None:
        self.stack = stack
        self.template = Template.from_stack(stack)
        self.resources: dict[str, Any] = self.template.to_json()["Resources"]

    def of_type(self, kind: str) -> dict[str, dict[str, Any]]:
        """Properties of all resources of a type, by logical id."""
        return {
            name: resource.get("Properties", {})
            for name, resource in self.resources.items()
            if resource["Type"] == kind
        }

    def id_of(self, construct: Any) -> str:
        """Logical id of a construct's main resource."""
        return self.stack.get_logical_id(construct.node.default_child)

    def properties(self, construct: Any) -> dict[str, Any]:
        return self.resources[self.id_of(construct)]["Properties"]

    def statements(self, role: Any) -> list[dict[str, Any]]:
        """What a role may do, by all policies of the template that are attached to it or name it."""
        name = self.id_of(role)
        return [
            statement
            for kind in ("AWS::IAM::Policy", "AWS::SQS::QueuePolicy")
            for policy in self.of_type(kind).values()
            for statement in policy["PolicyDocument"]["Statement"]
            if {"Ref": name} in policy.get("Roles", ())
            or statement.get("Principal") == {"AWS": {"Fn::GetAtt": [name, "Arn"]}}
        ]


ALTERED: Final[dict[str, Any]] = {
    "prefix": "shop",
    "architecture": "x86_64",
    "alarm_topic_arn": "arn:aws:sns:eu-west-1:123456789012:oncall",
    "log_level": "DEBUG",
    "log_retention_days": 7,
    "open_idle_ttl": 600,
    "lifetime": 60,
    "reaper_rate_minutes": 10,
    "registrar_rate_minutes": 60,
    "unrouted": "count",
    "api_throttle_rate": 7,
    "api_throttle_burst": 9,
    "worker_max_concurrency": 300,
    "cors_origins": "https://shop.example.com, http://localhost:3000",
}
FRUGAL: Final[dict[str, Any]] = {
    "alarms": False,
    "dashboard": False,
    "access_log": False,
    "tracing": "xray",
    "removal": "destroy",
    "log_level": "ERROR",
    "log_sample": 5,
    "lifetime": 365 * 86_400,
    "ack_max_concurrency": 40,
    "ack_reserved_concurrency": 40,
    "api_reserved_concurrency": 41,
    "ack_batch_size": 500,
    "ack_batching_window_seconds": 20,
    "worker_max_concurrency": 7,
    "words_warm_writes": 40_000,
    "table_max_writes": 50_000,
    "table_max_reads": 9_000,
    "api_costly_rate": 3,
    "api_costly_burst": 4,
}
TOKENS: Final[dict[str, Any]] = {
    "auth": "jwt",
    "jwt_issuer": "https://id.example.com/",
    "jwt_audience": "fanin, shop",
    "jwt_scope_prefix": "api://fanin/",
    "webhook_hosts": "hooks.example.com, *.example.org",
    "console": True,
    "console_origins": "http://localhost:8080, https://fanin.example.com",
    "reaper_rate_minutes": 1,
    "registrar_rate_minutes": 1,
    "unrouted": "keep",
}
EVERYTHING: Final[dict[str, Any]] = {
    "alarm_topic_arn": "arn:aws:sns:eu-west-1:123456789012:alarms",
    "console": True,
    "console_write": True,
    "pipeline": True,
    "pipeline_inputs": "s3://lake/orders/,s3://telemetry",
    "removal": "destroy",
    "unrouted": "keep",
    "webhook_hosts": "hooks.example.com, *.example.org",
}
LOCAL: Final[dict[str, Any]] = {"local": True, "auth": "none", "removal": "destroy"}


@cache
def synthesized(**settings: Any) -> Synthesized:
    app = cdk.App(context=UNBUNDLED)
    return Synthesized(FaninStack(app, "fanin", settings=Settings(**settings)))


class Everything(NamedTuple):
    """Stacks with all resources that there are, gone without a trace.

    Attributes:
        fanin: the service.
        jobs: those of Spark.
        own: a consumer's and a producer's roles.
    """

    fanin: Synthesized
    jobs: Synthesized
    own: Synthesized


@cache
def everything() -> Everything:
    app = cdk.App(context=UNBUNDLED)
    fanin = FaninStack(app, "fanin", settings=Settings(**EVERYTHING))
    tracker = fanin.tracker
    jobs = PipelineStack(app, "fanin-pipeline", tracker=tracker)
    own = cdk.Stack(app, "own")
    for name, grant in (
        ("Consumer", fanin.tracker.grant_consumer),
        ("Producer", fanin.tracker.grant_producer),
    ):
        grant(iam.Role(own, name, assumed_by=iam.ServicePrincipal("ecs-tasks.amazonaws.com")))
    return Everything(*map(Synthesized, (fanin, jobs, own)))


@pytest.fixture(scope="session")
def fanin() -> Synthesized:
    """With the defaults."""
    return synthesized()


@pytest.fixture(scope="session")
def altered() -> Synthesized:
    """With other values wherever a setting has one."""
    return synthesized(**ALTERED)


@pytest.fixture(scope="session")
def frugal() -> Synthesized:
    """Without what costs, with limits, and gone without a trace."""
    return synthesized(**FRUGAL)


@pytest.fixture(scope="session")
def tokens() -> Synthesized:
    """With tokens, webhooks and a console that can only be read."""
    return synthesized(**TOKENS)


@pytest.fixture(scope="session")
def local() -> Synthesized:
    """For an emulator, open to everybody."""
    return synthesized(**LOCAL)


@pytest.fixture(scope="session")
def tracker(fanin):
    return fanin.stack.tracker
