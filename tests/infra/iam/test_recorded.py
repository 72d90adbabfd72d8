"""What AWS would answer to what the functions did on the deployed stack, and to what none of them may do."""

import re
from collections.abc import Iterator
from typing import Any

import pytest

from tests.infra.iam import lambda_service
from tests.infra.iam.conditions import as_list
from tests.infra.iam.forbidden import CLAIMS, FORBIDDEN, FOREIGN, ROUTER, targets
from tests.infra.iam.policies import Decision, Request, Statement, applies, evaluate
from tests.infra.iam.recorded import OURS, Question, asks_without_consent, denied, on_aws, policies, read
from tests.infra.iam.templates import ACCOUNT, REGION

UNSEEN = {
    "settling what a writer that crashed has left, which the tests do not provoke in each function": (
        "(Timer|DeadLetters|Replies|Reaper|Redriver)Role dynamodb:(BatchGetItem|UpdateItem) .*Words",
    ),
    "counting the failures and held items of a batch": (
        "(Timer|Replies|Targets)Role dynamodb:Query .*Parts",
    ),
    "a deadline that is set a second time": ("(Timer|Api)Role scheduler:UpdateSchedule",),
    "a record, a message or an event that cannot be handled": (
        "(Acks|Directory|Registrar)Role sqs:SendMessage .*(AckQueue|Retries|Parked)",
    ),
    "an event that another invocation routes at the moment": ("RouterRole dynamodb:UpdateItem .*Directory",),
    "more failures than a call takes: the API begins a redrive, and the worker goes on": (
        "RedriverRole dynamodb:(PutItem|BatchWriteItem) .*(Batches|Parts)",
        "RedriverRole dynamodb:UpdateItem .*Directory",
        "RedriverRole sqs:SendMessage .*RedrivesJobs",
        "RedriverRole sqs:SendMessage .*fanin:channel",
        "RedriverRole sqs:ListQueueTags .*fanin:channel",
    ),
    "a body that is too large for a row": ("(Redriver|Replies|Scatter)Role s3:(Get|Put)Object .*Claims",),
    "a queue that is named by its ARN": ("(Api|Redriver|Registrar)Role sqs:GetQueueUrl",),
    "the deadline of a batch that was closed or cancelled": ("ApiRole scheduler:DeleteSchedule",),
    "the policy against plain HTTP, which the emulator serves": ("ApiRole sqs:SetQueueAttributes",),
    "a scatter whose deadline the reaper postpones": (
        "ReaperRole (scheduler:(Create|Update)Schedule|iam:PassRole)",
        "ReaperRole sqs:SendMessage .*ScatterJobs",
    ),
    "the first finding of a stalled batch whose queue is tagged": (
        "(Api|Reaper)Role sqs:GetQueueAttributes .*fanin:(tracked|channel)",
        "ReaperRole cloudwatch:GetMetricData",
    ),
    "comes with the CDK's grant of an event source or a destination": (
        "sqs:(ChangeMessageVisibility|GetQueueUrl) arn",
        "sqs:GetQueueAttributes arn.*DeadLetters$",
    ),
    "a console with buttons serves what the API serves; the buttons' tests press a few": ("ConsoleRole ",),
    "Scheduler calls the timer, or says that it could not": ("TrackerDeadlinesRole ",),
    "the stack is deleted": ("TrackerRemovalFunctionRole ",),
}
"""Why a permission is granted that no test uses on the wire → which: role, action and resource or tag."""


@pytest.fixture(scope="module")
def statements() -> dict[str, list[Statement]]:
    """Of each function and of the role of schedules, by the name of the role."""
    return policies(on_aws())


@pytest.fixture(scope="module")
def asked() -> list[Question]:
    return [*read(), *lambda_service.questions(on_aws())]


def test_aws_allows_what_the_functions_did_in_the_tests():
    # Given the calls of all functions, with the condition keys that no emulator evaluates
    questions = [one for one in read() if one.role.startswith(OURS)]
    assert {one.role.removeprefix(OURS).removesuffix("Role") for one in questions} >= {
        "Api",
        "Acks",
        "Targets",
    }
    # Then all were allowed on AWS, but for those that ask for the tags of a queue that has none
    assert denied(questions) == []
    assert any(asks_without_consent(one) for one in questions)
    assert not [one for one in questions if one.action == "unknown"]


def test_aws_allows_what_lambda_does_in_the_name_of_a_function():
    assert denied(lambda_service.questions(on_aws())) == []


def granted(statements: dict[str, list[Statement]]) -> Iterator[tuple[str, str, Statement]]:
    """Each permission by itself: the role, how it is called in ``UNSEEN``, and a statement with it alone."""
    for role, policy in statements.items():
        for statement in policy:
            for action in as_list(statement["Action"]):
                for resource in as_list(statement["Resource"]):
                    one = {**statement, "Action": action, "Resource": resource}
                    where = " ".join([resource, *conditions(statement.get("Condition", {}))])
                    yield role, f"{role} {action} {where}", one


def conditions(block: dict[str, dict[str, Any]]) -> list[str]:
    return [key for keys in block.values() for key in keys]


def test_every_permission_is_used_or_is_granted_for_a_reason(statements, asked):
    # Given the permissions that nobody used
    unused = [
        name
        for role, name, statement in granted(statements)
        if not any(applies(statement, one.request) for one in asked if one.role == role)
    ]
    # Then there is a reason for each, and no reason is left without a permission
    reasons = [form for forms in UNSEEN.values() for form in forms]
    assert [name for name in unused if not any(re.search(form, name) for form in reasons)] == []
    assert [form for form in reasons if not any(re.search(form, name) for name in unused)] == []


@pytest.mark.parametrize(("what", "request_", "may"), FORBIDDEN, ids=[what for what, *_ in FORBIDDEN])
def test_no_function_may(statements, what, request_, may):
    allowed = {
        role.removeprefix(OURS).removesuffix("Role")
        for role, policy in statements.items()
        if role.startswith(OURS) and evaluate(policy, request_) is Decision.ALLOW
    }
    assert allowed == may


def test_a_route_may_lead_to_the_router(statements):
    """The denials above are of the targets, and not of a mistake in the request."""
    for role in ("Api", "Directory"):
        assert evaluate(statements[f"{OURS}{role}Role"], targets(ROUTER)) is Decision.ALLOW


def test_nobody_uses_queues_or_the_bucket_over_plain_http(statements):
    templates = on_aws()
    for arn, action in (
        (f"arn:aws:sqs:{REGION}:{ACCOUNT}:TrackerAckQueue", "sqs:SendMessage"),
        (f"{CLAIMS}/x", "s3:GetObject"),
    ):
        plain = Request(action, arn, {"aws:SecureTransport": "false"}, "anybody")
        assert evaluate(templates.about(arn), plain) is Decision.EXPLICIT_DENY


def test_only_schedules_of_the_group_take_the_role_and_only_to_call_the_timer(statements):
    policy = statements["TrackerDeadlinesRole"]
    timer = f"arn:aws:lambda:{REGION}:{ACCOUNT}:function:fanin-timer"
    assert evaluate(policy, Request("lambda:InvokeFunction", timer)) is Decision.ALLOW
    for other in (ROUTER, FOREIGN):
        assert evaluate(policy, Request("lambda:InvokeFunction", other)) is Decision.IMPLICIT_DENY
    trust = on_aws().trust("TrackerDeadlinesRole")
    group = f"arn:aws:scheduler:{REGION}:{ACCOUNT}:schedule-group/fanin"
    for source, account, decision in (
        (group, ACCOUNT, Decision.ALLOW),
        (group.replace("fanin", "other"), ACCOUNT, Decision.IMPLICIT_DENY),
        (group, "999999999999", Decision.IMPLICIT_DENY),
    ):
        context = {"aws:SourceArn": source, "aws:SourceAccount": account}
        assert evaluate(trust, Request("sts:AssumeRole", "*", context, "scheduler.amazonaws.com")) is decision
