"""What a stack leaves behind: what CloudFormation did not make, does not empty, or does not take back."""

import json
import time
from collections.abc import Callable, Iterator, Sequence
from functools import cache, partial
from typing import Any, Final

from fanin import names
from fanin.adapters.aws import MISSING, client_factory, ignoring, translated
from fanin.adapters.eventbridge import EventBridgeRules
from fanin.errors import Throttled

_GONE: Final = {*MISSING, "NoSuchBucket"}
_STARTED: Final = ("STARTING", "STARTED")
_AT_REST: Final = ("CREATED", "STOPPED", "TERMINATED")
_UNLIMITED: Final = -1
_POLL_SECONDS: Final = 5
_QUEUES_LISTED: Final = 1_000
"""Queues of a page, the most that SQS gives."""


class AwsLeftovers:
    """Objects of buckets, queues of buffers, rules of routes, and limits of tables.

    Deleting what is gone does no harm.

    Args:
        seconds_left: time that is left for all of it.
        sleep: waits for some seconds.
    """

    def __init__(
        self, seconds_left: Callable[[], float], sleep: Callable[[float], None] = time.sleep
    ) -> None:
        self._seconds_left, self._sleep = seconds_left, sleep
        self._client = cache(translated()(lambda service: client_factory(service, read_timeout=30)()))

    def is_being_deleted(self, stack: str) -> bool:
        """Whether a stack is being deleted as a whole, and not just updated or rolled back.

        Args:
            stack: its id.
        """
        with translated():
            (found,) = self._client("cloudformation").describe_stacks(StackName=stack)["Stacks"]
        return bool(found["StackStatus"].startswith("DELETE_"))

    def stop_application(self, application: str) -> bool:
        """Stop an application of EMR Serverless, and wait for it: only then can it be deleted.

        It stops by itself some minutes after its last job. See "DeleteApplication", Amazon EMR Serverless API
        Reference.

        Returns:
            Whether it ran.

        Raises:
            Throttled: the time is up; call again.
            FaninError: a job is still running; cancel it, and call again.
        """
        client, ran = self._client("emr-serverless"), False
        look = partial(client.get_application, applicationId=application)
        with translated(), ignoring(_GONE):
            while (state := look()["application"]["state"]) not in _AT_REST:
                self._check_time()
                if state in _STARTED and not ran:
                    client.stop_application(applicationId=application)
                    ran = True
                self._sleep(_POLL_SECONDS)
        return ran

    def empty(self, bucket: str) -> int:
        """Delete all objects of a bucket.

        Returns:
            How many there were.

        Raises:
            Throttled: the time is up; call again.
        """
        client, deleted = self._client("s3"), 0
        for page in _pages(client.get_paginator("list_objects_v2").paginate(Bucket=bucket)):
            objects = [{"Key": one["Key"]} for one in page.get("Contents", ())]
            if not objects:
                continue
            self._check_time()
            answer = client.delete_objects(Bucket=bucket, Delete={"Objects": objects, "Quiet": True})
            if refused := answer.get("Errors"):
                raise Throttled(f"{len(refused)} objects were not deleted ({refused[0]['Code']}); try again")
            deleted += len(objects)
        return deleted

    def delete_queues(self, prefix: str, dead_letters: str) -> int:
        """Delete the queues that were made for buffers.

        Args:
            prefix: of their names. Queues of another deployment may begin with it, too.
            dead_letters: ARN of the queue that takes the dead letters of exactly the queues to delete.

        Returns:
            How many there were.

        Raises:
            Throttled: the time is up; call again.
        """
        client, deleted = self._client("sqs"), 0
        # Unless asked for pages, SQS lists 1,000 queues and does not say that there are more.
        size = {"PageSize": _QUEUES_LISTED}
        found = client.get_paginator("list_queues").paginate(QueueNamePrefix=prefix, PaginationConfig=size)
        for url in [url for page in _pages(found) for url in page.get("QueueUrls", ())]:
            self._check_time()
            with translated(), ignoring(_GONE):
                asked = client.get_queue_attributes(QueueUrl=url, AttributeNames=["RedrivePolicy"])
                policy = json.loads(asked.get("Attributes", {}).get("RedrivePolicy", "{}"))
                if policy.get("deadLetterTargetArn") == dead_letters:
                    client.delete_queue(QueueUrl=url)
                    deleted += 1
        return deleted

    def delete_rules(self, bus: str) -> int:
        """Delete the rules of routes on a bus.

        Returns:
            How many there were.

        Raises:
            Throttled: the time is up; call again.
        """
        found = self._client("events").get_paginator("list_rules")
        pages = _pages(found.paginate(EventBusName=bus, NamePrefix=names.ROUTE_RULE))
        routes = [one["Name"].removeprefix(names.ROUTE_RULE) for page in pages for one in page["Rules"]]
        rules = EventBridgeRules(lambda: bus, lambda: "", lambda: self._client("events"))
        for route in routes:
            self._check_time()
            rules.delete(route)
        return len(routes)

    def lift_limits(self, table: str, fields: Sequence[str]) -> int:
        """Take back limits of the throughput of a table and of its indexes.

        A table keeps a limit that is no longer in its template. The schema of CloudFormation has 1 as the
        least value, so only the API takes the -1 that lifts it; see "OnDemandThroughput", Amazon DynamoDB API
        Reference.

        Args:
            table: its name.
            fields: ``MaxReadRequestUnits``, ``MaxWriteRequestUnits``, or both.

        Returns:
            How many of them, the table and its indexes, were limited.

        Raises:
            Throttled: the time is up; call again.
        """
        client = self._client("dynamodb")
        with translated():
            described = self._active(client, table)
            limits = _limits(described, fields)
            if limits:
                client.update_table(TableName=table, OnDemandThroughput=limits)
                self._active(client, table)
            # DynamoDB takes changes of a table and of its indexes one after the other.
            indexes = [
                {"Update": {"IndexName": index["IndexName"], "OnDemandThroughput": of_index}}
                for index in described.get("GlobalSecondaryIndexes", ())
                if (of_index := _limits(index, fields))
            ]
            if indexes:
                client.update_table(TableName=table, GlobalSecondaryIndexUpdates=indexes)
        return bool(limits) + len(indexes)

    def _active(self, client: Any, table: str) -> dict[str, Any]:
        """The description of a table, once it and its indexes take a change."""
        while True:
            described: dict[str, Any] = client.describe_table(TableName=table)["Table"]
            indexes = described.get("GlobalSecondaryIndexes", ())
            if {described["TableStatus"], *(index["IndexStatus"] for index in indexes)} == {"ACTIVE"}:
                return described
            self._check_time()
            self._sleep(_POLL_SECONDS)

    def _check_time(self) -> None:
        if self._seconds_left() <= 0:
            raise Throttled("the time is up; do the same with the stack again, which goes on with the rest")


def _limits(described: dict[str, Any], fields: Sequence[str]) -> dict[str, int]:
    """The limits without those to lift; nothing if none of them is set, since such a change is refused."""
    limits: dict[str, int] = described.get("OnDemandThroughput", {})
    lifted = {field: _UNLIMITED for field in fields if limits.get(field, _UNLIMITED) != _UNLIMITED}
    return limits | lifted if lifted else {}


def _pages(pages: Any) -> Iterator[Any]:
    """All pages; none of what is gone."""
    with translated(), ignoring(_GONE):
        yield from pages
