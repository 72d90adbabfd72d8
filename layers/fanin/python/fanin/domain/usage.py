"""What something consumes of AWS, in the units of its bill; among it how many writes words take."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields
from enum import StrEnum
from math import expm1, lcm, log1p
from operator import add, attrgetter
from typing import Final, Self

from fanin.domain.prices import MILLION, Prices
from fanin.domain.tree import Tree

GB: Final = 1e9
"""Bytes of a GB, as CloudWatch and DynamoDB bill it; the difference to 2^30 is left out."""


@dataclass(frozen=True, kw_only=True)
class Usage:
    """Amounts of one thing, such as a batch or a month.

    Attributes:
        writes: write request units of DynamoDB, those of refused writes included.
        reads: read request units.
        stored_gb_months: GB-months of tables, with their backups.
        api_requests: requests to the HTTP API.
        invocations: of Lambda functions.
        gb_seconds: of Lambda functions.
        queue_requests: requests to SQS.
        log_bytes: bytes written to CloudWatch Logs.
        events: events on the bus.
        schedules: one-time schedules that rang.
        metrics, alarm_metrics, dashboards, secrets: of a month.
        traces: of X-Ray.
        transitions, express_requests, express_gb_seconds: of Step Functions.
        durable_operations: of Lambda durable functions.
        cache_gb_hours, cache_units: of ElastiCache Serverless.
    """

    writes: float = 0
    reads: float = 0
    stored_gb_months: float = 0
    api_requests: float = 0
    invocations: float = 0
    gb_seconds: float = 0
    queue_requests: float = 0
    log_bytes: float = 0
    events: float = 0
    schedules: float = 0
    metrics: float = 0
    alarm_metrics: float = 0
    dashboards: float = 0
    secrets: float = 0
    traces: float = 0
    transitions: float = 0
    express_requests: float = 0
    express_gb_seconds: float = 0
    durable_operations: float = 0
    cache_gb_hours: float = 0
    cache_units: float = 0

    def __add__(self, other: Usage) -> Usage:
        """Both together."""
        amounts = map(add, _amounts(self), _amounts(other))
        return Usage(**dict(zip(_NAMES, amounts, strict=True)))

    def times(self, factor: float) -> Self:
        """So many times as much."""
        amounts = (amount * factor for amount in _amounts(self))
        return type(self)(**dict(zip(_NAMES, amounts, strict=True)))

    def amounts(self) -> dict[str, float]:
        """The amounts that are not zero, by name."""
        every = zip(_NAMES, _amounts(self), strict=True)
        return {name: round(amount, 6) for name, amount in every if amount}

    def bill(self, prices: Prices) -> dict[str, float]:
        """Dollars by service; each service is in it, also with 0."""
        return {
            "DynamoDB": (self.writes * prices.write + self.reads * prices.read) / MILLION
            + self.stored_gb_months * (prices.stored_gb + prices.backed_up_gb),
            "API": self.api_requests * prices.api_request / MILLION,
            "Lambda": (self.invocations * prices.invocation + self.gb_seconds * prices.gb_second) / MILLION,
            "SQS": self.queue_requests * prices.queue_request / MILLION,
            "logs": self.log_bytes / GB * prices.log_gb,
            "events": (self.events * prices.event + self.schedules * prices.schedule) / MILLION,
            "watching": self.metrics * prices.metric
            + self.alarm_metrics * prices.alarm_metric
            + self.dashboards * prices.dashboard
            + self.traces * prices.trace / MILLION,
            "secrets": self.secrets * prices.secret,
            "others": (
                self.transitions * prices.transition
                + self.express_requests * prices.express_request
                + self.express_gb_seconds * prices.express_gb_second
                + self.durable_operations * prices.durable_operation
                + self.cache_units * prices.cache_unit
            )
            / MILLION
            + self.cache_gb_hours * prices.cache_gb_hour,
        }

    def dollars(self, prices: Prices) -> float:
        """The whole bill."""
        return sum(self.bill(prices).values())


_NAMES: Final = tuple(one.name for one in fields(Usage))
_amounts: Final[Callable[[Usage], tuple[float, ...]]] = attrgetter(*_NAMES)
"""All amounts, in the order of the fields; a status adds some thirty usages up."""


class Order(StrEnum):
    """Which items are acknowledged together.

    Attributes:
        SCATTERED: any items of the batch: queues do not keep neighbours together.
        NEIGHBOURS: items that follow one another, as a producer has added them.
    """

    SCATTERED = "scattered"
    NEIGHBOURS = "neighbours"


def parents(items: int) -> int:
    """Writes above level 0 while all items are acknowledged: one for each word that has a parent."""
    tree = Tree()
    return sum(tree.last(level, items) + 1 for level in range(tree.root_level(items))) if items else 0


def carried(items: int, together: int, order: Order) -> int:
    """Writes above level 0, if so many items are acknowledged by each call.

    A call of neighbours that finishes several words of one parent writes that parent once. Of scattered
    items, words are taken to finish one by one.
    """
    if order is Order.SCATTERED or not items:
        return parents(items)
    tree, writes = Tree(), 0
    calls = -(-items // together)
    for level in range(tree.root_level(items)):
        children, above = (tree.last(at, items) + 1 for at in (level, level + 1))
        writes += min(children, calls + above - 1)
    return writes


def words_touched(items: int, together: int, order: Order, *, of: int | None = None) -> float:
    """Writes to words of level 0, if so many items are acknowledged by each call.

    Args:
        items: that are acknowledged.
        together: items of a call.
        order: which.
        of: items of the batch; None for as many as are acknowledged.
    """
    width = Tree().width
    if order is Order.NEIGHBOURS:
        # Calls begin at multiples of ``together``. A call writes a word more for each edge within it.
        edges = -(-items // width) - -(-items // lcm(together, width))
        return -(-items // together) + edges
    words = -(-(of or items) // width)
    if words <= 1:
        return -(-items // together)
    calls, rest = divmod(items, together)
    return sum(
        count * -expm1(size * log1p(-1 / words)) * words for count, size in ((calls, together), (1, rest))
    )
