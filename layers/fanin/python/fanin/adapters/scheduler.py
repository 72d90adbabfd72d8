"""One-time alarms, as schedules of EventBridge Scheduler that delete themselves after they fire."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from fanin.adapters.aws import ignoring, once, translated
from fanin.adapters.backoff import Backoff
from fanin.app.ports.system import Clock
from fanin.errors import Throttled

if TYPE_CHECKING:
    from mypy_boto3_scheduler import EventBridgeSchedulerClient


@dataclass(frozen=True, slots=True)
class Schedules:
    """Where the schedules of alarms are kept, and which function they call.

    Attributes:
        group: name of the schedule group.
        role_arn: role that may call the timer function.
        timer_arn: the timer function.
        dead_letter_arn: queue for calls that never reached the function.
    """

    group: str
    role_arn: str
    timer_arn: str
    dead_letter_arn: str


class SchedulerTimers:
    """A ``Timers`` in a schedule group.

    Args:
        schedules: gives the settings, at each call; what it raises is raised there.
        clock: tells which times are past; an alarm for such a time is set for a second from now.
        client: makes the client, when first used.
        backoff: waits between tries, while other processes set or clear the same alarm.
    """

    def __init__(
        self,
        schedules: Callable[[], Schedules],
        clock: Clock,
        client: Callable[[], EventBridgeSchedulerClient] | None = None,
        *,
        backoff: Backoff | None = None,
    ) -> None:
        self._schedules = schedules
        self._clock = clock
        self._client = once(client, "scheduler")
        self._backoff = backoff or Backoff(tries=5)

    def check(self) -> None:
        self._schedules()

    def set(self, batch_id: int, at: int) -> None:
        schedule = self._schedule(batch_id, at)
        for _ in self._backoff:
            # Between the two calls the old alarm may fire and delete itself.
            if self._done(self._client().create_schedule, schedule, "ConflictException"):
                return
            if self._done(self._client().update_schedule, schedule, "ResourceNotFoundException"):
                return
        raise Throttled(f"other calls are changing the alarm of batch {batch_id}; try again", retry_after=1)

    def clear(self, batch_id: int) -> None:
        schedule = {"Name": _name(batch_id), "GroupName": self._schedules().group}
        self._done(self._client().delete_schedule, schedule, "ResourceNotFoundException")

    def _schedule(self, batch_id: int, at: int) -> dict[str, Any]:
        schedules = self._schedules()
        seconds = max(-(-at // 1000), self._clock.now() // 1000 + 1)
        return {
            "Name": _name(batch_id),
            "GroupName": schedules.group,
            "ScheduleExpression": f"at({datetime.fromtimestamp(seconds, UTC):%Y-%m-%dT%H:%M:%S})",
            "ScheduleExpressionTimezone": "UTC",
            "FlexibleTimeWindow": {"Mode": "OFF"},
            "ActionAfterCompletion": "DELETE",
            "Target": {
                "Arn": schedules.timer_arn,
                "RoleArn": schedules.role_arn,
                "DeadLetterConfig": {"Arn": schedules.dead_letter_arn},
                "Input": json.dumps({"batch_id": batch_id}),
            },
        }

    @staticmethod
    def _done(call: Callable[..., object], arguments: dict[str, Any], otherwise: str) -> bool:
        with translated(), ignoring({otherwise}):
            call(**arguments)
            return True
        return False


def _name(batch_id: int) -> str:
    return f"fanin-{batch_id}"
