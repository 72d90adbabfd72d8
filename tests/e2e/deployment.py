"""What tests read of the deployed stack: resources, rows, events on the bus, and logs."""

import json
import os
import signal
import subprocess
import time
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import contextmanager
from functools import cache, cached_property
from pathlib import Path
from typing import Any, TypeVar

import boto3
from botocore.exceptions import ClientError

from fanin import names
from fanin.local import Stack
from fanin.wire.actions import MESSAGE
from tests.slow_wire import SlowWire, slow_wire

T = TypeVar("T")


def eventually(look: Callable[[], T], within: float = 60) -> T:
    """Call ``look`` until its result is true, and return that; fails when the time is up."""
    deadline = time.monotonic() + within
    while not (found := look()):
        assert time.monotonic() < deadline, f"not true within {within} s; the last result was {found!r}"
        time.sleep(0.05)
    return found


def denied(call: Callable[[], object]) -> bool:
    try:
        call()
    except ClientError as error:
        return error.response["Error"]["Code"].startswith("AccessDenied")
    return False


def api_caller(stack: Stack) -> boto3.Session:
    """A user who may only call the API and use queues; root's signature would not be verified."""
    allowed = {"Effect": "Allow", "Action": ["execute-api:Invoke", "sqs:*"], "Resource": "*"}
    policy = json.dumps({"Version": "2012-10-17", "Statement": [allowed]})
    iam = stack.client("iam")
    iam.create_user(UserName="caller")
    iam.put_user_policy(UserName="caller", PolicyName="call", PolicyDocument=policy)
    key = iam.create_access_key(UserName="caller")["AccessKey"]
    return boto3.Session(key["AccessKeyId"], key["SecretAccessKey"], region_name=stack.region)


class Deployment:
    """A deployed stack.

    Its resources are named by their logical ids without hash: ``TrackerNotifierRetriesQueue`` is the queue
    for retries of the notifier.
    """

    def __init__(self, stack: Stack, name: str = "fanin") -> None:
        self.stack = stack
        self.name = name
        self.client = cache(stack.client)

    @cached_property
    def _resources(self) -> list[tuple[str, str, str]]:
        pages = self.client("cloudformation").get_paginator("list_stack_resources")
        return [
            (resource["ResourceType"], resource["LogicalResourceId"], resource["PhysicalResourceId"])
            for page in pages.paginate(StackName=self.name)
            for resource in page["StackResourceSummaries"]
        ]

    def _resource(self, kind: str, named: str) -> str:
        hash_digits = 8
        (found,) = (
            physical
            for of_kind, logical, physical in self._resources
            if of_kind == kind and logical[:-hash_digits] == named
        )
        return found

    def function(self, name: str) -> str:
        """Name of the function whose code is in this folder of functions/."""
        return self._resource("AWS::Lambda::Function", f"TrackerFunctions{_camel(name)}Function")

    def role(self, function: str) -> str:
        """Name of the role of this function."""
        return self._resource("AWS::IAM::Role", f"TrackerFunctions{_camel(function)}Role")

    def queue(self, name: str) -> str:
        """URL of a queue."""
        return self._resource("AWS::SQS::Queue", f"Tracker{name}")

    def invoke(self, function: str, event: object = None) -> Any:
        """Invoke a function, and return its answer."""
        answer = self.client("lambda").invoke(
            FunctionName=self.function(function), Payload=json.dumps(event or {})
        )
        payload = answer["Payload"].read()
        assert "FunctionError" not in answer, payload
        return json.loads(payload)

    def kill(self, function: str, root: Path) -> int:
        """Kill the processes that run a function, as a crash of their machine does; returns how many.

        Args:
            function: name of its folder.
            root: the root of the stack: other stacks on this machine have functions of the same name.
        """
        place = f"{root}/.fanin/tmp/ministack-lambda-{self.function(function)}-"
        listed = subprocess.run(
            ["ps", "-axww", "-o", "pid=,command="], capture_output=True, text=True, check=True
        )
        found = [int(line.split()[0]) for line in listed.stdout.splitlines() if place in line]
        for pid in found:
            os.kill(pid, signal.SIGKILL)
        return len(found)

    def session_of(self, function: str) -> boto3.Session:
        """A session with the credentials of a function's role."""
        role = self.client("iam").get_role(RoleName=self.role(function))["Role"]
        keys = self.client("sts").assume_role(RoleArn=role["Arn"], RoleSessionName="test")["Credentials"]
        return boto3.Session(
            keys["AccessKeyId"], keys["SecretAccessKey"], keys["SessionToken"], region_name=self.stack.region
        )

    @contextmanager
    def without_permission(self, function: str, action: str) -> Iterator[None]:
        """Deny a function's role some actions for a while, which simulates an outage."""
        statement = {"Effect": "Deny", "Action": action, "Resource": "*"}
        policy = {"RoleName": self.role(function), "PolicyName": "outage"}
        document = json.dumps({"Version": "2012-10-17", "Statement": [statement]})
        iam = self.client("iam")
        iam.put_role_policy(**policy, PolicyDocument=document)
        try:
            yield
        finally:
            iam.delete_role_policy(**policy)

    def renew(self, function: str) -> None:
        """Let a function forget what it remembers from call to call: others replace its processes."""
        functions, name = self.client("lambda"), self.function(function)
        variables = functions.get_function_configuration(FunctionName=name)["Environment"]["Variables"]
        new = {"Variables": {**variables, "RENEWED": str(time.time())}}
        functions.update_function_configuration(FunctionName=name, Environment=new)

    @contextmanager
    def on_a_slow_wire(self, function: str, timeout: int = 3) -> Iterator[SlowWire]:
        """Send a function's calls of DynamoDB through a proxy that keeps answers, and change its timeout."""
        functions, name = self.client("lambda"), self.function(function)
        before = functions.get_function_configuration(FunctionName=name)
        variables = before["Environment"]["Variables"]
        with slow_wire(self.stack.endpoint_url) as wire:
            slow = {"Variables": {**variables, "AWS_ENDPOINT_URL_DYNAMODB": wire.url}}
            functions.update_function_configuration(FunctionName=name, Timeout=timeout, Environment=slow)
            try:
                yield wire
            finally:
                functions.update_function_configuration(
                    FunctionName=name, Timeout=before["Timeout"], Environment={"Variables": variables}
                )

    @contextmanager
    def queue_attributes(self, url: str, **attributes: str) -> Iterator[None]:
        """Change attributes of a queue for a while, since tests cannot wait for the real timeouts."""
        sqs = self.client("sqs")
        before = sqs.get_queue_attributes(QueueUrl=url, AttributeNames=list(attributes))["Attributes"]
        sqs.set_queue_attributes(QueueUrl=url, Attributes=attributes)
        try:
            yield
        finally:
            sqs.set_queue_attributes(QueueUrl=url, Attributes=before)

    def messages(self, url: str) -> int:
        """Number of messages in a queue, including invisible and delayed ones."""
        counts = self.client("sqs").get_queue_attributes(QueueUrl=url, AttributeNames=["All"])
        return sum(
            int(value)
            for name, value in counts["Attributes"].items()
            if name.startswith("ApproximateNumberOfMessages")
        )

    def receive(self, url: str) -> list[dict[str, Any]]:
        """Receive messages from a queue, and delete them."""
        sqs = self.client("sqs")
        answer = sqs.receive_message(QueueUrl=url, MaxNumberOfMessages=10, MessageAttributeNames=["All"])
        messages = answer.get("Messages", [])
        for message in messages:
            sqs.delete_message(QueueUrl=url, ReceiptHandle=message["ReceiptHandle"])
        return messages

    def rows(self, table: str) -> list[dict[str, Any]]:
        """All rows of a table, in DynamoDB's form."""
        pages = self.client("dynamodb").get_paginator("scan")
        return [row for page in pages.paginate(TableName=table) for row in page["Items"]]

    def row(self, batch_id: int) -> dict[str, Any]:
        """The row of a batch, in DynamoDB's form."""
        answer = self.client("dynamodb").get_item(
            TableName=self.stack.batches_table, Key={"batch_id": {"N": str(batch_id)}}, ConsistentRead=True
        )
        return answer["Item"]

    def age(self, batch_id: int, seconds: int, *, ttl: int) -> None:
        """Make the last activity of a batch this old; it is due so many seconds after it."""
        touched_at = int((time.time() - seconds) * 1000)
        self.client("dynamodb").update_item(
            TableName=self.stack.batches_table,
            Key={names.BATCH_ID: {"N": str(batch_id)}},
            UpdateExpression="SET touched_at = :touched_at, due_at = :due_at",
            ExpressionAttributeValues={
                ":touched_at": {"N": str(touched_at)},
                ":due_at": {"N": str(touched_at + ttl * 1000)},
            },
        )

    def metrics(self, function: str, since: float) -> dict[str, float]:
        """Sums of the metrics that a function wrote to its log.

        The emulator may keep the last lines of a worker until its next invocation; each has its own time.

        Args:
            function: name of its folder.
            since: seconds since the epoch.
        """
        sums: dict[str, float] = {}
        for line in self._log(function, since):
            entry = json.loads(line) if line.startswith('{"_aws"') else {"_aws": {"CloudWatchMetrics": []}}
            if entry["_aws"].get("Timestamp", 0) < since * 1000:
                continue
            for group in entry["_aws"]["CloudWatchMetrics"]:
                for metric in group["Metrics"]:
                    values = entry[metric["Name"]]
                    sums[metric["Name"]] = sums.get(metric["Name"], 0) + sum(values)
        return sums

    def actions(self, since: float, of: str = "api") -> list[dict[str, Any]]:
        """The lines of the action log.

        Args:
            since: seconds since the epoch.
            of: name of the function's folder.
        """
        lines = (line for line in self._log(of, since) if line.startswith("{"))
        return [entry for entry in map(json.loads, lines) if entry.get("message") == MESSAGE]

    def _log(self, function: str, since: float) -> Iterable[str]:
        functions = self.client("lambda")
        group = functions.get_function_configuration(FunctionName=self.function(function))["LoggingConfig"]
        pages = self.client("logs").get_paginator("filter_log_events")
        for page in pages.paginate(logGroupName=group["LogGroup"], startTime=int(since * 1000)):
            for event in page["events"]:
                yield event["message"].strip()


class Subscriber:
    """A queue that gets all events of the bus by a rule, as an application would have one."""

    def __init__(self, deployment: Deployment) -> None:
        stack = deployment.stack
        self._deployment = deployment
        self._events: dict[int | None, list[dict[str, Any]]] = {}
        self._alone: set[int] = set()
        sqs, events = deployment.client("sqs"), deployment.client("events")
        self._url = sqs.create_queue(QueueName=f"{deployment.name}-subscriber")["QueueUrl"]
        arn = sqs.get_queue_attributes(QueueUrl=self._url, AttributeNames=["QueueArn"])["Attributes"][
            "QueueArn"
        ]
        allowed = {
            "Effect": "Allow",
            "Principal": {"Service": "events.amazonaws.com"},
            "Action": "sqs:SendMessage",
            "Resource": arn,
        }
        policy = json.dumps({"Version": "2012-10-17", "Statement": [allowed]})
        sqs.set_queue_attributes(QueueUrl=self._url, Attributes={"Policy": policy})
        pattern = json.dumps({"source": ["fanin"]})
        events.put_rule(Name="subscriber", EventBusName=stack.bus, EventPattern=pattern)
        targets = [{"Id": "queue", "Arn": arn}]
        events.put_targets(Rule="subscriber", EventBusName=stack.bus, Targets=targets)

    def told_of(self, batch_id: int) -> list[dict[str, Any]]:
        """The events of a batch so far."""
        return self._told([batch_id])[batch_id]

    def _told(self, batch_ids: Iterable[int]) -> dict[int, list[dict[str, Any]]]:
        while messages := self._deployment.receive(self._url):
            for event in (json.loads(message["Body"]) for message in messages):
                self._events.setdefault(event["detail"].get("batch_id"), []).append(event)
        return {batch_id: self._events.get(batch_id, []) for batch_id in batch_ids}

    def only_event_of(self, batch_id: int, within: float = 60) -> dict[str, Any]:
        """The one event of a batch, but for those before its end; fails if it is late, or not alone."""
        return self.only_events_of([batch_id], within)[batch_id]

    def only_events_of(self, batch_ids: Collection[int], within: float = 60) -> dict[int, dict[str, Any]]:
        """The one event of each batch, as ``only_event_of``.

        ``close`` checks once more, after all tests, that no second event has followed.
        """
        eventually(lambda: all(self._ends(batch_ids).values()), within)
        self._alone.update(batch_ids)
        return {batch_id: events[0] for batch_id, events in self._no_other_of(batch_ids).items()}

    def ends_of(self, batch_ids: Collection[int], within: float) -> dict[int, dict[str, Any]]:
        """What each batch's event says, which may come again, but only the same; fails if one is late.

        That is what is promised. In a long run, and on a busy machine, AWS's services and SDKs do repeat.
        """
        eventually(lambda: all(self.end_events(batch_ids).values()), within)
        ends = {}
        for batch_id, events in self.end_events(batch_ids).items():
            ends[batch_id] = events[0]["detail"]
            assert all(event["detail"] == ends[batch_id] for event in events), events
        return ends

    def end_events(self, batch_ids: Iterable[int]) -> dict[int, list[dict[str, Any]]]:
        """The events so far that say how each batch ended; events of stalls are left out."""
        kinds = {*names.DETAIL_TYPES.values()}
        return {
            batch_id: [event for event in events if event["detail-type"] in kinds]
            for batch_id, events in self._told(batch_ids).items()
        }

    def _ends(self, batch_ids: Iterable[int]) -> dict[int, list[dict[str, Any]]]:
        """The events of each batch so far, but for those before its end."""
        early = names.EARLY_TYPES.values()
        return {
            batch_id: [event for event in events if event["detail-type"] not in early]
            for batch_id, events in self._told(batch_ids).items()
        }

    def close(self) -> None:
        """Check that no batch that should have one event has got a second one since."""
        time.sleep(0.5)  # a second event of the last test would arrive by now
        self._no_other_of(self._alone)

    def _no_other_of(self, batch_ids: Iterable[int]) -> dict[int, list[dict[str, Any]]]:
        told = self._ends(batch_ids)
        assert {batch_id: events for batch_id, events in told.items() if len(events) != 1} == {}
        return told


def _camel(name: str) -> str:
    return "".join(word.title() for word in name.split("_"))
