"""The queues of jobs: redrives, scatters with their replies, and targets.

Each message is handled on its own, so that one that fails holds up no other.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from fanin import names
from fanin.app.redrives.records import WORK_MS
from fanin.app.targets.delivery import JobOutcome
from fanin.app.targets.records import TargetJob
from fanin.entry.http.validation import parse
from fanin.entry.observe import count, logger
from fanin.entry.partial_batch import TARGETS, SqsRecord, partial_batch_response
from fanin.entry.unhandled import Postpone, postpone_all
from fanin.errors import FaninError
from fanin.wire.patterns import REPLIES

if TYPE_CHECKING:  # each function imports the one that it needs
    from fanin.app.api import Scatters
    from fanin.app.redrives.redrive import RedriveService
    from fanin.app.scatters.service import ScatterService


def handle_each(event: SqsRecord, handle: Callable[[SqsRecord], None]) -> dict[str, Any]:
    """Handle each message on its own, and return those that failed to the queue.

    Args:
        event: what Lambda hands over.
        handle: handles a message; whatever it raises is logged, and holds up no other message.

    Returns:
        The partial batch response: messages that failed.
    """
    failed: list[str] = []
    for message in event["Records"]:
        message_id = message["messageId"]
        try:
            handle(message)
        except FaninError as error:
            logger.warning("message failed", extra={"message_id": message_id, "code": error.code})
            failed.append(message_id)
        except Exception:  # noqa: BLE001  a defect that one message brings to light must spare the others
            logger.exception("message failed", extra={"message_id": message_id})
            failed.append(message_id)
    return partial_batch_response(failed)


def redrive(event: SqsRecord, redrives: RedriveService, now: Callable[[], int]) -> dict[str, Any]:
    """Go on with redrives.

    A job puts the next one on the queue only after it has got a page further, so that the chain of jobs ends
    with the failures. One that cannot get further comes again, and at last becomes a dead letter.

    Args:
        event: what Lambda hands over from the queue of redrives.
        redrives: does the work.
        now: tells the time, ms.

    Returns:
        The partial batch response: jobs to run again.
    """

    def go_on(message: SqsRecord) -> None:
        job = json.loads(message["body"])
        redrives.work(job["batch_id"], job["redrive"], job["owner"], until=now() + WORK_MS)

    return handle_each(event, go_on)


def run_jobs(event: SqsRecord, scatters: ScatterService) -> dict[str, Any]:
    """Run jobs: each sends a scatter's message to one chunk of its recipients, or lists the recipients.

    Args:
        event: what Lambda hands over from the queue of jobs.
        scatters: does the work.

    Returns:
        The partial batch response: jobs to run again.
    """

    def run(message: SqsRecord) -> None:
        job = json.loads(message["body"])
        sent = scatters.work(job["batch_id"], job["chunk"], job["wave"])
        count(names.METRIC_SENT, sent.sent)
        count(names.METRIC_UNREACHED, sent.refused)

    return handle_each(event, run)


def gather_replies(event: SqsRecord, scatters: Scatters) -> dict[str, Any]:
    """Take replies from the reply queue.

    Args:
        event: what Lambda hands over; each body is that of ``POST /v1/replies``.
        scatters: stores the replies.

    Returns:
        The partial batch response. It includes poison messages, so that the queue's redrive policy moves
        them to the dead-letter queue.
    """

    def gather(message: SqsRecord) -> None:
        receipts = scatters.reply(parse(REPLIES, message["body"]))
        count(names.METRIC_REPLIES, sum(receipt.first for receipt in receipts))

    return handle_each(event, gather)


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
    again = [message for message in event["Records"] if not _done(message, deliver)]
    postpone_all(again, TARGETS, postpone)
    return partial_batch_response(message["messageId"] for message in again)


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
