"""Roles of producers, consumers and functions on the deployed stack: they can do their work and nothing else.

The emulator verifies signatures, and decides by the same patterns of method and path that the grants write.
``tests/infra`` has what each grant and each function allows; here is whether that is enforced.
"""

import json
import re
from collections.abc import Callable

import boto3
import pytest
from botocore.exceptions import ClientError

from fanin import Tracker
from fanin.client.https.api import HttpsApi
from fanin.client.https.services import HttpsServices
from fanin.client.https.transport import SigV4, Urllib3Transport
from fanin.client.sqs import sqs_client
from fanin.domain.access import AccessGroup
from fanin.errors import AccessDenied
from fanin_cdk.route_paths import paths_of
from tests.e2e.deployment import denied, eventually


@pytest.fixture(scope="session")
def session_with(stack) -> Callable[..., boto3.Session]:
    """Makes a role with statements, and a session of it."""
    iam, sts = stack.client("iam"), stack.client("sts")
    trust = {"Effect": "Allow", "Principal": {"AWS": "*"}, "Action": "sts:AssumeRole"}

    def make(name: str, *statements: dict[str, object], session: str = "one") -> boto3.Session:
        document = json.dumps({"Version": "2012-10-17", "Statement": [trust]})
        try:
            arn = iam.create_role(RoleName=name, AssumeRolePolicyDocument=document)["Role"]["Arn"]
        except iam.exceptions.EntityAlreadyExistsException:
            arn = iam.get_role(RoleName=name)["Role"]["Arn"]
        policy = json.dumps({"Version": "2012-10-17", "Statement": list(statements)})
        iam.put_role_policy(RoleName=name, PolicyName="granted", PolicyDocument=policy)
        keys = sts.assume_role(RoleArn=arn, RoleSessionName=session)["Credentials"]
        return boto3.Session(
            keys["AccessKeyId"], keys["SecretAccessKey"], keys["SessionToken"], region_name=stack.region
        )

    return make


@pytest.fixture(scope="session")
def granted(stack) -> Callable[..., dict[str, object]]:
    """The statement that ``tracker.grant_...`` writes for groups."""
    (api_id,) = re.findall(r"/execute-api/([^/]+)", stack.api_url)

    def statement(*groups: AccessGroup) -> dict[str, object]:
        arn = f"arn:aws:execute-api:{stack.region}:000000000000:{api_id}/$default"
        resources = [f"{arn}/{path}" for path in paths_of(groups)]
        return {"Effect": "Allow", "Action": ["execute-api:Invoke"], "Resource": resources}

    return statement


@pytest.fixture
def tracker_of(stack, local_environment) -> Callable[[boto3.Session], Tracker]:
    """Makes trackers over the API with a session's credentials."""

    def make(session: boto3.Session) -> Tracker:
        sign = SigV4(session, stack.region)
        api = HttpsApi(stack.api_url, sign=sign, transport=Urllib3Transport(read_timeout=120))
        return Tracker(HttpsServices(api), lambda: sqs_client(session), stack.ack_queue_url)

    return make


def test_a_producer_and_a_consumer_run_a_batch_together(tracker_of, session_with, granted):
    # Given a producer and a consumer with their groups alone
    producer = tracker_of(session_with("importer", granted(AccessGroup.PRODUCE)))
    consumer = tracker_of(session_with("worker", granted(AccessGroup.CONSUME)))
    # When one opens, adds and closes, and the other acknowledges and fails
    with producer.batch(user_key="together") as batch:
        group = batch.add(3)
    consumer.fail(group[0], "why")
    receipts = consumer.ack([group[1], group[2]])
    # Then the batch is complete, and both may look at it, but neither at failures, nor the consumer cancel
    assert receipts[0].complete
    assert consumer.status(batch.id).batch.state == producer.status(batch.id).batch.state == "complete"
    for call in (consumer.failures, producer.failures, consumer.cancel, consumer.close, producer.verify):
        with pytest.raises(AccessDenied):
            call(batch.id)
    # And a producer that breaks off ends its own batch
    with pytest.raises(RuntimeError), producer.batch(user_key="broken") as broken:
        raise RuntimeError
    assert producer.status(broken.id).batch.state == "cancelled"


def test_a_consumer_through_the_queue_can_acknowledge_and_nothing_else(
    stack, tracker, tracker_of, session_with
):
    # Given what grant_consumer(via="queue") writes
    arn = stack.client("sqs").get_queue_attributes(QueueUrl=stack.ack_queue_url, AttributeNames=["QueueArn"])
    send = {"Effect": "Allow", "Action": ["sqs:SendMessage"], "Resource": arn["Attributes"]["QueueArn"]}
    session = session_with("through-the-queue", send)
    with tracker.batch(user_key="queued") as batch:
        group = batch.add(2)
    # When it acknowledges through the queue, then the batch completes
    tracker_of(session).ack_later(group)
    eventually(lambda: tracker.status(batch.id).batch.state == "complete")
    # And neither the API nor a table is open to it
    with pytest.raises(AccessDenied):
        tracker_of(session).status(batch.id)
    dynamodb = session.client("dynamodb", endpoint_url=stack.endpoint_url)
    with pytest.raises(ClientError, match="AccessDenied"):
        dynamodb.query(
            TableName=stack.parts_table,
            KeyConditionExpression="batch_id = :id",
            ExpressionAttributeValues={":id": {"N": "0"}},
        )


def test_a_batch_and_a_key_belong_to_the_role_that_the_gateway_has_verified(
    tracker_of, session_with, granted, subscriber
):
    # Given two sessions of one role, and another role
    statement = granted(AccessGroup.PRODUCE)
    one, two = (tracker_of(session_with("nightly", statement, session=name)) for name in ("one", "two"))
    other = tracker_of(session_with("weekly", statement))
    # When all open a batch under one key, with one body
    first, again, theirs = (who.open(user_key="keyed", key="run-7") for who in (one, two, other))
    # Then the role has one batch, in the name of the session that opened it, and the other role its own
    assert first.batch_id == again.batch_id != theirs.batch_id
    assert first.opened_by == again.opened_by
    assert first.opened_by.endswith(":assumed-role/nightly/one")
    assert theirs.opened_by.endswith(":assumed-role/weekly/one")
    # And the event of its end says so
    two.cancel(first.batch_id)
    event = subscriber.only_event_of(first.batch_id)
    assert event["detail"]["opened_by"] == first.opened_by


def test_everybody_who_is_not_allowed_is_refused_by_the_tables_too(stack, caller, deployment):
    # Given a user who may call the API, the role of a function that reads batches, and root
    root = boto3.Session(stack.access_key_id, stack.secret_access_key, region_name=stack.region)
    row = {"TableName": stack.batches_table, "Item": {"batch_id": {"N": "0"}}}

    def refused(session: boto3.Session) -> list[bool]:
        dynamodb = session.client("dynamodb", endpoint_url=stack.endpoint_url)
        keys = {"Keys": [{"batch_id": {"N": "0"}}]}
        calls: list[Callable[[], object]] = [
            lambda: dynamodb.batch_get_item(RequestItems={stack.batches_table: keys}),
            lambda: dynamodb.put_item(**row, ConditionExpression="attribute_exists(nothing)"),
            lambda: dynamodb.scan(TableName=stack.batches_table),
        ]
        return [denied(call) for call in calls]

    # Then each may do what its policy says
    assert refused(caller) == [True, True, True]
    assert refused(deployment.session_of("acks")) == [False, True, True]
    assert refused(root) == [False, False, False]
