"""What it costs to know when n items are done without fanin."""

from __future__ import annotations

from typing import Final

from fanin.domain.costs import Cost
from fanin.domain.usage import Usage

_EXPRESS_GB_SECONDS: Final = 0.1 * 64 / 1024
"""Of an execution: 64 MB for 100 ms, the least that is billed; the work itself runs elsewhere."""
_CACHE_GB: Final = 0.1
"""The least that ElastiCache Serverless for Valkey bills."""
_MONTH_HOURS: Final = 730


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
            Usage(
                transitions=items,
                express_requests=items,
                express_gb_seconds=items * _EXPRESS_GB_SECONDS,
            ),
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
