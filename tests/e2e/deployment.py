"""The deployed stack as tests look at it: its resources, its rows, what it told the bus, what it logged."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import contextmanager
from functools import cache, cached_property
from typing import Any, TypeVar

import boto3

from fanin.local import Stack

T = TypeVar("T")


def eventually(look: Callable[[], T], within: float = 20) -> T:
    """Look until there is something to see, and return it; fails when the time is up."""
    deadline = time.monotonic() + within
    while not (seen := look()):
        assert time.monotonic() < deadline, f"not within {within} s; the last look gave {seen!r}"
        time.sleep(0.1)
    return seen


class Deployment:
    """A deployed stack.

    Its resources go by the ids that the constructs give them: ``TrackerNotifierRetriesQueue`` is the queue
    of the notifier's retries.
    """

    def __init__(self, stack: Stack) -> None:
        self.stack = stack
        self.client = cache(stack.client)

    @cached_property
    def _resources(self) -> list[tuple[str, str, str]]:
        pages = self.client("cloudformation").get_paginator("list_stack_resources")
        return [
            (resource["ResourceType"], resource["LogicalResourceId"], resource["PhysicalResourceId"])
            for page in pages.paginate(StackName="fanin")
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
        """Name of the function in that folder."""
        return self._resource("AWS::Lambda::Function", f"TrackerFunctions{_camel(name)}Function")

    def role(self, function: str) -> str:
        """Name of that function's role."""
        return self._resource("AWS::IAM::Role", f"TrackerFunctions{_camel(function)}Role")

    def queue(self, name: str) -> str:
        """URL of a queue."""
        return self._resource("AWS::SQS::Queue", f"Tracker{name}")

    def invoke(self, function: str, event: object = None) -> Any:
        """Call a function as AWS would, and return its answer."""
        answer = self.client("lambda").invoke(
            FunctionName=self.function(function), Payload=json.dumps(event or {})
        )
        payload = answer["Payload"].read()
        assert "FunctionError" not in answer, payload
        return json.loads(payload)

    def session_of(self, function: str) -> boto3.Session:
        """A session with the credentials of a function's role."""
        role = self.client("iam").get_role(RoleName=self.role(function))["Role"]
        keys = self.client("sts").assume_role(RoleArn=role["Arn"], RoleSessionName="test")["Credentials"]
        return boto3.Session(
            keys["AccessKeyId"], keys["SecretAccessKey"], keys["SessionToken"], region_name=self.stack.region
        )

    @contextmanager
    def without_permission(self, function: str, action: str) -> Iterator[None]:
        """Take a permission from a function's role for a while: an outage of what it needs it for."""
        statement = {"Effect": "Deny", "Action": action, "Resource": "*"}
        policy = {"RoleName": self.role(function), "PolicyName": "outage"}
        document = json.dumps({"Version": "2012-10-17", "Statement": [statement]})
        iam = self.client("iam")
        iam.put_role_policy(**policy, PolicyDocument=document)
        try:
            yield
        finally:
            iam.delete_role_policy(**policy)

    @contextmanager
    def queue_attributes(self, url: str, **attributes: str) -> Iterator[None]:
        """Set attributes of a queue for a while: the real ones wait for minutes."""
        sqs = self.client("sqs")
        before = sqs.get_queue_attributes(QueueUrl=url, AttributeNames=list(attributes))["Attributes"]
        sqs.set_queue_attributes(QueueUrl=url, Attributes=attributes)
        try:
            yield
        finally:
            sqs.set_queue_attributes(QueueUrl=url, Attributes=before)

    def messages(self, url: str) -> int:
        """How many messages a queue holds, those that are hidden or delayed included."""
        counts = self.client("sqs").get_queue_attributes(QueueUrl=url, AttributeNames=["All"])
        return sum(
            int(value)
            for name, value in counts["Attributes"].items()
            if name.startswith("ApproximateNumberOfMessages")
        )

    def receive(self, url: str) -> list[dict[str, Any]]:
        """Take messages from a queue."""
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

    def metrics(self, function: str, since: float) -> dict[str, float]:
        """Sums of the metrics that a function wrote to its log.

        Args:
            function: name of its folder.
            since: seconds since the epoch.
        """
        sums: dict[str, float] = {}
        for line in self._log(function, since):
            entry = json.loads(line) if line.startswith('{"_aws"') else {"_aws": {"CloudWatchMetrics": []}}
            for group in entry["_aws"]["CloudWatchMetrics"]:
                for metric in group["Metrics"]:
                    values = entry[metric["Name"]]
                    sums[metric["Name"]] = sums.get(metric["Name"], 0) + sum(values)
        return sums

    def _log(self, function: str, since: float) -> Iterable[str]:
        functions = self.client("lambda")
        group = functions.get_function_configuration(FunctionName=self.function(function))["LoggingConfig"]
        pages = self.client("logs").get_paginator("filter_log_events")
        for page in pages.paginate(logGroupName=group["LogGroup"], startTime=int(since * 1000)):
            for event in page["events"]:
                yield event["message"].strip()


class Subscriber:
    """A queue that a rule feeds with all events of the bus, as somebody who waits for batches has it."""

    def __init__(self, deployment: Deployment) -> None:
        stack = deployment.stack
        self._deployment = deployment
        self._events: list[dict[str, Any]] = []
        self._alone: set[int] = set()
        sqs, events = deployment.client("sqs"), deployment.client("events")
        self._url = sqs.create_queue(QueueName="subscriber")["QueueUrl"]
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
        while messages := self._deployment.receive(self._url):
            self._events += [json.loads(message["Body"]) for message in messages]
        return [event for event in self._events if event["detail"].get("batch_id") == batch_id]

    def only_event_of(self, batch_id: int, within: float = 20) -> dict[str, Any]:
        """The event of a batch, which comes in time and alone."""
        return self.only_events_of([batch_id], within)[batch_id]

    def only_events_of(self, batch_ids: Collection[int], within: float = 20) -> dict[int, dict[str, Any]]:
        """The events of batches, of which each comes in time and alone.

        That no second one follows is looked at once, when all tests have run; see ``close``.
        """
        eventually(lambda: all(self.told_of(batch_id) for batch_id in batch_ids), within)
        self._alone.update(batch_ids)
        self._no_other_of(batch_ids)
        return {batch_id: self.told_of(batch_id)[0] for batch_id in batch_ids}

    def close(self) -> None:
        """See to it that no batch that was to have one event has got another since."""
        time.sleep(0.5)  # another one of the last test would be on its way by now
        self._no_other_of(self._alone)

    def _no_other_of(self, batch_ids: Collection[int]) -> None:
        told = {batch_id: self.told_of(batch_id) for batch_id in batch_ids}
        assert {batch_id: events for batch_id, events in told.items() if len(events) != 1} == {}


def _camel(name: str) -> str:
    return "".join(word.title() for word in name.split("_"))
