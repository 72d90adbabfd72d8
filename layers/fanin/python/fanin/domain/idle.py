"""What a deployment costs in a month in which nothing happens.

A test computes the same from the template of the stack, so what is added there shows up here.
"""

from __future__ import annotations

from typing import Final

from fanin.domain.costs import ACCESS_LINE, BASE_MS, FAST_GB, PER_LINE, SLOW_GB
from fanin.domain.usage import Usage

ALARM_METRICS: Final = 36
"""Metrics that the alarms look at. CloudWatch bills each, also within metric math."""
DASHBOARDS: Final = 1
POLLED_QUEUES: Final = 10
"""Queues that feed a function."""
RATES: Final = 2
"""Functions that run at a rate, the reaper and the registrar."""

MONTH_SECONDS: Final = 30 * 86_400
RATE_SECONDS: Final = 300
POLLS_A_DAY: Final = 21_600
"""Requests to an empty queue that feeds a function: five pollers, which wait for 20 seconds each."""
RUN_READS: Final = 8
"""Read units of a run that finds nothing: 16 queries, one for each shard of the two live states."""
RUN_MS: Final = 80
"""Milliseconds of these queries, one after the other."""


def idle(
    *,
    alarm_metrics: int = ALARM_METRICS,
    dashboards: int = DASHBOARDS,
    polled_queues: int = POLLED_QUEUES,
    rates: int = RATES,
    rate_seconds: int = RATE_SECONDS,
    secrets: int = 0,
) -> Usage:
    """What an idle month consumes.

    Args:
        alarm_metrics: metrics of all alarms.
        dashboards: of the deployment.
        polled_queues: queues with an event source mapping.
        rates: functions that run at a rate.
        rate_seconds: seconds between two runs.
        secrets: of Secrets Manager; there is one with webhooks.
    """
    runs = rates * MONTH_SECONDS / rate_seconds
    return Usage(
        alarm_metrics=alarm_metrics,
        dashboards=dashboards,
        queue_requests=polled_queues * POLLS_A_DAY * MONTH_SECONDS / 86_400,
        invocations=runs,
        gb_seconds=runs * SLOW_GB * (BASE_MS + RUN_MS) / 1000,
        reads=runs * RUN_READS,
        secrets=secrets,
    )


TAKE_SECONDS: Final = 20
"""For which a take waits for work by default."""
POLL_SECONDS: Final = 2.5
"""Between two requests of a taker that has found nothing for long: pauses of up to 5 seconds, on average."""


def waiting_taker(*, in_the_service: bool = False) -> Usage:
    """What a taker over HTTPS consumes that waits for work for a month, in which there is none.

    Args:
        in_the_service: whether each of its requests waits in a function, as ``POST .../take`` with ``wait``
            does, instead of asking again, as the library does.
    """
    takes = MONTH_SECONDS / TAKE_SECONDS
    requests = takes if in_the_service else MONTH_SECONDS / POLL_SECONDS
    seconds = TAKE_SECONDS if in_the_service else 2 * BASE_MS / 1000
    return Usage(
        api_requests=requests,
        invocations=requests,
        gb_seconds=requests * FAST_GB * seconds,
        queue_requests=requests * (2 if in_the_service else 1),
        log_bytes=requests * (ACCESS_LINE + PER_LINE),
        writes=takes * (2 if in_the_service else 1),
    )
