"""What a stack leaves behind when it is deleted: what CloudFormation did not make, or does not empty."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from functools import cached_property
from typing import Any, Final

from botocore.exceptions import ClientError

from fanin import names
from fanin.adapters.aws import client_factory, error_code, translated
from fanin.adapters.eventbridge import EventBridgeRules
from fanin.errors import Throttled

_GONE: Final = {
    "AWS.SimpleQueueService.NonExistentQueue",
    "NoSuchBucket",
    "QueueDoesNotExist",
    "ResourceNotFoundException",
}
_DELETING: Final = "DELETE_"
_STARTED: Final = ("STARTING", "STARTED")
_AT_REST: Final = ("CREATED", "STOPPED", "TERMINATED")
_POLL_SECONDS: Final = 5
_QUEUES_LISTED: Final = 1_000
"""Queues of a page, the most that SQS gives."""


class AwsLeftovers:
    """Objects of buckets, queues of buffers, and rules of routes. Deleting what is gone does no harm.

    Args:
        seconds_left: time that is left for all of it.
        sleep: waits for some seconds.
    """

    def __init__(
        self, seconds_left: Callable[[], float], sleep: Callable[[float], None] = time.sleep
    ) -> None:
        self._seconds_left, self._sleep = seconds_left, sleep

    def is_being_deleted(self, stack: str) -> bool:
        """Whether a stack is being deleted as a whole, and not just updated or rolled back.

        Args:
            stack: its id.
        """
        with translated():
            (found,) = self._client("cloudformation").describe_stacks(StackName=stack)["Stacks"]
        return bool(found["StackStatus"].startswith(_DELETING))

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
        with translated(), _unless_gone():
            while (state := self._state(client, application)) not in _AT_REST:
                self._check_time()
                if state in _STARTED and not ran:
                    client.stop_application(applicationId=application)
                    ran = True
                self._sleep(_POLL_SECONDS)
        return ran

    @staticmethod
    def _state(client: Any, application: str) -> str:
        return str(client.get_application(applicationId=application)["application"]["state"])

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
        pages = _pages(found)
        for url in [url for page in pages for url in page.get("QueueUrls", ())]:
            self._check_time()
            with translated(), _unless_gone():
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

    def _check_time(self) -> None:
        if self._seconds_left() <= 0:
            raise Throttled("the time is up; delete the stack again, which goes on with the rest")

    @cached_property
    def _clients(self) -> dict[str, Any]:
        return {}

    def _client(self, service: str) -> Any:
        if service not in self._clients:
            with translated():
                self._clients[service] = client_factory(service, read_timeout=30)()
        return self._clients[service]


def _pages(pages: Any) -> Iterator[Any]:
    """All pages; none of what is gone."""
    with translated(), _unless_gone():
        yield from pages


class _unless_gone:  # noqa: N801  it reads as a statement
    """Ends a block quietly if what it works on is gone."""

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> bool:
        return isinstance(error, ClientError) and error_code(error) in _GONE
