"""Why a batch is not finished, on the deployed service: what SQS, Lambda and the tables really say."""

import io
import json
import uuid
import zipfile
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from fanin import names
from fanin.types import Code, Diagnosis, Finding, Known, Severity
from tests.e2e.deployment import eventually

IDLE = "def handler(event, context): return None"
BROKEN = "def handler(event, context): raise ValueError('no such customer')"


def finding(diagnosis: Diagnosis, code: Code) -> Finding | None:
    return next((one for one in diagnosis.findings if one.code is code), None)


def sent(tracker, queue_url: str, count: int = 3, **options: Any) -> int:
    with tracker.batch(**options) as batch:
        batch.send(queue_url, [str(n) for n in range(count)])
    return int(batch.id)


@pytest.fixture
def role(stack) -> str:
    """A role that a consumer of the test's own takes."""
    trust = {"Effect": "Allow", "Principal": {"Service": "lambda.amazonaws.com"}, "Action": "sts:AssumeRole"}
    name = f"consumer-{uuid.uuid4()}"
    iam = stack.client("iam")
    arn: str = iam.create_role(
        RoleName=name, AssumeRolePolicyDocument=json.dumps({"Version": "2012-10-17", "Statement": [trust]})
    )["Role"]["Arn"]
    allowed = {"Effect": "Allow", "Action": ["sqs:*", "logs:*"], "Resource": "*"}
    policy = json.dumps({"Version": "2012-10-17", "Statement": [allowed]})
    iam.put_role_policy(RoleName=name, PolicyName="all", PolicyDocument=policy)
    return arn


@pytest.fixture
def consume(stack, role: str) -> Iterator[Callable[..., tuple[str, str]]]:
    """Makes a function of some code and maps a queue to it; gives its name and the id of the mapping."""
    client = stack.client("lambda")
    made: list[tuple[str, str]] = []

    def make(queue_url: str, code: str, *, enabled: bool = True) -> tuple[str, str]:
        body = io.BytesIO()
        with zipfile.ZipFile(body, "w") as archive:
            archive.writestr("index.py", code)
        name = f"consumer-{uuid.uuid4()}"
        client.create_function(
            FunctionName=name,
            Runtime="python3.13",
            Role=role,
            Handler="index.handler",
            Code={"ZipFile": body.getvalue()},
        )
        arn = stack.client("sqs").get_queue_attributes(QueueUrl=queue_url, AttributeNames=["QueueArn"])
        mapping = client.create_event_source_mapping(
            EventSourceArn=arn["Attributes"]["QueueArn"], FunctionName=name, BatchSize=10, Enabled=enabled
        )
        made.append((name, mapping["UUID"]))
        return made[-1]

    yield make
    for name, mapping in made:
        client.delete_event_source_mapping(UUID=mapping)
        client.delete_function(FunctionName=name)


def test_a_disabled_mapping_is_named(tracker, queue_url, consume):
    name, _ = consume(queue_url, IDLE, enabled=False)
    batch = sent(tracker, queue_url)

    diagnosis = tracker.why(batch)

    first = diagnosis.findings[0]
    assert (first.code, first.severity) == (Code.WAITING, Severity.ERROR)
    assert f"{name} (Disabled)" in first.detail
    assert [(one.range.start, one.range.stop, one.known) for one in diagnosis.missing] == [
        (0, 3, Known.WAITING)
    ]


def batch_why(tracker, batch_id: int) -> tuple[Finding, ...]:
    return tracker.why(batch_id).findings


def test_a_throttled_consumer_is_told(tracker, queue_url, consume, stack):
    """The emulator's mappings do not poll for a function without room, so the test invokes it instead."""
    # Given a consumer for which Lambda has no room, and which it has refused to invoke
    client = stack.client("lambda")
    name, _ = consume(queue_url, IDLE, enabled=False)
    client.put_function_concurrency(FunctionName=name, ReservedConcurrentExecutions=0)
    batch = sent(tracker, queue_url)
    for _ in range(3):
        with pytest.raises(client.exceptions.TooManyRequestsException):
            client.invoke(FunctionName=name, Payload=b"{}")
    # When somebody asks, Then the finding counts what Lambda's own metric counts
    found = eventually(lambda: finding(tracker.why(batch), Code.THROTTLED))
    assert (found.evidence["queue"], found.evidence["function"]) == (queue_url.rpartition("/")[2], name)
    assert found.evidence["throttles"] >= 3


def test_a_consumer_that_fails_as_a_whole_is_told_by_its_errors(tracker, queue_url, consume, stack):
    """The emulator's mappings do not count failed invocations, so the test makes one itself."""
    name, _ = consume(queue_url, BROKEN, enabled=False)
    batch = sent(tracker, queue_url)
    answer = stack.client("lambda").invoke(FunctionName=name, Payload=b"{}")
    assert "FunctionError" in answer

    found = eventually(lambda: finding(tracker.why(batch), Code.RETRYING))

    assert (found.title, found.evidence["function"]) == ("The consumer fails", name)


@pytest.mark.soak
def test_messages_past_the_retention_of_their_queue_have_expired(tracker, queue_url, stack):
    # Given a queue that keeps messages for as short as SQS allows, which is a minute
    stack.client("sqs").set_queue_attributes(QueueUrl=queue_url, Attributes={"MessageRetentionPeriod": "60"})
    batch = sent(tracker, queue_url)
    assert Code.EXPIRED not in [one.code for one in batch_why(tracker, batch)]
    # When nobody has received its messages for that long
    found = eventually(lambda: finding(tracker.why(batch), Code.EXPIRED), within=90)

    assert (found.severity, found.evidence["retention"]) == (Severity.ERROR, 60)
    assert [one.code for one in batch_why(tracker, batch)] == [Code.EXPIRED]


def test_a_queue_that_is_gone_and_a_batch_that_has_ended_say_so(tracker, queue_url, stack):
    batch = sent(tracker, queue_url)
    stack.client("sqs").delete_queue(QueueUrl=queue_url)

    found = finding(tracker.why(batch), Code.VANISHED)
    assert found is not None
    assert found.title == "The queue is gone"
    tracker.cancel(batch)
    assert [one.code for one in batch_why(tracker, batch)] == [Code.ENDED]


@pytest.mark.parametrize(
    ("action", "what"),
    [
        ("sqs:GetQueueAttributes", "its figures"),
        ("lambda:ListEventSourceMappings", "its event source mappings"),
    ],
)
def test_what_may_not_be_looked_at_is_a_finding_and_no_error(tracker, queue_url, deployment, action, what):
    batch = sent(tracker, queue_url)

    with deployment.without_permission("api", action):
        diagnosis = eventually(lambda: (seen := tracker.why(batch)) and finding(seen, Code.NOT_SEEN) and seen)

    found = finding(diagnosis, Code.NOT_SEEN)
    assert found is not None
    assert found.evidence["unseen"].startswith(f"{what} (AccessDenied")


def test_a_stall_is_told_once_by_the_deployed_reaper(tracker, queue_url, deployment, subscriber):
    # Given a batch whose messages nobody has received for longer than it takes to count as stalled
    batch = sent(tracker, queue_url, stall_after=60)
    deployment.age(batch, 100, ttl=60)
    # When the reaper comes by, often
    for _ in range(3):
        deployment.invoke("reaper")
    # Then the bus was told once, with the reason
    (event,) = eventually(lambda: subscriber.told_of(batch))
    assert event["detail-type"] == names.BATCH_STALLED
    assert event["detail"]["finding"]["code"] == "waiting"
    tracker.cancel(batch)
