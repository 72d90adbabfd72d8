"""The plain template deploys with CloudFormation and its zip files alone, and the stack tracks a batch."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import boto3
import pytest

from fanin import Tracker
from fanin.domain.batch import State
from fanin.local import aws, emulator
from fanin.local.aws import api_url
from fanin.local.stack import EMULATOR_HOME
from tests.e2e.deployment import eventually

pytestmark = pytest.mark.soak

BUCKET = "releases"
PREFIX = "ours/fanin/"


@pytest.fixture(scope="module")
def outputs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, dict[str, str]]]:
    """The stack of the template with the default settings, deployed by boto3: emulator, and outputs."""
    folder = tmp_path_factory.mktemp("template")
    release = folder / "release"
    subprocess.run(
        [sys.executable, "-m", "fanin_cdk.template", str(release)],
        cwd=folder,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(path for path in sys.path if path)},
        check=True,
        capture_output=True,
    )
    running = emulator.start(folder, emulator.install(EMULATOR_HOME, print))
    try:
        yield running.endpoint_url, deployed(release, running.endpoint_url)
    finally:
        emulator.stop(folder)


def deployed(release: Path, endpoint_url: str) -> dict[str, str]:
    """Do what the note in the release says, with boto3."""
    s3, cloudformation = aws.client("s3", endpoint_url), aws.client("cloudformation", endpoint_url)
    s3.create_bucket(Bucket=BUCKET)
    for asset in (release / "assets").iterdir():
        s3.upload_file(str(asset), BUCKET, PREFIX + asset.name)
    s3.upload_file(str(release / "template.json"), BUCKET, "template.json")
    cloudformation.create_stack(
        StackName="ours",
        TemplateURL=f"{endpoint_url}/{BUCKET}/template.json",
        Parameters=[
            {"ParameterKey": "AssetsBucket", "ParameterValue": BUCKET},
            {"ParameterKey": "AssetsPrefix", "ParameterValue": PREFIX},
        ],
        Capabilities=["CAPABILITY_IAM"],
    )
    waiter = cloudformation.get_waiter("stack_create_complete")
    waiter.wait(StackName="ours", WaiterConfig={"Delay": 1, "MaxAttempts": 300})
    (stack,) = cloudformation.describe_stacks(StackName="ours")["Stacks"]
    return {output["OutputKey"]: output["OutputValue"] for output in stack["Outputs"]}


def test_a_batch_is_tracked(outputs, monkeypatch):
    # Given clients that know the outputs
    endpoint, found = outputs
    keys = boto3.Session(aws.ACCESS_KEY, aws.SECRET_KEY, region_name=aws.REGION)
    monkeypatch.setenv("AWS_ENDPOINT_URL", endpoint)
    tracker = Tracker.over_https(
        api_url(endpoint, found["ApiUrl"]), session=keys, ack_queue_url=found["AckQueueUrl"]
    )
    # When work is sent, and acknowledged through the queue of acks
    with tracker.batch() as batch:
        batch.send(found["WorkQueueUrl"], [{"n": n} for n in range(70)])
    seen: list[int] = []
    consumer = tracker.consumer(
        found["WorkQueueUrl"], lambda message: seen.append(message.json()["n"]), via="queue"
    )
    consumer.run(until=lambda: len(seen) >= 70)
    # Then the functions of the stack complete the batch, once for each item
    eventually(lambda: tracker.status(batch.id).batch.state is State.COMPLETE)
    assert sorted(seen) == list(range(70))
    assert tracker.status(batch.id, exact=True).done_min == 70


def test_the_bucket_was_all_that_it_needed(outputs):
    # Given what the emulator has besides the stack
    endpoint, _ = outputs
    buckets = {bucket["Name"] for bucket in aws.client("s3", endpoint).list_buckets()["Buckets"]}
    # Then there is no bucket or parameter of the CDK
    assert not [name for name in buckets if name.startswith("cdk-")]
    parameters = aws.client("ssm", endpoint).describe_parameters()["Parameters"]
    assert json.dumps(parameters, default=str).count("cdk") == 0
