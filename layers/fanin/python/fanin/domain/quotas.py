"""What a rate of items takes of the quotas that AWS gives an account. Pure arithmetic over the usage.

Each default is that of a large region such as us-east-1. See "Lambda quotas", "Amazon API Gateway quotas",
"Quotas in Amazon DynamoDB", "Amazon EventBridge quotas" and "Quotas for Amazon EventBridge Scheduler".
"""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil
from typing import Final

from fanin.domain.costs import FAST_GB, Cost


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


CONCURRENCY: Final = Quota("Lambda", "Concurrent executions", 1_000, "invocations at a time")
REQUESTS: Final = Quota("API Gateway", "Throttle rate", 10_000, "requests a second")
WRITES: Final = Quota("DynamoDB", "Table-level write throughput limit", 40_000, "writes a second")
EVENTS: Final = Quota(
    "EventBridge", "PutEvents throttle limit in transactions per second", 10_000, "events a second"
)
SCHEDULES: Final = Quota("EventBridge Scheduler", "CreateSchedule request rate", 5_000, "deadlines a second")
ITEM_MS: Final = 100
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
