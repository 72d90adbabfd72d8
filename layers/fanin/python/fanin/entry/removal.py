"""The custom resource that does for a stack what CloudFormation does not.

CloudFormation deletes neither a bucket with objects, nor what the service has made at run time: queues of
buffers, and rules of routes, which keep their bus from being deleted. EMR Serverless refuses to delete an
application that runs. And a table keeps a limit of its throughput that its template no longer has.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final, TypeAlias
from urllib.request import Request, urlopen

from fanin.entry.observe import logger

if TYPE_CHECKING:
    from fanin.adapters.leftovers import AwsLeftovers

RemovalEvent: TypeAlias = Mapping[str, Any]
"""A request of CloudFormation for a custom resource."""

_LONGEST_REASON: Final = 1_000
_ANSWER_SECONDS: Final = 30


def answer(url: str, body: bytes) -> None:
    """Tell CloudFormation how it went; it waits for an hour otherwise."""
    request = Request(url, data=body, method="PUT", headers={"Content-Type": ""})  # noqa: S310
    with urlopen(request, timeout=_ANSWER_SECONDS):  # noqa: S310  CloudFormation's own URL
        pass


def follow_stack(
    event: RemovalEvent, leftovers: AwsLeftovers, answer: Callable[[str, bytes], None] = answer
) -> None:
    """Clean up if the stack is being deleted, lift limits if it is updated, and tell CloudFormation.

    The resource alone may be removed by an update, when ``removal`` is set back to ``retain``, or by a
    rollback. Nothing is deleted then.

    Args:
        event: the request. Its ``ResourceProperties`` may have ``Application``, ``Buckets``,
            ``QueuePrefix`` with ``DeadLetters``, ``Bus``, and ``Tables`` with ``Unlimited``.
        leftovers: deletes and lifts.
        answer: sends the answer to CloudFormation.
    """
    told = {name: event[name] for name in ("StackId", "RequestId", "LogicalResourceId")}
    told["PhysicalResourceId"] = event.get("PhysicalResourceId") or event["LogicalResourceId"]
    told["Status"] = "SUCCESS"
    try:
        if event["RequestType"] == "Delete" and leftovers.is_being_deleted(event["StackId"]):
            _clean(event["ResourceProperties"], leftovers)
        elif event["RequestType"] == "Update":
            _lift(event["ResourceProperties"], leftovers)
    except Exception as error:  # noqa: BLE001  whatever it is, CloudFormation must hear of it
        logger.exception("the stack was not followed")
        told |= {"Status": "FAILED", "Reason": f"{type(error).__name__}: {error}"[:_LONGEST_REASON]}
    answer(event["ResponseURL"], json.dumps(told).encode())


def _clean(properties: Mapping[str, Any], leftovers: AwsLeftovers) -> None:
    done: dict[str, int] = {}
    if application := properties.get("Application"):
        done["applications"] = int(leftovers.stop_application(application))
    if bus := properties.get("Bus"):
        done["rules"] = leftovers.delete_rules(bus)
    if prefix := properties.get("QueuePrefix"):
        done["queues"] = leftovers.delete_queues(prefix, properties["DeadLetters"])
    for bucket in properties.get("Buckets", ()):
        done[bucket] = leftovers.empty(bucket)
    logger.info("cleaned up", extra={"deleted": done})


def _lift(properties: Mapping[str, Any], leftovers: AwsLeftovers) -> None:
    if fields := properties.get("Unlimited"):
        lifted = {table: leftovers.lift_limits(table, fields) for table in properties["Tables"]}
        logger.info("limits were lifted", extra={"lifted": lifted})
