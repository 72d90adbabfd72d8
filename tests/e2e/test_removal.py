"""A stack that is deleted takes along what CloudFormation knows nothing of, and nothing of others."""

from __future__ import annotations

from pathlib import Path

import boto3
import pytest

from fanin import names
from fanin.client.tracker import Tracker
from fanin.domain.routing import PutRoute
from fanin.local import emulator
from fanin.local.deploy import deploy, fingerprint
from fanin.local.outputs import describe
from fanin.local.stack import CHECKOUT, CONTEXT, EMULATOR_HOME, INPUTS
from fanin.local.synth import synthesize
from tests.e2e.deployment import eventually

pytestmark = [pytest.mark.emulator, pytest.mark.soak]

APP = Path(__file__).with_name("removal") / "app.py"


def test_nothing_is_left_of_a_stack_that_is_destroyed(tmp_path: Path) -> None:
    # Given a stack with a buffer, a route and an object in its bucket; and a queue of somebody else
    assembly = CHECKOUT / ".fanin" / "cdk.out" / "removal"
    inputs = [*(CHECKOUT / name for name in INPUTS), APP.parent]
    synthesize(APP, assembly, inputs=inputs, context={**CONTEXT, "prefix": "gone"})
    running = emulator.start(tmp_path, emulator.install(EMULATOR_HOME, print), auth=True)
    try:
        outputs = deploy(assembly, running.endpoint_url)
        stack = describe(
            running, outputs, log_file=emulator.log_file(tmp_path), fingerprint=fingerprint(assembly)
        )
        keys = boto3.Session(stack.access_key_id, stack.secret_access_key, region_name=stack.region)
        tracker = Tracker.over_https(stack.api_url, session=keys)
        tracker.buffers.define("jobs", 5)
        tracker.routing.put(PutRoute("orders", {"source": ["shop"]}, "desk"))
        s3, sqs, events = stack.client("s3"), stack.client("sqs"), stack.client("events")
        bucket = outputs[names.OUTPUT_CLAIMS_BUCKET]
        s3.put_object(Bucket=bucket, Key="days-2/x", Body=b"x")
        sqs.create_queue(QueueName="gone-buffer-of-somebody-else")

        def queues() -> list[str]:
            urls = sqs.list_queues(QueueNamePrefix="gone-buffer-").get("QueueUrls", [])
            return sorted(url.rpartition("/")[2] for url in urls)

        assert len(queues()) == 2

        # When the stack is deleted
        cloudformation = stack.client("cloudformation")
        (found,) = cloudformation.describe_stacks(StackName="gone")["Stacks"]
        cloudformation.delete_stack(StackName="gone")

        # Then it goes, with all of that
        def state() -> str:
            (one,) = cloudformation.describe_stacks(StackName=found["StackId"])["Stacks"]
            return "" if one["StackStatus"] == "DELETE_IN_PROGRESS" else str(one["StackStatus"])

        def failures() -> list[str]:
            told = cloudformation.describe_stack_events(StackName=found["StackId"])["StackEvents"]
            return [one["ResourceStatusReason"] for one in told if one["ResourceStatus"] == "DELETE_FAILED"]

        assert eventually(state, within=90) == "DELETE_COMPLETE", failures()
        assert bucket not in [one["Name"] for one in s3.list_buckets()["Buckets"]]
        assert queues() == ["gone-buffer-of-somebody-else"]
        assert "gone" not in [bus["Name"] for bus in events.list_event_buses()["EventBuses"]]
    finally:
        emulator.stop(tmp_path)
