"""The targets of a batch: checked when it is opened, kept beside it, and given to jobs when it has ended.

There is a record for each, ``target/<number>``, and not a part of the row: that is written often, and each
write costs by its size, so the row only says how many there are. The records are written before the row, and
outlive it, because a target is tried for a day after the end.

There is a job for each target of a batch that has ended. It carries the event, so that the target is told the
same also if the batch is removed meanwhile. It carries neither tokens nor URLs.
"""

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, Self

from fanin import names
from fanin.app.ports import Ports
from fanin.app.ports.events import Event
from fanin.app.ports.parts import TARGETS
from fanin.app.ports.queues import ChannelNotice
from fanin.app.ports.records import Record, Records
from fanin.domain import limits, targets
from fanin.domain.batch import Batch, State
from fanin.domain.targets import FIELD, MAX_TARGETS, Target, TargetReport, TargetState, TargetType, When
from fanin.errors import InvalidRequest, NotConfigured
from fanin.wire.batches import TARGET


def checked_targets(ports: Ports, on_end: Sequence[Target]) -> tuple[Target, ...]:
    """Check the targets of a request, and look up the queues among them.

    Returns:
        The targets, with the URLs of queues that were given by ARN.

    Raises:
        InvalidRequest: a target is not what its type needs, or there are more than five.
        ChannelRefused: a queue does not exist, is a FIFO queue, or does not carry the tag ``fanin:channel``.
        NotConfigured: this process does not know the stack's queue of targets.
    """
    if not on_end:
        return ()
    if len(on_end) > MAX_TARGETS:
        raise InvalidRequest(f"on_end has {len(on_end)} targets; a batch may have at most {MAX_TARGETS}")
    if not ports.defaults.targets:
        raise NotConfigured(
            f"on_end needs the stack's queue of targets: set {names.ENV_TARGETS_QUEUE_URL} to its output"
            " TargetsQueueUrl"
        )
    return tuple(_checked(ports, place, target) for place, target in enumerate(on_end))


def _checked(ports: Ports, place: int, target: Target) -> Target:
    what = f"on_end[{place}]"
    if not isinstance(target.type, TargetType) or not isinstance(target.when, When):
        raise InvalidRequest(f"{what} needs a type of {', '.join(TargetType)}, and when of {', '.join(When)}")
    needed = FIELD[target.type]
    given = [name for name in FIELD.values() if getattr(target, name) is not None]
    if given != [needed]:
        raise InvalidRequest(
            f"{what} has the type {target.type}, which needs {needed} and nothing else;"
            f" it has {' and '.join(given) or 'neither'}"
        )
    match target.type:
        case TargetType.STEP_FUNCTIONS:
            limits.text(f"{what}.task_token", target.task_token, targets.MAX_TASK_TOKEN, least=1)
        case TargetType.DURABLE_CALLBACK:
            given_id, most = target.callback_id, targets.MAX_CALLBACK_ID
            named = limits.text(f"{what}.callback_id", given_id, most, least=1)
            if not re.fullmatch(targets.CALLBACK_ID, named):
                raise InvalidRequest(f"{what}.callback_id is not one: it must be base64, as Lambda gives it")
        case TargetType.SQS:
            channel = limits.text(f"{what}.queue_url", target.queue_url, limits.MAX_CHANNEL, least=1)
            return replace(target, queue_url=ports.channels.resolve(channel))
        case TargetType.WEBHOOK:
            targets.parse_url(target.url or "", ports.defaults.webhook_hosts)
    return target


OUTLIVES: Final = 2 * 86_400
"""Seconds that the records outlive the row of their batch."""

_KEPT: Final = ("attempts", "last_error", "delivered_at", "since", "tried_at", "told")


@dataclass(frozen=True, slots=True)
class TargetRecord:
    """A target as it is stored.

    Attributes:
        number: place among the batch's targets.
        target: as it was declared, with the queue's URL in place of an ARN.
        state: how far it is.
        attempts: how often somebody tried it and noted the outcome.
        last_error: why the last attempt failed.
        delivered_at: when it was told, ms.
        since: when the attempts that failed began, ms.
        tried_at: when the last of them was, ms.
        told: ids of the events before the end that it was told of; of milestones there are several.
        version: of the record.
        expires_at: of the record, seconds.
    """

    number: int
    target: Target
    state: TargetState = TargetState.PENDING
    attempts: int = 0
    last_error: str | None = None
    delivered_at: int | None = None
    since: int | None = None
    tried_at: int | None = None
    told: Sequence[str] = ()
    version: int = 0
    expires_at: int = 0

    @classmethod
    def of(cls, record: Record) -> Self:
        value = record.value
        number, target = int(record.name.removeprefix(TARGETS)), TARGET.decode(value["target"])
        kept = {"state": TargetState(value["state"]), **{name: value[name] for name in _KEPT}}
        return cls(number, target, **kept, version=record.version, expires_at=record.expires_at)

    @property
    def value(self) -> dict[str, Any]:
        kept = {name: getattr(self, name) for name in _KEPT}
        return {"target": TARGET.encode(self.target), "state": self.state.value, **kept}

    @property
    def report(self) -> TargetReport:
        what = self.number, self.target.type, self.target.when, self.target.to, self.state
        tries = self.attempts, self.last_error, self.delivered_at, self.since, self.next_at
        return TargetReport(*what, *tries)

    @property
    def next_at(self) -> int | None:
        """When it is tried again at the latest; see ``fanin.entry.partial_batch.TARGETS``."""
        if self.state is not TargetState.FAILED or self.tried_at is None:
            return None
        pause = targets.FIRST_PAUSE << min(max(self.attempts - 1, 0), 32)
        return self.tried_at + min(targets.LONGEST_PAUSE, pause) * 1000


def put_targets(records: Records, batch: Batch, on_end: Sequence[Target]) -> bool:
    """Write the targets of a batch that is about to be opened; repeating it changes nothing.

    Returns:
        False if another batch that drew the same id has written targets of its own.
    """
    for number, target in enumerate(on_end):
        place = str(batch.batch_id), f"{TARGETS}{number}"
        value, until = TargetRecord(number, target).value, batch.expires_at + OUTLIVES
        record, written = records.put(*place, value, expires_at=until, if_version=0)
        if not written and (record is None or TargetRecord.of(record).target != target):
            return False
    return True


def read_targets(records: Records, batch_id: int, numbers: Sequence[int]) -> list[TargetRecord]:
    """Read targets, by number; those that are not there are left out."""
    found = records.read(str(batch_id), [f"{TARGETS}{number}" for number in numbers])
    return sorted((TargetRecord.of(record) for record in found.values()), key=lambda kept: kept.number)


def change(records: Records, batch_id: int, kept: TargetRecord, **changes: Any) -> TargetRecord | None:
    """Write a change, unless the record has changed since it was read.

    Returns:
        None if it was written. Otherwise the record as it is now: that of another process, or of this very
        write, if its answer was lost and the SDK has repeated it. A record that is gone counts as written.
    """
    place, value = (str(batch_id), f"{TARGETS}{kept.number}"), replace(kept, **changes).value
    until, version = kept.expires_at, kept.version
    record, written = records.put(*place, value, expires_at=until, if_version=version)
    return None if written or record is None else TargetRecord.of(record)


@dataclass(frozen=True, slots=True)
class TargetJob:
    """Tell one target of its batch.

    Attributes:
        batch_id: the batch.
        number: of the target.
        notice: what to tell.
        since: when the attempts began, ms; they end a day later.
        once: whether it is not done again if it fails: another job goes on then.
    """

    batch_id: int
    number: int
    notice: ChannelNotice
    since: int
    once: bool = False

    def encode(self) -> dict[str, object]:
        event = self.notice.event
        job = {"batch_id": self.batch_id, "target": self.number, "since": self.since, "once": self.once}
        told = {"id": event.id, "detail_type": event.detail_type, "time": event.time, "detail": event.detail}
        return {**job, "succeeded": self.notice.succeeded, **told}

    @classmethod
    def decode(cls, job: Mapping[str, Any]) -> Self:
        """Read a job.

        Raises:
            KeyError, TypeError: it is not one.
        """
        event = Event(job["id"], job["detail_type"], job["detail"], job["time"])
        notice = ChannelNotice(event, job["succeeded"])
        return cls(job["batch_id"], job["target"], notice, job["since"], job["once"])


def send_jobs(
    ports: Ports, batch: Batch, event: Event, numbers: Iterable[int], *, once: Collection[int] = ()
) -> None:
    """Put a job on the queue for each of these targets; repeating it makes no target hear more than once.

    Those that are to be tried ``once`` have another job, which goes on.

    Raises:
        Throttled: the queue did not take some of them; send all of them again.
    """
    notice = ChannelNotice(event, succeeded(batch, event))
    now = ports.clock.now()
    jobs = (TargetJob(batch.batch_id, number, notice, now, number in once) for number in numbers)
    ports.target_jobs.send(job.encode() for job in jobs)


def succeeded(batch: Batch, event: Event) -> bool:
    """Whether a batch ended ``complete`` and no item failed; the event of the end has counted them.

    Of what is told before the end, progress alone is a success.
    """
    if event.detail_type in names.EARLY_TYPES.values():
        return event.detail_type == names.EARLY_TYPES["progress"]
    return batch.state is State.COMPLETE and not event.detail["failed"] and not event.detail["failed_more"]
