"""What is deleted with a stack, and what of others is left alone."""

import json
import math
from collections.abc import Iterator
from typing import Any

import boto3
import pytest
from botocore.exceptions import ClientError
from botocore.stub import Stubber
from moto import mock_aws

from fanin.adapters.leftovers import AwsLeftovers
from fanin.errors import Throttled


@pytest.fixture(autouse=True)
def cloud() -> Iterator[None]:
    with mock_aws():
        yield


@pytest.fixture
def leftovers() -> AwsLeftovers:
    return AwsLeftovers(lambda: math.inf)


@pytest.fixture
def bucket() -> Any:
    made = boto3.resource("s3").Bucket("claims")
    made.create(CreateBucketConfiguration={"LocationConstraint": boto3.Session().region_name})
    return made


def test_all_objects_of_a_bucket_go_however_many_pages_they_take(leftovers):
    client = boto3.client("s3")
    leftovers._client = lambda _: client
    with Stubber(client) as stubber:
        for key, more in (("a", {"IsTruncated": True, "NextContinuationToken": "more"}), ("b", {})):
            asked = {"Bucket": "claims"} | ({} if more else {"ContinuationToken": "more"})
            stubber.add_response("list_objects_v2", {"Contents": [{"Key": key}] * 2, **more}, asked)
            objects = {"Objects": [{"Key": key}] * 2, "Quiet": True}
            stubber.add_response("delete_objects", {}, {"Bucket": "claims", "Delete": objects})
        assert leftovers.empty("claims") == 4
        stubber.assert_no_pending_responses()


def test_a_bucket_that_is_gone_is_empty(leftovers):
    assert leftovers.empty("gone") == 0
    assert leftovers.delete_rules("gone") == 0


def test_it_stops_in_time_and_goes_on_later(leftovers, bucket):
    bucket.put_object(Key="a", Body=b"x")
    with pytest.raises(Throttled, match="again"):
        AwsLeftovers(lambda: 0).empty("claims")
    assert leftovers.empty("claims") == 1
    assert list(bucket.objects.all()) == []
    assert leftovers.empty("claims") == 0


def test_queues_of_buffers_go_but_not_those_of_a_deployment_whose_prefix_begins_alike(leftovers):
    # Given the dead letters of two deployments, shop and shop-buffer-b, and a buffer of each
    sqs = boto3.client("sqs")

    def arn(name: str) -> str:
        url = sqs.create_queue(QueueName=name)["QueueUrl"]
        attributes = sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["QueueArn"])
        found: str = attributes["Attributes"]["QueueArn"]
        return found

    ours, theirs = arn("ours"), arn("theirs")
    for name, dead in (("shop-buffer-a", ours), ("shop-buffer-b-buffer-a", theirs)):
        policy = {"deadLetterTargetArn": dead, "maxReceiveCount": 10}
        sqs.create_queue(QueueName=name, Attributes={"RedrivePolicy": json.dumps(policy)})
    sqs.create_queue(QueueName="shop-buffer-of-a-user")
    # When shop is deleted
    assert leftovers.delete_queues("shop-buffer-", ours) == 1
    # Then the queues of others are there
    left = {url.rpartition("/")[2] for url in sqs.list_queues()["QueueUrls"]}
    assert left == {"ours", "theirs", "shop-buffer-b-buffer-a", "shop-buffer-of-a-user"}


def test_queues_are_listed_page_by_page_since_sqs_gives_only_the_first_thousand_otherwise(leftovers):
    client = boto3.client("sqs")
    leftovers._client = lambda _: client
    with Stubber(client) as stubber:
        asked: dict[str, Any] = {"QueueNamePrefix": "shop-buffer-", "MaxResults": 1_000}
        stubber.add_response("list_queues", {"QueueUrls": ["https://a"], "NextToken": "more"}, asked)
        stubber.add_response("list_queues", {"QueueUrls": ["https://b"]}, asked | {"NextToken": "more"})
        for url in ("https://a", "https://b"):
            policy = {"RedrivePolicy": json.dumps({"deadLetterTargetArn": "ours"})}
            stubber.add_response("get_queue_attributes", {"Attributes": policy})
            stubber.add_response("delete_queue", {}, {"QueueUrl": url})
        assert leftovers.delete_queues("shop-buffer-", "ours") == 2


def test_rules_of_routes_go_with_their_targets_and_no_others(leftovers):
    # Given rules of routes, and one of a user, on a bus; and one on the default bus
    events = boto3.client("events")
    events.create_event_bus(Name="shop")
    for name in ("fanin-route-orders", "fanin-route-returns", "mine"):
        events.put_rule(Name=name, EventBusName="shop", EventPattern=json.dumps({"source": ["a"]}))
        target = {"Id": "router", "Arn": "arn:aws:lambda:eu-west-1:123456789012:function:router"}
        events.put_targets(Rule=name, EventBusName="shop", Targets=[target])
    events.put_rule(Name="fanin-route-orders", EventPattern=json.dumps({"source": ["a"]}))

    assert leftovers.delete_rules("shop") == 2

    assert [rule["Name"] for rule in events.list_rules(EventBusName="shop")["Rules"]] == ["mine"]
    assert [rule["Name"] for rule in events.list_rules()["Rules"]] == ["fanin-route-orders"]


@pytest.mark.parametrize(
    ("state", "expected"),
    [
        ("DELETE_IN_PROGRESS", True),
        ("UPDATE_COMPLETE_CLEANUP_IN_PROGRESS", False),
        ("UPDATE_ROLLBACK_IN_PROGRESS", False),
        ("ROLLBACK_IN_PROGRESS", False),
    ],
)
def test_a_stack_is_deleted_only_if_it_is_deleted_as_a_whole(leftovers, state, *, expected):
    client = boto3.client("cloudformation")
    leftovers._client = lambda _: client
    stack = {"StackName": "fanin", "CreationTime": "2026-11-21T18:00:00Z", "StackStatus": state}
    with Stubber(client) as stubber:
        stubber.add_response("describe_stacks", {"Stacks": [stack]}, {"StackName": "stack-id"})
        assert leftovers.is_being_deleted("stack-id") is expected


def test_an_error_that_nobody_foresaw_is_raised(leftovers):
    client = boto3.client("s3")
    leftovers._client = lambda _: client
    with Stubber(client) as stubber:
        stubber.add_client_error("list_objects_v2", "Surprise")
        with pytest.raises(ClientError):
            leftovers.empty("claims")


class Application:
    """EMR Serverless with one application, which goes through states as it is looked at."""

    def __init__(self, *states: str) -> None:
        self._states, self.stops = list(states), 0

    def get_application(self, **_: str) -> dict[str, Any]:
        return {"application": {"state": self._states.pop(0)}}

    def stop_application(self, **_: str) -> None:
        self.stops += 1


@pytest.mark.parametrize(
    ("states", "stops"),
    [
        (("STARTED", "STOPPING", "STOPPED"), 1),
        (("STARTING", "STARTED", "STOPPING", "STOPPED"), 1),
        (("STOPPING", "STOPPED"), 0),
        (("CREATED",), 0),
    ],
)
def test_an_application_that_runs_is_stopped_and_waited_for(monkeypatch, states, stops):
    # Given
    emr, pauses = Application(*states), list[float]()
    leftovers = AwsLeftovers(lambda: math.inf, pauses.append)
    monkeypatch.setattr(leftovers, "_client", lambda _: emr)
    # When
    ran = leftovers.stop_application("00f1")
    # Then EMR Serverless lets it be deleted
    assert (ran, emr.stops, len(pauses)) == (stops > 0, stops, len(states) - 1)


def test_an_application_that_does_not_stop_in_time_is_told():
    leftovers = AwsLeftovers(lambda: 0)
    application = Application("STOPPING")
    leftovers._client = lambda _: application
    with pytest.raises(Throttled, match="again"):
        leftovers.stop_application("00f1")


def test_limits_are_lifted_from_a_table_and_then_from_its_indexes_and_others_stay():
    # Given a table and an index with limits, and an index without
    limited = {"OnDemandThroughput": {"MaxReadRequestUnits": 9, "MaxWriteRequestUnits": 5}}
    lifted = {"OnDemandThroughput": {"MaxReadRequestUnits": 9, "MaxWriteRequestUnits": -1}}

    def described(state: str) -> dict[str, Any]:
        indexes = [
            {"IndexName": "by_key", "IndexStatus": "ACTIVE", **limited},
            {"IndexName": "by_state", "IndexStatus": state, "OnDemandThroughput": {}},
        ]
        return {"Table": {"TableStatus": "ACTIVE", "GlobalSecondaryIndexes": indexes, **limited}}

    pauses = list[float]()
    leftovers = AwsLeftovers(lambda: math.inf, pauses.append)
    client = boto3.client("dynamodb")
    leftovers._client = lambda _: client
    table = {"TableName": "batches"}
    with Stubber(client) as stubber:
        stubber.add_response("describe_table", described("UPDATING"), table)
        stubber.add_response("describe_table", described("ACTIVE"), table)
        stubber.add_response("update_table", {}, table | lifted)
        stubber.add_response("describe_table", described("ACTIVE"), table)
        changes = [{"Update": {"IndexName": "by_key", **lifted}}]
        stubber.add_response("update_table", {}, table | {"GlobalSecondaryIndexUpdates": changes})
        # When the limit of writes is taken back
        assert leftovers.lift_limits("batches", ["MaxWriteRequestUnits"]) == 2
        # Then each change waited until the one before was made
        stubber.assert_no_pending_responses()
    assert len(pauses) == 1


def test_a_table_without_limits_is_left_alone(leftovers):
    boto3.client("dynamodb").create_table(
        TableName="words",
        KeySchema=[{"AttributeName": "id", "KeyType": "HASH"}],
        AttributeDefinitions=[{"AttributeName": "id", "AttributeType": "S"}],
        BillingMode="PAY_PER_REQUEST",
    )
    assert leftovers.lift_limits("words", ["MaxWriteRequestUnits", "MaxReadRequestUnits"]) == 0
