"""Jobs of the function that calls targets back: one for each target of a batch that has ended.

A job carries the event, so that the target is told the same also if the batch is removed meanwhile. It
carries neither tokens nor URLs.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from fanin import names
from fanin.app.ports import Ports
from fanin.app.ports.events import Event
from fanin.app.ports.queues import ChannelNotice
from fanin.domain.batch import Batch, State


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
        return {
            "batch_id": self.batch_id,
            "target": self.number,
            "since": self.since,
            "once": self.once,
            "succeeded": self.notice.succeeded,
            "id": event.id,
            "detail_type": event.detail_type,
            "time": event.time,
            "detail": event.detail,
        }

    @classmethod
    def decode(cls, job: Mapping[str, Any]) -> TargetJob:
        """Read a job.

        Raises:
            KeyError, TypeError: it is not one.
        """
        event = Event(job["id"], job["detail_type"], job["detail"], job["time"])
        return cls(
            job["batch_id"], job["target"], ChannelNotice(event, job["succeeded"]), job["since"], job["once"]
        )


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
    ports.target_jobs.send(
        TargetJob(batch.batch_id, number, notice, now, number in once).encode() for number in numbers
    )


def succeeded(batch: Batch, event: Event) -> bool:
    """Whether a batch ended ``complete`` and no item failed; the event of the end has counted them.

    Of what is told before the end, progress alone is a success.
    """
    if event.detail_type in names.EARLY_TYPES.values():
        return event.detail_type == names.EARLY_TYPES["progress"]
    return batch.state is State.COMPLETE and not event.detail["failed"] and not event.detail["failed_more"]
