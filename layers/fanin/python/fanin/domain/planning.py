"""What a plan says beside the costs of fanin: other ways to know, an idle month, and quotas of an account.

A test computes the idle month from the template of the stack, so what is added there shows up here. Each
default of a quota is that of a large region such as us-east-1. See "Lambda quotas", "Amazon API Gateway
quotas", "Quotas in Amazon DynamoDB", "Amazon EventBridge quotas" and "Quotas for Amazon EventBridge
Scheduler".
"""

from dataclasses import dataclass
from math import ceil

from fanin.domain.costs import BASE_MS, FAST_GB, SLOW_GB, Cost, Usage

_EXPRESS_GB_SECONDS = 0.1 * 64 / 1024
"""Of an execution: 64 MB for 100 ms, the least that is billed; the work itself runs elsewhere."""
_CACHE_GB = 0.1
"""The least that ElastiCache Serverless for Valkey bills."""
_MONTH_HOURS = 730


def alternatives(items: int) -> list[Cost]:
    """Ways without fanin: each counts no more than the requests that it cannot do without.

    Args:
        items: number of items.
    """
    return [
        Cost(
            "counter in DynamoDB",
            Usage(writes=items + 1),
            "a message delivered twice counts twice; one row takes 1,000 writes a second",
        ),
        Cost(
            "row for each item in DynamoDB",
            Usage(writes=2 * items, reads=-(-items // 40)),
            "put, then update; 100 bytes a row, all read once at the end; something must poll",
        ),
        Cost(
            "Valkey, ElastiCache Serverless",
            Usage(cache_gb_hours=_CACHE_GB * _MONTH_HOURS, cache_units=2 * items),
            "the least for a month, in a VPC; a failover may lose writes that were answered",
        ),
        Cost(
            "Step Functions Express",
            Usage(express_requests=items, express_gb_seconds=items * _EXPRESS_GB_SECONDS),
            "an execution for each item, of 100 ms; it does not say when all are done",
        ),
        Cost(
            "Distributed Map, Express",
            Usage(transitions=items, express_requests=items, express_gb_seconds=items * _EXPRESS_GB_SECONDS),
            "an execution for each item, and a transition to start it; with items in batches cheaper",
        ),
        Cost(
            "Lambda durable functions",
            Usage(durable_operations=items),
            "a step for each item, of many executions; somebody must know when all have ended",
        ),
        Cost(
            "Step Functions Standard",
            Usage(transitions=items + 1),
            "one state for each item, also as Distributed Map; no retries",
        ),
    ]


MONTH_SECONDS = 30 * 86_400
POLLS_A_DAY = 21_600
"""Requests to an empty queue that feeds a function: five pollers, which wait for 20 seconds each."""
RUN_READS = 8
"""Read units of a run that finds nothing: 16 queries, one for each shard of the two live states."""
RUN_MS = 80
"""Milliseconds of these queries, one after the other."""


def idle(
    *,
    alarm_metrics: int = 36,
    dashboards: int = 1,
    polled_queues: int = 10,
    rates: int = 2,
    rate_seconds: int = 300,
    secrets: int = 0,
) -> Usage:
    """What an idle month consumes; by default, one of the stack as it is.

    Args:
        alarm_metrics: metrics that the alarms look at. CloudWatch bills each, also within metric math.
        dashboards: of the deployment.
        polled_queues: queues with an event source mapping.
        rates: functions that run at a rate, the reaper and the registrar.
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


@dataclass(frozen=True)
class Quota:
    """A quota of AWS.

    Attributes:
        service: the service.
        name: what Service Quotas calls it.
        default: how much an account has.
        unit: of what.
    """

    service: str
    name: str
    default: int
    unit: str


CONCURRENCY = Quota("Lambda", "Concurrent executions", 1_000, "invocations at a time")
REQUESTS = Quota("API Gateway", "Throttle rate", 10_000, "requests a second")
WRITES = Quota("DynamoDB", "Table-level write throughput limit", 40_000, "writes a second")
EVENTS = Quota(
    "EventBridge", "PutEvents throttle limit in transactions per second", 10_000, "events a second"
)
SCHEDULES = Quota("EventBridge Scheduler", "CreateSchedule request rate", 5_000, "deadlines a second")
ITEM_MS = 100
"""Milliseconds that a consumer works on an item. An assumption."""


def needs(way: Cost, items: int, *, rate: int, item_ms: int = ITEM_MS) -> dict[Quota, int]:
    """What consumers that acknowledge in some way take of each quota.

    Args:
        way: the whole cost of a batch.
        items: of the batch; each batch has an event at its end, and may have a deadline.
        rate: items done in a second, in the busiest second.
        item_ms: milliseconds that a consumer on Lambda works on an item.
    """
    second = way.usage.times(rate / items)
    return {
        CONCURRENCY: ceil(rate * item_ms / 1000 + second.gb_seconds / FAST_GB),
        REQUESTS: ceil(second.api_requests),
        WRITES: ceil(second.writes),
        EVENTS: ceil(second.events),
        SCHEDULES: ceil(rate / items),
    }
