"""A stack that is deleted takes along what CloudFormation knows nothing of, and nothing of others."""

from pathlib import Path

import boto3
import pytest

from fanin.client.tracker import Tracker
from fanin.domain.directory import PutRoute
from fanin.local import CHECKOUT, INPUTS, App, down, up
from tests.e2e.deployment import eventually

pytestmark = pytest.mark.soak

HERE = Path(__file__).with_name("removal")
APP = App(HERE / "app.py", [*(CHECKOUT / name for name in INPUTS), HERE])


@pytest.mark.parametrize("removal", ["destroy", "retain"])
def test_what_is_in_the_way_goes_and_data_if_it_is_to_be_destroyed(tmp_path, removal):
    # Given a stack with a buffer, a route and an object in its bucket; and a queue of somebody else
    try:
        stack = up(tmp_path, auth=True, app=APP, context={"prefix": "gone", "removal": removal})
        keys = boto3.Session(stack.access_key_id, stack.secret_access_key, region_name=stack.region)
        tracker = Tracker.over_https(stack.api_url, session=keys)
        tracker.buffers.define("jobs", 5)
        tracker.routing.put(PutRoute("orders", {"source": ["shop"]}, "desk"))
        s3, sqs, events = stack.client("s3"), stack.client("sqs"), stack.client("events")
        bucket = stack.claims_bucket
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
        assert "gone" not in [bus["Name"] for bus in events.list_event_buses()["EventBuses"]]
        stays = removal == "retain"
        assert (bucket in [one["Name"] for one in s3.list_buckets()["Buckets"]]) is stays
        assert len(queues()) == (2 if stays else 1)
        assert "gone-buffer-of-somebody-else" in queues()
        # And tables that stay cannot be deleted by mistake
        tables = stack.client("dynamodb")
        assert bool(tables.list_tables()["TableNames"]) is stays
        if stays:
            with pytest.raises(tables.exceptions.ClientError, match="protect"):
                tables.delete_table(TableName=tables.list_tables()["TableNames"][0])
    finally:
        down(tmp_path)


def test_a_limit_of_tables_goes_when_its_setting_does(tmp_path):
    try:
        # Given a deployment whose tables have limits, which the emulator does not read from templates
        stack = up(tmp_path, auth=True, app=APP, context={"prefix": "gone", "table_max_writes": 20_000})
        tables = stack.client("dynamodb")
        for name in tables.list_tables()["TableNames"]:
            tables.update_table(TableName=name, OnDemandThroughput={"MaxWriteRequestUnits": 20_000})

        def limits() -> set[int]:
            described = [
                tables.describe_table(TableName=name)["Table"] for name in tables.list_tables()["TableNames"]
            ]
            return {one["OnDemandThroughput"]["MaxWriteRequestUnits"] for one in described}

        assert limits() == {20_000}
        # When it is deployed without
        up(tmp_path, auth=True, app=APP, context={"prefix": "gone"})
        # Then they are gone
        assert limits() == {-1}
    finally:
        down(tmp_path)
