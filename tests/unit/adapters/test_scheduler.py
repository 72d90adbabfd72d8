"""Alarms, on moto for what Scheduler does and on stubs for what it does seldom."""

import json
from collections.abc import Iterator
from typing import Any

import boto3
import pytest
from botocore.stub import Stubber
from moto import mock_aws

from fanin.adapters.backoff import Backoff
from fanin.adapters.memory import FixedClock
from fanin.adapters.scheduler import SchedulerTimers, Schedules
from fanin.errors import Throttled

NOW = 1_790_000_000_123  # 2026-09-21T14:13:20.123Z


def scheduler() -> Any:
    return boto3.client("scheduler")


def timers(client: Any) -> SchedulerTimers:
    return SchedulerTimers(
        lambda: Schedules(
            group="alarms",
            role_arn="arn:aws:iam::123456789012:role/r",
            timer_arn="arn:aws:lambda:eu-west-1:123456789012:function:timer",
            dead_letter_arn="arn:aws:sqs:eu-west-1:123456789012:dead",
        ),
        FixedClock(NOW),
        lambda: client,
        backoff=Backoff(tries=2, sleep=lambda _: None),
    )


@pytest.fixture
def aws() -> Iterator[Any]:
    with mock_aws():
        client = scheduler()
        client.create_schedule_group(Name="alarms")
        yield client


def schedules(client: Any) -> list[str]:
    return [schedule["Name"] for schedule in client.list_schedules(GroupName="alarms")["Schedules"]]


def test_an_alarm_calls_the_timer_function_with_the_batch_once(aws):
    timers(aws).set(7, NOW + 60_000)

    schedule = aws.get_schedule(Name="fanin-7", GroupName="alarms")
    assert schedule["ScheduleExpressionTimezone"] == "UTC"
    assert schedule["ActionAfterCompletion"] == "DELETE"
    assert schedule["FlexibleTimeWindow"] == {"Mode": "OFF"}
    assert json.loads(schedule["Target"]["Input"]) == {"batch_id": 7}
    assert schedule["Target"]["Arn"].endswith(":function:timer")
    assert schedule["Target"]["RoleArn"].endswith("role/r")
    assert schedule["Target"]["DeadLetterConfig"]["Arn"].endswith(":dead")


@pytest.mark.parametrize(
    ("at", "expression"),
    [
        (NOW + 60_000, "at(2026-09-21T14:14:21)"),  # never early
        (1_790_000_060_000, "at(2026-09-21T14:14:20)"),
        (NOW, "at(2026-09-21T14:13:21)"),
        (0, "at(2026-09-21T14:13:21)"),
    ],
)
def test_an_alarm_is_at_the_next_whole_second_and_never_in_the_past(aws, at, expression):
    timers(aws).set(7, at)

    assert aws.get_schedule(Name="fanin-7", GroupName="alarms")["ScheduleExpression"] == expression


def test_setting_it_again_moves_it(aws):
    timers(aws).set(7, NOW + 60_000)
    timers(aws).set(7, NOW + 120_000)

    assert schedules(aws) == ["fanin-7"]
    moved = aws.get_schedule(Name="fanin-7", GroupName="alarms")
    assert moved["ScheduleExpression"] == "at(2026-09-21T14:15:21)"
    assert moved["ActionAfterCompletion"] == "DELETE"


def test_an_alarm_is_deleted_whether_or_not_it_is_there(aws):
    timers(aws).set(7, NOW + 60_000)
    timers(aws).set(8, NOW + 60_000)

    timers(aws).clear(7)
    timers(aws).clear(7)

    assert schedules(aws) == ["fanin-8"]


def test_an_alarm_that_fires_between_the_calls_is_made_anew():
    client = scheduler()
    with Stubber(client) as aws:
        aws.add_client_error("create_schedule", "ConflictException")
        aws.add_client_error("update_schedule", "ResourceNotFoundException")
        aws.add_response("create_schedule", {"ScheduleArn": "arn"})

        timers(client).set(7, NOW)

        aws.assert_no_pending_responses()


def test_an_alarm_that_others_keep_changing_is_throttled():
    client = scheduler()
    with Stubber(client) as aws:
        for _ in range(2):
            aws.add_client_error("create_schedule", "ConflictException")
            aws.add_client_error("update_schedule", "ResourceNotFoundException")

        with pytest.raises(Throttled):
            timers(client).set(7, NOW)
