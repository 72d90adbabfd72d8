"""The queue of targets: each message is a job to tell one target of the end of its batch."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, Final

from fanin import names
from fanin.app.targets.delivery import JobOutcome
from fanin.app.targets.records import TargetJob
from fanin.entry.observe import count, logger
from fanin.entry.partial_batch import TARGETS, SqsRecord, partial_batch_response, pause
from fanin.entry.unhandled import Postpone
from fanin.errors import FaninError

_METRICS: Final = {
    JobOutcome.DELIVERED: names.METRIC_TARGETS_DELIVERED,
    JobOutcome.AGAIN: names.METRIC_TARGETS_FAILED,
    JobOutcome.PARKED: names.METRIC_TARGETS_PARKED,
}


def deliver_targets(
    event: SqsRecord, deliver: Callable[[TargetJob], JobOutcome], postpone: Postpone
) -> dict[str, Any]:
    """Do the jobs of an event, each on its own; those that failed come again after a pause that grows.

    Args:
        event: what Lambda hands over from the queue of targets.
        deliver: does a job.
        postpone: changes when messages come again.

    Returns:
        The partial batch response: jobs to do again.
    """
    again = [
        (message, pause(message, TARGETS)) for message in event["Records"] if not _done(message, deliver)
    ]
    try:
        postpone(again)
    except Exception:  # noqa: BLE001  the messages come again all the same
        logger.exception("not postponed: messages come again after the timeout of their queue")
    return partial_batch_response(message["messageId"] for message, _ in again)


def _done(message: SqsRecord, deliver: Callable[[TargetJob], JobOutcome]) -> bool:
    told = {"message_id": message["messageId"]}
    try:
        job = TargetJob.decode(json.loads(message["body"]))
        told |= {"batch_id": job.batch_id, "target": job.number}
        outcome = deliver(job)
    except FaninError as error:
        logger.warning("target not told", extra={**told, "code": error.code})
        return False
    except Exception:  # noqa: BLE001  a defect, which this one job brought to light
        logger.exception("target not told", extra=told)
        return False
    if outcome in _METRICS:
        count(_METRICS[outcome])
    if outcome in {JobOutcome.AGAIN, JobOutcome.PARKED}:
        logger.warning("target not told", extra={**told, "outcome": outcome.value})
    return outcome is not JobOutcome.AGAIN
