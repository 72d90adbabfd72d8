"""The stack of the Spark jobs: what they may do, what they run on, and when the audit does."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import aws_cdk as cdk
import cdk_nag
import pytest

from fanin import names
from fanin_cdk import FaninStack, PipelineStack, Settings
from fanin_cdk.layers import PLATFORMS
from fanin_cdk.pipeline import PYTHON
from tests.infra.conftest import UNBUNDLED, Synthesized

ROOT = Path(__file__).resolve().parents[2]
INPUTS = "s3://lake/orders/,s3://telemetry"


def pipeline(outdir: Path | None = None, **settings: Any) -> tuple[cdk.App, PipelineStack]:
    app = cdk.App(context=UNBUNDLED, outdir=str(outdir) if outdir else None)
    tracker = FaninStack(app, "fanin", settings=Settings(pipeline=True, **settings)).tracker
    return app, PipelineStack(app, "fanin-pipeline", tracker=tracker)


@pytest.fixture(scope="session")
def made() -> Synthesized:
    return Synthesized(pipeline(pipeline_inputs=INPUTS)[1])


def allowed(made: Synthesized, role: Any) -> dict[str, list[str]]:
    """Action → the resources it is allowed on, short."""
    found: dict[str, list[str]] = {}
    for statement in made.statements(role):
        actions, resource = statement["Action"], short(statement["Resource"])
        for action in [actions] if isinstance(actions, str) else actions:
            found.setdefault(action, []).append(resource)
    return {action: sorted(resources) for action, resources in found.items()}


def short(resource: Any) -> str:
    """A short name for an ARN."""
    if isinstance(resource, dict):
        ((function, value),) = resource.items()
        if function == "Fn::Join":
            return "".join(short(part) for part in value[1])
        value = value[0] if isinstance(value, list) else value
        found = re.search(r"(?:Tracker|Pipeline)([A-Za-z]+?)[0-9A-F]{8}", value)
        return f"<{found[1]}>" if found else ("assets" if "assets" in value else "")
    return re.sub(r"[0-9a-f]{64}", "…", str(resource))


def test_a_job_may_do_this_and_nothing_else(made):
    # Given the role of the jobs
    # Then this is the whole of what it may do
    tables = ["<StorageBatches>", "<StorageDirectory>", "<StorageParts>", "<StorageWords>"]
    batches, directory, parts, words = tables
    assert allowed(made, made.stack.pipeline.role) == {
        "dynamodb:BatchGetItem": [batches, directory, parts, words],
        "dynamodb:BatchWriteItem": [parts],
        "dynamodb:DeleteItem": [directory],
        "dynamodb:PutItem": [batches, parts],
        "dynamodb:Query": [f"{batches}/index/by_shelf", f"{batches}/index/by_user_key", directory, parts],
        "dynamodb:Scan": [batches, words],
        "dynamodb:UpdateItem": [batches, directory, parts, words],
        "iam:PassRole": ["<DeadlinesRole>"],
        "logs:CreateLogStream": ["<Logs>:*"],
        "logs:DescribeLogGroups": ["arn::logs:::log-group:*"],
        "logs:DescribeLogStreams": ["<Logs>:*"],
        "logs:PutLogEvents": ["<Logs>:*"],
        "s3:DeleteObject": ["<Bucket>/data/*"],
        "s3:GetObject": [
            "<Bucket>/*",
            "<ScatterClaims>/*",
            "arn::s3:::assets/….py",
            "arn::s3:::assets/….zip",
            "arn::s3:::assets/….zip",
            "arn::s3:::lake/orders/*",
            "arn::s3:::telemetry/*",
        ],
        "s3:ListBucket": ["<Bucket>", "arn::s3:::lake", "arn::s3:::telemetry"],
        "s3:PutObject": ["<Bucket>/data/*", "<ScatterClaims>/*"],
        "scheduler:CreateSchedule": ["arn::scheduler:::schedule/fanin/*"],
        "scheduler:UpdateSchedule": ["arn::scheduler:::schedule/fanin/*"],
        "sqs:GetQueueUrl": ["*"],
        "sqs:ListQueueTags": ["*"],
        "sqs:SendMessage": ["*", "<ScatterJobsQueue>", "<WorkQueue>"],
    }


def test_only_queues_that_are_channels_get_messages_beside_the_trackers_own(made):
    everywhere = [s for s in made.statements(made.stack.pipeline.role) if s["Resource"] == "*"]
    assert [s["Condition"] for s in everywhere] == [
        {"StringLike": {f"aws:ResourceTag/{names.CHANNEL_TAG}": "*"}}
    ]


def test_only_emr_in_this_account_takes_the_role(made):
    (statement,) = made.properties(made.stack.pipeline.role)["AssumeRolePolicyDocument"]["Statement"]
    assert statement["Principal"] == {"Service": "emr-serverless.amazonaws.com"}
    assert statement["Condition"]["StringEquals"] == {"aws:SourceAccount": {"Ref": "AWS::AccountId"}}


def test_the_application_is_as_the_settings_say():
    # Given other settings than the defaults
    stack = pipeline(pipeline_release="emr-7.14.0", pipeline_max_vcpu=16, architecture="x86_64")[1]
    ((_, application),) = Synthesized(stack).of_type("AWS::EMRServerless::Application").items()
    # Then it runs that release, stops when idle, and never uses more vCPUs
    assert application["ReleaseLabel"] == "emr-7.14.0"
    assert application["Architecture"] == "X86_64"
    assert application["MaximumCapacity"] == {"Cpu": "16 vCPU", "Memory": "128 GB", "Disk": "320 GB"}
    assert application["AutoStopConfiguration"] == {"Enabled": True, "IdleTimeoutMinutes": 5}


def test_jobs_are_told_where_the_tracker_is_and_what_they_run_on(made):
    # Given what a submit reads
    outputs = made.template.to_json()["Outputs"]
    conf = made.stack.pipeline.conf
    # Then every variable of the tracker is there, the Python that the dependencies are for, and no more
    prefix = "spark.emr-serverless.driverEnv."
    told = {name.removeprefix(prefix) for name in conf if name.startswith(prefix)}
    assert told == {
        *(name for name in told if name.startswith("FANIN_")),
        *("PYSPARK_PYTHON", "PYSPARK_DRIVER_PYTHON", "PYTHONPATH"),
    }
    assert {names.ENV_BATCHES_TABLE, names.ENV_WORDS_TABLE, names.ENV_PARTS_TABLE, names.ENV_BUS} <= told
    assert conf["spark.executorEnv.PYSPARK_PYTHON"] == f"python{PYTHON}"
    assert conf["spark.executorEnv.ARROW_ENABLE_UNSAFE_MEMORY_ACCESS"] == "true"
    assert set(outputs) >= {
        names.PIPELINE_OUTPUT_APPLICATION,
        names.PIPELINE_OUTPUT_BUCKET,
        names.PIPELINE_OUTPUT_CONF,
        names.PIPELINE_OUTPUT_ENTRY,
        names.PIPELINE_OUTPUT_PACKAGE,
        names.PIPELINE_OUTPUT_ROLE,
    }


def test_the_dependencies_are_pinned_as_they_are_tested():
    # Given what EMR gets, and what the tests run on
    requirements = (ROOT / "layers/spark/requirements.in").read_text()
    pinned = dict(re.findall(r"^([a-z0-9-]+)==(\S+)$", requirements, re.MULTILINE))
    here = (ROOT / "pyproject.toml").read_text()
    # Then they agree, where the tests name a version
    for name, version in pinned.items():
        assert f'"{name}==' not in here or f'"{name}=={version}"' in here, name
    assert "pyspark" not in pinned


def test_wheels_are_for_emr_whatever_the_processor():
    assert {platform.rpartition("_")[0] for some in PLATFORMS.values() for platform in some} == {
        "manylinux2014",
        "manylinux2014_x86",
        "manylinux_2_28",
        "manylinux_2_28_x86",
    }


def test_the_audit_exports_both_tables_waits_and_runs(made):
    # Given the state machine
    ((_, machine),) = made.of_type("AWS::StepFunctions::StateMachine").items()
    states = json.loads(text(machine["DefinitionString"]))["States"]
    # Then each branch exports a table under a token of the execution, and looks until it is there
    for branch, table in zip(states["Export"]["Branches"], ("batches", "words"), strict=True):
        start = branch["States"][f"Export {table}"]
        assert start["Resource"] == "arn:aws:states:::aws-sdk:dynamodb:exportTableToPointInTime"
        assert "$$.Execution.Id" in start["Parameters"]["ClientToken.$"]
        status = branch["States"][f"Is {table} there?"]
        assert [choice["Next"] for choice in status["Choices"]] == [f"Wait for {table}", f"{table} exported"]
        assert branch["States"][status["Default"]]["Type"] == "Fail"
    # And the job gets both folders, and the execution waits for its end
    audit = states["Audit"]
    assert audit["Resource"] == "arn:aws:states:::emr-serverless:startJobRun.sync"
    arguments = audit["Parameters"]["JobDriver"]["SparkSubmit"]["EntryPointArguments.$"]
    assert arguments.count("AWSDynamoDB/{}") == 2
    assert re.findall(r"'(--[a-z-]+)'", arguments) == ["--batches-export", "--words-export", "--output"]
    assert "Retry" not in audit


def test_the_audits_arguments_are_those_of_the_job(made):
    # Given the arguments that the state machine gives
    from fanin.spark.jobs.audit import JOB

    # When the job reads them
    options = JOB.parser().parse_args(
        ["--batches-export", "s3://b/1", "--words-export", "s3://b/2", "--output", "s3://b/3"]
    )
    # Then it takes them
    assert (options.batches_export, options.words_export, options.output) == (
        "s3://b/1",
        "s3://b/2",
        "s3://b/3",
    )


def text(joined: Any) -> str:
    """A string with its references by name."""
    return (
        joined
        if isinstance(joined, str)
        else "".join(part if isinstance(part, str) else "ref" for part in joined["Fn::Join"][1])
    )


def test_no_audit_where_none_is_wanted():
    stack = Synthesized(pipeline(pipeline_audit_hours=0)[1])
    assert stack.of_type("AWS::Scheduler::Schedule") == {}
    assert stack.of_type("AWS::StepFunctions::StateMachine") == {}


def test_a_failed_audit_is_told():
    topic = "arn:aws:sns:eu-west-1:123456789012:alarms"
    ((_, alarm),) = Synthesized(pipeline(alarm_topic_arn=topic)[1]).of_type("AWS::CloudWatch::Alarm").items()
    assert alarm["AlarmActions"] == [topic]
    assert (alarm["MetricName"], alarm["Threshold"]) == ("ExecutionsFailed", 1)


def test_the_bucket_is_closed(made):
    ((_, bucket),) = made.of_type("AWS::S3::Bucket").items()
    assert set(bucket["PublicAccessBlockConfiguration"].values()) == {True}
    ((_, policy),) = made.of_type("AWS::S3::BucketPolicy").items()
    denied = [s for s in policy["PolicyDocument"]["Statement"] if s["Effect"] == "Deny"]
    assert [s["Condition"] for s in denied] == [{"Bool": {"aws:SecureTransport": "false"}}]


def test_cdk_nag_and_cfn_lint_find_nothing(tmp_path):
    # Given both stacks, with inputs
    app, _ = pipeline(tmp_path, pipeline_inputs=INPUTS)
    cdk.Validations.of(app).add_plugins(cdk_nag.AwsSolutionsChecks(app))
    # When they are synthesized, nag included
    app.synth()
    # Then cfn-lint finds nothing but the output that passes on what the tracker's stack exports, and
    # the CDK's own habit of naming a role twice
    lint = subprocess.run(  # noqa: S603
        [
            *(Path(sys.executable).with_name("cfn-lint"), "--ignore-checks", "W3005", "W6001", "--"),
            tmp_path / "fanin-pipeline.template.json",
        ],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (lint.returncode, lint.stdout) == (0, "")


def test_without_the_setting_there_is_one_stack(tmp_path):
    import os

    # Given the app as it is, with and without the pipeline
    stacks = {}
    for wanted in ("false", "true"):
        context = json.dumps({"pipeline": wanted, "aws:cdk:bundling-stacks": []})
        environment = os.environ | {"CDK_OUTDIR": str(tmp_path / wanted), "CDK_CONTEXT_JSON": context}
        subprocess.run([sys.executable, "app.py"], cwd=ROOT, env=environment, check=True, capture_output=True)
        stacks[wanted] = sorted(path.name for path in (tmp_path / wanted).glob("*.template.json"))
    # Then `cdk deploy` alone deploys the tracker, unless the pipeline is asked for
    assert stacks == {
        "false": ["fanin.template.json"],
        "true": ["fanin-pipeline.template.json", "fanin.template.json"],
    }
