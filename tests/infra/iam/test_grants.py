"""What producers, consumers, the Spark jobs and the audit may do, and what not."""

from __future__ import annotations

import aws_cdk as cdk
import pytest
from aws_cdk import aws_lambda as lambda_
from aws_cdk.assertions import Template

from fanin_cdk import FaninStack, PipelineStack, Settings
from tests.infra.conftest import UNBUNDLED
from tests.infra.iam.forbidden import BATCHES, FORBIDDEN, WORDS, targets, update
from tests.infra.iam.policies import Decision, Request, evaluate
from tests.infra.iam.recorded import policies
from tests.infra.iam.templates import ACCOUNT, REGION, Templates

PASSED = {"iam:PassedToService": "emr-serverless.amazonaws.com"}
JOBS_ROLE = f"arn:aws:iam::{ACCOUNT}:role/PipelineRole"
BUCKET = "arn:aws:s3:::PipelineBucket"
EXEMPT = {
    "Producer": (
        "overwrite a",
        "change the",
        "change when",
        "say how",
        "delete from the directory",
        "send to a queue that",
    ),
    "Consumer": (),
    "PipelineRole": (
        "overwrite a",
        "change the",
        "change when",
        "say how",
        "delete from the directory",
        f"scan {BATCHES}",
        f"scan {WORDS}",
    ),
    "PipelineAuditMachineRole": ("export a table",),
}
"""Role → how what it may do begins, of what no function may do or few."""


@pytest.fixture(scope="module")
def statements():
    app = cdk.App(context=UNBUNDLED)
    fanin = FaninStack(app, "fanin", settings=Settings(pipeline=True, pipeline_inputs="s3://lake/orders/"))
    pipeline = PipelineStack(app, "fanin-pipeline", tracker=fanin.tracker)
    own = cdk.Stack(app, "own")
    code = lambda_.Code.from_inline("handler = print")
    for name in ("Consumer", "Producer"):
        function = lambda_.Function(
            own, name, runtime=lambda_.Runtime.PYTHON_3_14, handler="index.handler", code=code
        )
        grant = fanin.tracker.grant_consumer if name == "Consumer" else fanin.tracker.grant_producer
        grant(function)
    stacks = {"fanin": fanin, "fanin-pipeline": pipeline, "own": own}
    found = policies(
        Templates({name: Template.from_stack(stack).to_json() for name, stack in stacks.items()})
    )
    return {role.removesuffix("ServiceRole"): policy for role, policy in found.items()}


@pytest.mark.parametrize("role", EXEMPT)
def test_what_no_function_may_others_may_not_either(statements, role):
    for what, request, _ in FORBIDDEN:
        if not what.startswith(EXEMPT[role]):
            assert evaluate(statements[role], request) is Decision.IMPLICIT_DENY, what


@pytest.mark.parametrize("role", EXEMPT)
def test_no_exemption_is_left_that_is_not_needed(statements, role):
    allowed = [
        what for what, request, _ in FORBIDDEN if evaluate(statements[role], request) is Decision.ALLOW
    ]
    for begins in EXEMPT[role]:
        assert [what for what in allowed if what.startswith(begins)], begins


def test_a_consumer_moves_batches_on_and_changes_nothing_else(statements):
    policy = statements["Consumer"]
    assert evaluate(policy, update(BATCHES, "batch_id", "acked", "touched_at", "due_at")) is Decision.ALLOW
    assert evaluate(policy, update(BATCHES, "batch_id", "acked", "metadata")) is Decision.IMPLICIT_DENY
    assert (
        evaluate(policy, targets("arn:aws:lambda:eu-west-1:111122223333:function:x"))
        is Decision.IMPLICIT_DENY
    )


def test_jobs_write_results_and_not_code_and_read_the_inputs_that_the_settings_name(statements):
    policy = statements["PipelineRole"]
    for action, place, decision in (
        ("s3:PutObject", f"{BUCKET}/data/x", Decision.ALLOW),
        ("s3:PutObject", f"{BUCKET}/code/x", Decision.IMPLICIT_DENY),
        ("s3:PutObject", f"{BUCKET}/exports/x", Decision.IMPLICIT_DENY),
        ("s3:GetObject", "arn:aws:s3:::lake/orders/x", Decision.ALLOW),
        ("s3:GetObject", "arn:aws:s3:::lake/customers/x", Decision.IMPLICIT_DENY),
        ("s3:PutObject", "arn:aws:s3:::lake/orders/x", Decision.IMPLICIT_DENY),
        ("dynamodb:DescribeTable", WORDS, Decision.ALLOW),
        ("dynamodb:DescribeTable", BATCHES, Decision.IMPLICIT_DENY),
    ):
        assert evaluate(policy, Request(action, place)) is decision, (action, place)


def test_the_audit_exports_two_tables_and_runs_jobs_with_their_role_only(statements):
    policy = statements["PipelineAuditMachineRole"]
    application = f"arn:aws:emr-serverless:{REGION}:{ACCOUNT}:/applications/PipelineApplication"
    for request, decision in (
        (Request("dynamodb:ExportTableToPointInTime", WORDS), Decision.ALLOW),
        (Request("dynamodb:DescribeExport", f"{WORDS}/export/01"), Decision.ALLOW),
        (
            Request("dynamodb:ExportTableToPointInTime", WORDS.replace("Words", "Parts")),
            Decision.IMPLICIT_DENY,
        ),
        (Request("s3:PutObject", f"{BUCKET}/exports/words/x"), Decision.ALLOW),
        (Request("s3:PutObject", f"{BUCKET}/data/x"), Decision.IMPLICIT_DENY),
        (Request("emr-serverless:StartJobRun", application), Decision.ALLOW),
        (Request("iam:PassRole", JOBS_ROLE, PASSED), Decision.ALLOW),
        (Request("iam:PassRole", JOBS_ROLE), Decision.IMPLICIT_DENY),
        (Request("iam:PassRole", f"{JOBS_ROLE}2", PASSED), Decision.IMPLICIT_DENY),
    ):
        assert evaluate(policy, request) is decision, request
