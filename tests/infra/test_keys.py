"""A deployment with a key of one's own, tags, a permissions boundary, and a VPC."""

import json
import re
from pathlib import Path
from typing import Any

import aws_cdk as cdk
import pytest
from aws_cdk import Aspects, Tags
from aws_cdk import aws_iam as iam
from aws_cdk import aws_lambda as lambda_
from aws_cdk.assertions import Template

from fanin_cdk import CustomerKey, FaninStack, PipelineStack, Settings, TrackedQueue
from fanin_cdk.keys import LOGS_OF_JOBS, USE
from tests.infra.conftest import UNBUNDLED
from tests.infra.iam.policies import Decision, Request, decide
from tests.infra.iam.templates import ACCOUNT, REGION, Templates

SETTINGS = Path(__file__).resolve().parents[2] / "docs" / "reference" / "settings.md"
KEY = f"arn:aws:kms:{REGION}:{ACCOUNT}:key/1234abcd-12ab-34cd-56ef-1234567890ab"
BOUNDARY = "developer-boundary"
UNTAGGED = {
    "Custom::FaninLeftovers",
    "AWS::ApiGatewayV2::Integration",
    "AWS::ApiGatewayV2::Route",
    "AWS::IAM::Policy",
    "AWS::Lambda::EventInvokeConfig",
    "AWS::Lambda::LayerVersion",
    "AWS::Lambda::Permission",
    "AWS::S3::BucketPolicy",
    "AWS::SQS::QueuePolicy",
    "AWS::Scheduler::Schedule",
}
"""Types that CloudFormation does not tag."""
ENCRYPTED = {
    "AWS::DynamoDB::Table": ("SSESpecification", "KMSMasterKeyId"),
    "AWS::EMRServerless::Application": (
        "MonitoringConfiguration",
        "ManagedPersistenceMonitoringConfiguration",
        "EncryptionKeyArn",
    ),
    "AWS::Logs::LogGroup": ("KmsKeyId",),
    "AWS::S3::Bucket": (
        "BucketEncryption",
        "ServerSideEncryptionConfiguration",
        0,
        "ServerSideEncryptionByDefault",
        "KMSMasterKeyID",
    ),
    "AWS::SQS::Queue": ("KmsMasterKeyId",),
    "AWS::SecretsManager::Secret": ("KmsKeyId",),
}


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", SETTINGS.read_text(), re.MULTILINE | re.DOTALL)


class Company:
    """An app as companies have it: all stacks, a consumer of one's own, and what they ask of every app."""

    def __init__(self) -> None:
        self.app = cdk.App(context=UNBUNDLED)
        settings = Settings(
            kms_key_arn=KEY,
            pipeline=True,
            webhook_hosts="hooks.example.com",
            console=True,
            console_write=True,
        )
        fanin = FaninStack(self.app, "fanin", settings=settings)
        pipeline = PipelineStack(self.app, "fanin-pipeline", tracker=fanin.tracker)
        own = cdk.Stack(self.app, "own")
        self.consumer, self.producer = (
            lambda_.Function(
                own,
                name,
                runtime=lambda_.Runtime.PYTHON_3_14,
                handler="index.handler",
                code=lambda_.Code.from_inline("handler = print"),
            )
            for name in ("Consumer", "Producer")
        )
        fanin.tracker.grant_consumer(self.consumer)
        fanin.tracker.grant_producer(self.producer)
        queue = TrackedQueue(own, "Orders", tracker=fanin.tracker)
        queue.consume(self.consumer)
        Aspects.of(queue).add(CustomerKey(KEY))
        Tags.of(self.app).add("cost-center", "4711")
        boundary = iam.ManagedPolicy.from_managed_policy_name(own, "Boundary", BOUNDARY)
        iam.PermissionsBoundary.of(self.app).apply(boundary)
        scope = {"app": self.app, "subnet_ids": ["subnet-1"], "security_group_ids": ["sg-1"]}
        (network,) = (block for block in blocks("python") if "class InVpc" in block)
        exec(network, scope)
        stacks = {"fanin": fanin, "fanin-pipeline": pipeline, "own": own}
        self.templates = {name: Template.from_stack(stack).to_json() for name, stack in stacks.items()}
        self.resolved = Templates(self.templates)

    def resources(self, *kinds: str) -> list[tuple[str, dict[str, Any]]]:
        return [
            (name, resource)
            for template in self.templates.values()
            for name, resource in template["Resources"].items()
            if not kinds or resource["Type"] in kinds
        ]


@pytest.fixture(scope="module")
def company() -> Company:
    return Company()


def test_exports_of_tables_are_encrypted_with_the_key(company):
    ((_, machine),) = company.resources("AWS::StepFunctions::StateMachine")
    definition = json.dumps(machine["Properties"]["DefinitionString"]).replace('\\"', '"')
    named = f'"S3SseAlgorithm":"KMS","S3SseKmsKeyId":"{KEY}"'
    assert definition.count("exportTableToPointInTime") == definition.count(named) == 2


def test_everything_at_rest_is_encrypted_with_the_key(company):
    found = company.resources(*ENCRYPTED)
    assert {resource["Type"] for _, resource in found} == set(ENCRYPTED)
    for name, resource in found:
        value = resource["Properties"]
        for part in ENCRYPTED[resource["Type"]]:
            value = value[part]
        assert value == KEY, name
        # SQS refuses a queue with two kinds of encryption
        assert "SqsManagedSseEnabled" not in resource["Properties"], name


def test_without_the_setting_nothing_names_a_key(fanin):
    assert "kms" not in json.dumps(fanin.template.to_json()).lower().replace("ssetype", "").replace(
        '"kms"', ""
    )


def test_the_service_makes_queues_for_buffers_with_the_key(company):
    for name, function in company.resources("AWS::Lambda::Function"):
        variables = function["Properties"].get("Environment", {}).get("Variables", {})
        if "FANIN_BUFFER_PREFIX" in variables:
            assert variables["FANIN_KMS_KEY_ARN"] == KEY, name


def test_roles_use_the_key_through_the_services_only(company):
    # Given the roles that functions have, that of schedules, that of the jobs and that of the audit
    user = re.compile(r"Functions.*Role|Removal|Deadlines|PipelineRole|Machine|Consumer|Producer")
    jobs = re.compile(r"PipelineRole|Machine")
    for role in company.resolved.roles:
        statements = company.resolved.statements(role)
        for action in USE:
            through = {"kms:ViaService": f"sqs.{REGION}.amazonaws.com"}
            decision = decide(Request(action, KEY, through), statements)
            # Then a role that stores or reads anything may use the key through its service
            assert (decision is Decision.ALLOW) is bool(user.search(role)), (role, action)
            # And by itself, through another service, or with another key none may; those that run jobs may
            # do by themselves what EMR Serverless asks of them
            if jobs.search(role) and action in LOGS_OF_JOBS:
                assert decide(Request(action, KEY, {}), statements) is Decision.ALLOW, role
                continue
            for key, context in (
                (KEY, {}),
                (KEY, {"kms:ViaService": f"ebs.{REGION}.amazonaws.com"}),
                (KEY.replace("1234abcd", "00000000"), through),
            ):
                assert decide(Request(action, key, context), statements) is Decision.IMPLICIT_DENY, role
        for action in ("kms:ScheduleKeyDeletion", "kms:PutKeyPolicy", "kms:CreateGrant", "kms:DisableKey"):
            assert decide(Request(action, KEY, through), statements) is Decision.IMPLICIT_DENY, role


def test_the_documented_policy_of_the_key_lets_the_services_in(company):
    (text,) = blocks("json")
    policy = json.loads(text)
    # Given every log group, and every rule with a dead-letter queue that is encrypted
    groups = [
        company.resolved.arn(name).removesuffix(":*") for name, _ in company.resources("AWS::Logs::LogGroup")
    ]
    rules = [
        rule for _, rule in company.resources("AWS::Events::Rule") if "DeadLetterConfig" in json.dumps(rule)
    ]
    assert groups
    assert rules
    # Then CloudWatch may encrypt the groups, and EventBridge may send to the queues
    logs = f"logs.{REGION}.amazonaws.com"
    for group in groups:
        for action in (
            "kms:GenerateDataKey",
            "kms:Decrypt",
            "kms:Encrypt",
            "kms:DescribeKey",
            "kms:ReEncryptTo",
        ):
            context = {"kms:EncryptionContext:aws:logs:arn": group}
            assert decide(Request(action, KEY, context, logs), [], policy) is Decision.ALLOW, group
    for action in ("kms:GenerateDataKey", "kms:Decrypt"):
        assert decide(Request(action, KEY, {}, "events.amazonaws.com"), [], policy) is Decision.ALLOW
    # And EMR Serverless may encrypt the logs of the jobs of the application, and of no other account
    emr = "emr-serverless.amazonaws.com"
    ((name, _),) = company.resources("AWS::EMRServerless::Application")
    application = company.resolved.arn(name)
    for action in LOGS_OF_JOBS:
        source = {"aws:SourceArn": application}
        assert decide(Request(action, KEY, source, emr), [], policy) is Decision.ALLOW
        source = {"aws:SourceArn": application.replace(ACCOUNT, "999999999999")}
        assert decide(Request(action, KEY, source, emr), [], policy) is Decision.IMPLICIT_DENY
    # And nobody else, nor CloudWatch for groups of other accounts
    foreign = {"kms:EncryptionContext:aws:logs:arn": groups[0].replace(ACCOUNT, "999999999999")}
    assert decide(Request("kms:Decrypt", KEY, foreign, logs), [], policy) is Decision.IMPLICIT_DENY
    assert decide(Request("kms:Decrypt", KEY, {}, "sns.amazonaws.com"), [], policy) is Decision.IMPLICIT_DENY


def test_every_role_has_the_boundary(company):
    roles = company.resources("AWS::IAM::Role")
    assert len(roles) > 15
    for name, role in roles:
        assert BOUNDARY in json.dumps(role["Properties"]["PermissionsBoundary"]), name


def test_everything_that_can_have_a_tag_has_it(company):
    tagged = {"Key": "cost-center", "Value": "4711"}
    without = set()
    for _, resource in company.resources():
        tags = resource["Properties"].get("Tags", [])
        if tags != {"cost-center": "4711"} and tagged not in tags:
            without.add(resource["Type"])
    assert without == UNTAGGED


def test_the_documented_aspect_puts_every_function_into_the_vpc(company):
    functions = company.resources("AWS::Lambda::Function")
    roles = dict(company.resources("AWS::IAM::Role"))
    assert len(functions) > 15
    for name, function in functions:
        place = {"SubnetIds": ["subnet-1"], "SecurityGroupIds": ["sg-1"]}
        assert function["Properties"]["VpcConfig"] == place, name
        role = roles[function["Properties"]["Role"]["Fn::GetAtt"][0]]
        assert "AWSLambdaVPCAccessExecutionRole" in json.dumps(role["Properties"]["ManagedPolicyArns"]), name


@pytest.mark.parametrize("given", ["alias/fanin", f"arn:aws:kms:{REGION}:{ACCOUNT}:alias/fanin", "1234abcd"])
def test_a_key_that_is_not_an_arn_is_refused(given):
    with pytest.raises(ValueError, match=r"setting kms_key_arn is .*; it must be the ARN of a KMS key"):
        Settings(kms_key_arn=given)
