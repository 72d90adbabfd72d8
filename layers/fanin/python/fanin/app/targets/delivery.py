"""Delivering: one target is told, and its record says so.

At least once: the record is written after the target was told, so a crash in between tells it again. A target
whose record says that it was told is never told again, whatever jobs come.
"""

from enum import StrEnum

from fanin import names
from fanin.app.attention import look_again
from fanin.app.ports import Ports
from fanin.app.ports.queues import ChannelNotice, Outgoing
from fanin.app.targets.records import TargetJob, TargetRecord, change, read_targets
from fanin.domain.targets import PATIENCE_MS, Target, TargetState, TargetType
from fanin.errors import FaninError, ServiceUnavailable, TargetRefused
from fanin.wire.json_text import compact
from fanin.wire.json_types import encode_time

_TRIES = 5
MAX_ERROR = 256
"""Characters of an error that are kept."""


class JobOutcome(StrEnum):
    """What became of a job.

    Attributes:
        DELIVERED: the target was told now.
        NOTHING: there was nothing to do.
        AGAIN: the target did not take it; do the job again later.
        PARKED: it is not tried any more.
    """

    DELIVERED = "delivered"
    NOTHING = "nothing"
    AGAIN = "again"
    PARKED = "parked"


def deliver(ports: Ports, job: TargetJob) -> JobOutcome:
    """Do a job; may be repeated.

    Raises:
        Throttled, ServiceUnavailable: the table is overloaded; do the job again.
    """
    found = read_targets(ports.records, job.batch_id, [job.number])
    if not found or _has_heard(found[0], job):
        return JobOutcome.NOTHING
    (kept,) = found
    if not job.notice.early and not kept.target.wants(job.notice.succeeded):
        change(ports.records, job.batch_id, kept, state=TargetState.SKIPPED)
        return JobOutcome.NOTHING
    try:
        _tell(ports, kept.target, job.notice)
    except FaninError as error:
        outcome = _note(ports, job, kept, error)
    else:
        _mark(ports, job, kept)
        outcome = JobOutcome.DELIVERED
    if outcome is not JobOutcome.DELIVERED or kept.attempts:
        for batch in ports.batches.read([job.batch_id]).values():
            look_again(ports, batch)
    return outcome


def _has_heard(kept: TargetRecord, job: TargetJob) -> bool:
    """Whether a target needs not be told any more: of an end, or of this event before the end."""
    return job.notice.event.id in kept.told if job.notice.early else kept.state.settled


def _tell(ports: Ports, target: Target, notice: ChannelNotice) -> None:
    if target.type is not TargetType.SQS:
        ports.callbacks.call(target, notice)
        return
    attributes = {names.ATTRIBUTE_TYPE: notice.event.detail_type}
    offered = ports.channels.offer([Outgoing(target.queue_url or "", message_body(notice), attributes)])
    # A queue that refuses may be made, or tagged, again within the day.
    if why := offered.refused.get(0) or offered.waiting.get(0):
        raise ServiceUnavailable(f"the queue did not take the message: {why}")


def message_body(notice: ChannelNotice) -> str:
    """The event as the message of a queue, with the fields that EventBridge gives it."""
    event = notice.event
    about = {"id": event.id, "detail-type": event.detail_type, "source": event.source}
    detail = {**event.detail, "id": event.id}
    return compact({**about, "time": encode_time(event.time), "detail": detail})


def _mark(ports: Ports, job: TargetJob, kept: TargetRecord) -> None:
    """Record that the target was told; the first such mark stays."""
    now = ports.clock.now()
    for _ in range(_TRIES):
        later = change(
            ports.records,
            job.batch_id,
            kept,
            state=TargetState.DELIVERED,
            attempts=kept.attempts + 1,
            last_error=None,
            since=None,
            tried_at=None,
            delivered_at=now,
            told=[*kept.told, job.notice.event.id] if job.notice.early else kept.told,
        )
        if later is None or _has_heard(later, job):
            return
        kept = later  # a failed attempt of another job was noted meanwhile
    raise ServiceUnavailable(f"target {job.number} of batch {job.batch_id} changes all the time; try again")


def _note(ports: Ports, job: TargetJob, kept: TargetRecord, error: FaninError) -> JobOutcome:
    """Record a failed attempt. If another job has changed the record, its word stands."""
    now = ports.clock.now()
    given_up = isinstance(error, TargetRefused) or now - job.since >= PATIENCE_MS
    later = change(
        ports.records,
        job.batch_id,
        kept,
        state=TargetState.PARKED if given_up else TargetState.FAILED,
        attempts=kept.attempts + 1,
        last_error=str(error)[:MAX_ERROR],
        since=kept.since or now,
        tried_at=now,
    )
    if later is not None and _has_heard(later, job):
        return JobOutcome.NOTHING
    if given_up:
        return JobOutcome.PARKED
    return JobOutcome.NOTHING if job.once else JobOutcome.AGAIN
