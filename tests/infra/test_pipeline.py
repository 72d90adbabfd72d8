"""The stack of the Spark jobs: what they may do, what they run on, and when the audit does."""

import importlib.metadata
import json
import re
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

import aws_cdk as cdk
import pytest
from aws_cdk.assertions import Annotations, Match, Template

from fanin import names
from fanin_cdk import FaninStack, FaninTracker, Pipeline, PipelineNetwork, PipelineStack, Settings
from fanin_cdk.pipeline import PYTHON, requirements_for
from tests.infra.conftest import EVERYTHING, UNBUNDLED, Synthesized, everything

ROOT = Path(__file__).resolve().parents[2]
TOPIC = EVERYTHING["alarm_topic_arn"]


def pipeline(**settings: Any) -> PipelineStack:
    app = cdk.App(context=UNBUNDLED)
    tracker = FaninStack(app, "fanin", settings=Settings(pipeline=True, **settings)).tracker
    return PipelineStack(app, "fanin-pipeline", tracker=tracker)


@pytest.fixture(scope="session")
def made() -> Synthesized:
    """Without a network, with the rest of what the settings of a pipeline can name."""
    return everything().jobs


@pytest.fixture(scope="module")
def home() -> FaninTracker:
    """A tracker to which stacks of jobs are added that nobody synthesizes."""
    return FaninStack(cdk.App(context=UNBUNDLED), "fanin", settings=Settings(pipeline=True)).tracker


@pytest.fixture
def jobs(home: FaninTracker, monkeypatch: pytest.MonkeyPatch) -> Callable[..., PipelineStack]:
    """Makes a stack of jobs with other settings."""

    def make(**settings: Any) -> PipelineStack:
        monkeypatch.setattr(home, "settings", Settings(pipeline=True, **settings))
        return PipelineStack(home.node.root, f"jobs-{uuid.uuid4()}", tracker=home)

    return make


def application(stack: PipelineStack) -> dict[str, Any]:
    """Properties of the application of a stack that is not synthesized."""
    of = stack.pipeline.application
    names = ("release_label", "architecture", "maximum_capacity", "auto_stop_configuration")
    return {name: stack.resolve(getattr(of, name)) for name in (*names, "network_configuration")}


def test_the_application_is_as_the_settings_say(jobs):
    # Given other settings than the defaults
    stack = jobs(pipeline_release="emr-7.14.0", pipeline_max_vcpu=16, architecture="x86_64")
    # Then it runs that release, stops when idle, and never uses more vCPUs
    assert application(stack) == {
        "release_label": "emr-7.14.0",
        "architecture": "X86_64",
        "maximum_capacity": {"cpu": "16 vCPU", "memory": "128 GB", "disk": "320 GB"},
        "auto_stop_configuration": {"enabled": True, "idleTimeoutMinutes": 5},
        "network_configuration": None,
    }


@pytest.mark.parametrize(
    ("mode", "interfaces", "gateways"),
    [("none", set(), 0), ("endpoints", {"sqs", "scheduler", "logs"}, 0), ("nat", set(), 1)],
)
def test_jobs_get_the_network_that_the_settings_ask_for(made, mode, interfaces, gateways):
    # Given a setting
    made = made if mode == "none" else Synthesized(pipeline(pipeline_network=mode))
    ((_, application),) = made.of_type("AWS::EMRServerless::Application").items()
    # Then there is a VPC with a way to SQS, by endpoints or by NAT, or there is none
    endpoints = made.of_type("AWS::EC2::VPCEndpoint").values()
    found = {
        text(one["ServiceName"]).rpartition(".")[2]
        for one in endpoints
        if one["VpcEndpointType"] == "Interface"
    }
    assert found == interfaces
    assert len(made.of_type("AWS::EC2::NatGateway")) == gateways
    assert len(made.of_type("AWS::EC2::VPC")) == (mode != "none")
    if mode == "none":
        assert "NetworkConfiguration" not in application
        return
    # And S3 and DynamoDB need neither
    free = [text(one["ServiceName"]) for one in endpoints if one["VpcEndpointType"] == "Gateway"]
    assert sorted(name.rpartition(".")[2] for name in free) == ["dynamodb", "s3"]
    # And the jobs are in its private subnets, where nothing may connect to them
    network = application["NetworkConfiguration"]
    public = {name for name, one in made.of_type("AWS::EC2::Subnet").items() if one["MapPublicIpOnLaunch"]}
    assert len(network["SubnetIds"]) == 2
    assert not {subnet["Ref"] for subnet in network["SubnetIds"]} & public
    group = made.resources[network["SecurityGroupIds"][0]["Fn::GetAtt"][0]]["Properties"]
    assert "SecurityGroupIngress" not in group
    # And endpoints let the jobs in, on HTTPS, and nobody else
    ingress = list(made.of_type("AWS::EC2::SecurityGroupIngress").values())
    assert [(one["FromPort"], one["ToPort"]) for one in ingress] == [(443, 443)] * bool(interfaces)


def test_jobs_run_in_the_subnets_of_a_vpc_that_is_there(jobs):
    stack = jobs(pipeline_subnets="subnet-0a, subnet-0b", pipeline_security_groups="sg-0c")
    assert application(stack)["network_configuration"] == {
        "subnetIds": ["subnet-0a", "subnet-0b"],
        "securityGroupIds": ["sg-0c"],
    }


def test_a_network_is_in_the_zones_that_an_app_names():
    # Given a region in one of whose zones EMR Serverless is not
    stack = cdk.Stack(cdk.App(), "Mine", env=cdk.Environment(account="111122223333", region="us-east-1"))
    zones = ["us-east-1b", "us-east-1d", "us-east-1f"]
    stack.node.set_context(
        "availability-zones:account=111122223333:region=us-east-1", [f"us-east-1{zone}" for zone in "abcdef"]
    )
    network = PipelineNetwork(stack, "Network", availability_zones=zones)
    # Then it has a subnet in each of these, and endpoints there
    made = Synthesized(stack)
    subnets = made.of_type("AWS::EC2::Subnet").values()
    assert sorted(subnet["AvailabilityZone"] for subnet in subnets) == zones
    assert len(network.subnets) == len(zones)


def test_an_app_may_bring_a_network_and_is_warned_if_there_is_none(made):
    # Given a pipeline with a network of the app, and one without any
    app = cdk.App(context=UNBUNDLED)
    tracker = FaninStack(app, "fanin", settings=Settings()).tracker
    stack = cdk.Stack(app, "Mine")
    network = PipelineNetwork(stack, "Network", nat=True)
    Pipeline(stack, "Pipeline", tracker=tracker, network=network)
    # Then only the second one is warned about
    Template.from_stack(stack).resource_count_is("AWS::EC2::VPC", 1)
    warned = [Annotations.from_stack(one).find_warning("*", Match.any_value()) for one in (stack, made.stack)]
    assert [any("pipeline_network" in one.entry.data for one in found) for found in warned] == [False, True]


def test_jobs_are_told_where_the_tracker_is_and_what_they_run_on(made):
    # Given what a submit reads
    outputs = made.template.to_json()["Outputs"]
    conf = made.stack.pipeline.conf
    # Then every variable of the tracker is there, the Python that the dependencies are for, and no more
    prefix = "spark.emr-serverless.driverEnv."
    told = {name.removeprefix(prefix) for name in conf if name.startswith(prefix)}
    assert told == {
        *(name for name in told if name.startswith("FANIN_")),
        *("PYSPARK_PYTHON", "PYSPARK_DRIVER_PYTHON", "PYTHONPATH", "AWS_REGION", "AWS_DEFAULT_REGION"),
    }
    # And all processes of a job know the region, whichever SDK they use
    region = made.stack.region
    for kind in ("emr-serverless.driverEnv", "executorEnv"):
        assert [conf[f"spark.{kind}.{name}"] for name in ("AWS_REGION", "AWS_DEFAULT_REGION")] == [region] * 2
    assert {names.ENV_BATCHES_TABLE, names.ENV_WORDS_TABLE, names.ENV_PARTS_TABLE, names.ENV_BUS} <= told
    assert conf["spark.executorEnv.PYSPARK_PYTHON"] == f"python{PYTHON}"
    assert conf["spark.executorEnv.ARROW_ENABLE_UNSAFE_MEMORY_ACCESS"] == "true"
    assert set(outputs) >= {
        names.PIPELINE_OUTPUT_APPLICATION,
        names.PIPELINE_OUTPUT_AUDIT,
        names.PIPELINE_OUTPUT_BUCKET,
        names.PIPELINE_OUTPUT_CONF,
        names.PIPELINE_OUTPUT_ENTRY,
        names.PIPELINE_OUTPUT_PACKAGE,
        names.PIPELINE_OUTPUT_ROLE,
    }


@pytest.mark.parametrize(
    ("vcpu", "disk", "together", "executors"),
    [(8, 20, 160, 1), (16, 80, 320, 3), (18, 200, 800, 3), (64, 200, 3_200, 15)],
)
def test_all_executors_fit_in_with_their_disks(jobs, vcpu, disk, together, executors):
    # Given the vCPUs of the application, and disks that the settings name
    stack = jobs(pipeline_max_vcpu=vcpu, pipeline_disk_gb=disk)
    conf = stack.pipeline.conf
    # Then a driver and all executors fit in, each with the memory of a worker of four vCPUs
    assert conf["spark.executor.cores"] == "4"
    assert conf["spark.dynamicAllocation.maxExecutors"] == str(executors)
    assert (conf["spark.executor.memory"], conf["spark.executor.memoryOverhead"]) == ("12g", "4g")
    # And each executor has a disk, and the application takes those of all workers of four vCPUs
    assert conf["spark.emr-serverless.executor.disk"] == f"{disk}G"
    assert application(stack)["maximum_capacity"]["disk"] == f"{together} GB"


def test_a_list_of_hosts_reaches_the_scheduled_audit_as_one_word(made):
    # Given a list as people write it
    _, parameters = made.stack.pipeline.spark_submit.values()
    words = parameters.split(" ")
    # Then each word of the parameters is an option, or the value of one
    assert set(words[::2]) == {"--py-files", "--conf"}
    told = f"spark.emr-serverless.driverEnv.{names.ENV_WEBHOOK_HOSTS}=hooks.example.com,*.example.org"
    assert told in words[1::2]


def test_a_variable_with_a_blank_is_refused_and_named(home, jobs, monkeypatch):
    # Given a tracker with a variable that cannot stand in a line of parameters
    monkeypatch.setitem(home.environment, "FANIN_NOTE", "two words")
    with pytest.raises(ValueError, match=r"driverEnv\.FANIN_NOTE is 'two words'"):
        jobs()


def pinned(*files: str) -> dict[str, str]:
    texts = [(ROOT / "layers/spark" / name).read_text() for name in files]
    return dict(re.findall(r"^([a-z0-9-]+)==(\S+)", "\n".join(texts), re.MULTILINE))


def test_the_dependencies_are_pinned_as_they_are_tested():
    # Given what EMR gets for Spark 4, and what the tests run on
    wanted = pinned("common.in", "requirements.in")
    here = (ROOT / "pyproject.toml").read_text()
    # Then they agree, where the tests name a version
    for name, version in wanted.items():
        assert f'"{name}==' not in here or f'"{name}=={version}"' in here, name
    assert "pyspark" not in wanted
    # And they are what is installed here
    assert {name: importlib.metadata.version(name) for name in wanted} == wanted


@pytest.mark.parametrize(
    ("release", "file", "numpy"),
    [
        ("emr-7.14.0", "requirements-3.5.txt", "1"),
        ("emr-spark-8.0.0", "requirements.txt", "2"),
        ("emr-spark-8.1.0", "requirements.txt", "2"),
    ],
)
def test_each_release_gets_the_packages_that_its_spark_is_tested_with(release, file, numpy):
    # Given a release, and the packages that fit its Spark
    assert requirements_for(release) == file
    assert pinned(file)["numpy"].startswith(f"{numpy}.")
    # Then both files ask for the same packages, and the tests on Spark 3.5 install those of its file
    assert pinned("requirements.in").keys() == pinned("requirements-3.5.in").keys()
    makefile = (ROOT / "Makefile").read_text()
    assert "--require-hashes --requirement layers/spark/requirements-3.5.txt" in makefile


def test_the_audit_exports_both_tables_waits_and_runs(made):
    # Given the state machine
    ((_, machine),) = made.of_type("AWS::StepFunctions::StateMachine").items()
    states = json.loads(text(machine["DefinitionString"]))["States"]
    # Then each branch exports a table under a token of the execution, and looks until it is there
    for branch, table in zip(states["Export"]["Branches"], ("batches", "words"), strict=True):
        start = branch["States"][f"Export {table}"]
        assert start["Resource"] == "arn:ref:states:::aws-sdk:dynamodb:exportTableToPointInTime"
        assert "$$.Execution.Id" in start["Parameters"]["ClientToken.$"]
        # Both calls are made again when DynamoDB is busy: the token makes no second export
        for called in (start, branch["States"][f"Look at {table}"]):
            (again,) = called["Retry"]
            assert (again["ErrorEquals"], again["MaxAttempts"]) == (["States.TaskFailed"], 5)
        status = branch["States"][f"Is {table} there?"]
        assert [choice["Next"] for choice in status["Choices"]] == [f"Wait for {table}", f"{table} exported"]
        assert branch["States"][status["Default"]]["Type"] == "Fail"
    # And the job gets both folders, and the execution waits for its end
    audit = states["Audit"]
    assert audit["Resource"] == "arn:ref:states:::emr-serverless:startJobRun.sync"
    arguments = audit["Parameters"]["JobDriver"]["SparkSubmit"]["EntryPointArguments.$"]
    assert arguments.count("AWSDynamoDB/{}") == 2
    assert re.findall(r"'(--[a-z-]+)'", arguments) == [
        *("--batches-export", "--words-export", "--snapshot", "--output")
    ]
    assert "Retry" not in audit


def test_no_arn_names_a_partition_since_there_are_several(made, fanin):
    # Given both stacks, which may be deployed in China or GovCloud
    for one in (made, fanin):
        assert not re.findall(r"arn:aws[a-z-]*:", json.dumps(one.resources).replace(TOPIC, "of a setting"))


def test_the_audits_arguments_are_those_of_the_job(made):
    # Given the arguments that the state machine gives
    from fanin.spark.jobs.audit import JOB

    options = JOB.parser().parse_args(
        [
            *("--batches-export", "s3://b/1", "--words-export", "s3://b/2"),
            *("--snapshot", "s3://b/3", "--output", "s3://b/4"),
        ]
    )
    given = (options.batches_export, options.words_export, options.snapshot, options.output)
    assert given == ("s3://b/1", "s3://b/2", "s3://b/3", "s3://b/4")


def test_what_an_audit_read_is_deleted_and_what_it_found_is_kept(made):
    # Given where the audit writes
    ((_, machine),) = made.of_type("AWS::StepFunctions::StateMachine").items()
    arguments = text(machine["DefinitionString"])
    ((_, bucket),) = made.of_type("AWS::S3::Bucket").items()
    rules = bucket["LifecycleConfiguration"]["Rules"]
    expired = {rule["Prefix"]: rule["ExpirationInDays"] for rule in rules if "ExpirationInDays" in rule}
    # Then exports and copies of the tables go after a week, and the results stay
    assert expired == {"exports/": 7, "data/audits/snapshots/": 7, "code/": 90}
    assert "'--snapshot', States.Format('s3://ref/data/audits/snapshots/{}'" in arguments
    assert "'--output', States.Format('s3://ref/data/audits/{}'" in arguments


def test_a_log_group_that_was_retained_is_not_in_the_way_of_the_next_stack(made):
    # Given the log groups, of which those that are named outlive the stack
    named = [
        group["LogGroupName"]
        for group in made.of_type("AWS::Logs::LogGroup").values()
        if "LogGroupName" in group
    ]
    # Then their names have something of the stack's id, which no other stack has
    assert named
    assert all("AWS::StackId" in json.dumps(name) for name in named)


def text(joined: Any) -> str:
    """A string with its references by name."""
    return (
        joined
        if isinstance(joined, str)
        else "".join(part if isinstance(part, str) else "ref" for part in joined["Fn::Join"][1])
    )


def test_an_audit_that_does_not_succeed_is_told(made):
    alarms = made.of_type("AWS::CloudWatch::Alarm").values()
    assert all(alarm["AlarmActions"] == [TOPIC] and alarm["Threshold"] == 1 for alarm in alarms)
    assert {alarm["MetricName"] for alarm in alarms} == {
        *("ExecutionsFailed", "ExecutionsTimedOut", "ExecutionsAborted")
    }


def test_the_bucket_is_closed(made):
    ((_, bucket),) = made.of_type("AWS::S3::Bucket").items()
    assert set(bucket["PublicAccessBlockConfiguration"].values()) == {True}
    ((_, policy),) = made.of_type("AWS::S3::BucketPolicy").items()
    denied = [s for s in policy["PolicyDocument"]["Statement"] if s["Effect"] == "Deny"]
    assert [s["Condition"] for s in denied] == [{"Bool": {"aws:SecureTransport": "false"}}]
