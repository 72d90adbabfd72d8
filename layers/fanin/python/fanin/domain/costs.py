"""What it costs to know when n items are done: the whole bill of each way to use fanin. Pure arithmetic.

``python -m bench bill`` counts the same in runs of the functions, and a test compares the two. What only AWS
can tell, how long a function takes, is assumed: ``BASE_MS`` and ``WRITE_MS``. docs/explanation/costs.md says
what is left out.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from enum import StrEnum
from functools import lru_cache
from math import expm1, lcm, log1p
from operator import add, attrgetter
from typing import Final, Self

from fanin.domain import limits
from fanin.domain.ids import MAX_KEYS
from fanin.domain.prices import MILLION, Prices
from fanin.domain.reports import Estimate
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
    sizes = ((calls, together), (1, rest))
    return sum(count * -expm1(size * log1p(-1 / words)) * words for count, size in sizes)


BLOCK: Final = 10_000
"""Items that ``batch.send`` adds in one call."""
TOGETHER: Final = 10
"""Messages that Lambda hands to a consumer at a time, by default; their items are acknowledged together."""
RATE: Final = 1_000
"""Items done in a second."""
_ROW: Final = 128
"""Bytes of a row beside the message in it."""

BASE_MS: Final = 8.0
"""Milliseconds of an invocation: 3 of Python, and 5 for DynamoDB to answer. An assumption."""
WRITE_MS: Final = 1.0
"""Milliseconds more for each write: requests run side by side, and the processor is the limit."""
FAST_GB: Final = 1769 / 1024
"""Memory of the functions ``api`` and ``acks``, which have a whole processor."""
SLOW_GB: Final = 512 / 1024
"""Memory of the other functions."""

ACCESS_LINE: Final = 340
"""Bytes of a line of the API's access log, with the ARN of a caller."""
METRICS_LINE: Final = 166
"""Bytes of the line with the metrics of an invocation that marks items."""
PER_LINE: Final = 26
"""Bytes that CloudWatch Logs adds to each event."""

_WINDOW_MESSAGES: Final = 1_000
_WINDOW_SECONDS: Final = 5
"""How much of the ack queue one invocation takes: the defaults of the deployment's settings."""
_POLLERS: Final = 5
"""Pollers of an event source mapping while a queue is not busy; each fills a window of its own."""
_PER_REQUEST: Final = 10
"""Messages that one request to SQS receives or deletes."""
_WORD_BYTES: Final = 250
"""Bytes of the row of a word, with the 100 that DynamoDB adds."""
_KEY_LETTERS: Final = 20
"""Bytes of a key. An assumption."""
_KEY_BYTES: Final = 300
"""Bytes of the row of such a key without a payload, and of its place by ordinal."""
_MONTHS: Final = 1.0
"""For which rows are kept: a lifetime of 30 days."""


@dataclass(frozen=True)
class Cost:
    """What one way to know when n items are done consumes.

    Attributes:
        way: its name.
        usage: amounts.
        note: what this assumes, or what is missing.
    """

    way: str
    usage: Usage
    note: str = ""

    @property
    def writes(self) -> int:
        return round(self.usage.writes)

    @property
    def reads(self) -> int:
        return round(self.usage.reads)

    def dollars(self, prices: Prices) -> float:
        """The cost in dollars."""
        return self.usage.dollars(prices)


def costs(
    items: int,
    order: Order = Order.SCATTERED,
    *,
    together: int = TOGETHER,
    rate: int = RATE,
    more: Usage | None = None,
) -> list[Cost]:
    """The ways to use fanin, the one with the most requests first.

    Args:
        items: number of items in the batch.
        order: which items are acknowledged together.
        together: items of one call or message.
        rate: items done in a second: the faster, the more an invocation of the ack queue has to merge.
        more: what comes on top, whatever the way; see ``extras``.
    """
    ways = [
        _over_https(items, 1, order),
        _over_https(items, together, order),
        _through_the_queue(items, together, order, rate),
        _directly(items, together, order),
        _range(items),
        _by_spark(items),
        _ranges_with_totals(items),
    ]
    return [replace(way, usage=way.usage + more) for way in ways] if more else ways


def extras(items: int, *, keys: bool = False, growing: int = 0, result_bytes: int = 0) -> Usage:
    """What items take beyond a plain batch if they have keys or results, or add each other.

    Args:
        items: number of items in the batch.
        keys: whether each has a key. The rows of an addition, and the batch, are written in a transaction,
            which counts twice.
        growing: items that an item adds at a time, in a batch that grows from inside; 0 if none does.
        result_bytes: of the result of an item, as JSON; 0 if there are no results.
    """
    each = min(growing or MAX_KEYS, MAX_KEYS) if keys else growing or items
    additions = -(-items // each)
    writes, reads, stored = 0, 0, 0
    if keys:
        listed = -(-each * _KEY_LETTERS // 1024)  # units of the row that finds keys by their ordinal
        writes += 2 * items + (2 + 2 * listed) * additions
        reads += items + 2 * additions
        stored += items * _KEY_BYTES
    elif growing:
        writes += 4 * additions
        reads += 2 * additions
    if result_bytes:
        writes += items * -(-(result_bytes + _ROW) // 1024)
        stored += items * (result_bytes + _ROW)
    return Usage(writes=writes, reads=reads, stored_gb_months=stored / GB * _MONTHS)


@lru_cache(maxsize=256)
def estimate(items: int, done: int, failed: int, *, exact: bool, prices: Prices) -> Estimate:
    """Estimate what a batch has cost so far; the arguments are those of ``spent``."""
    ways = spent(items, done, failed, exact=exact)
    most, usual, *_, least = (round(way.dollars(prices), 6) for way in ways)
    return Estimate(usual, least, most, prices.region, prices.since)


def spent(items: int, done: int, failed: int, *, exact: bool = True) -> list[Cost]:
    """What a batch has consumed so far; how its items were marked decides, and no row says that.

    The writes of its whole life are counted, although its end may be still to come.

    Args:
        items: that were added.
        done: items that are done, failed ones included.
        failed: items that failed.
        exact: whether it has a tree; an estimated batch has one counter.

    Returns:
        The cost for each of four ways to mark items, the most expensive first. The second is what the library
        does by default.
    """
    failures = Usage(writes=failed * failure_writes(0))
    if not exact:
        failures += Usage(writes=-parents(done))
    ways = [
        _over_https(done, 1, Order.SCATTERED, of=items),
        _over_https(done, TOGETHER, Order.SCATTERED, of=items),
        _through_the_queue(done, TOGETHER, Order.NEIGHBOURS, RATE, of=items),
        _range(items, done),
    ]
    return [Cost(one.way, one.usage + failures, one.note) for one in ways]


def failure_writes(message_bytes: int) -> int:
    """Write units of an item that fails, beyond those of one that is done.

    Args:
        message_bytes: of its message as JSON; one of more than 8 KiB is in the bucket.
    """
    row = 0 if message_bytes > limits.MAX_KEPT_INLINE else -(-(message_bytes + _ROW) // 1024)
    return 1 + row  # the note, and the message


def _life(items: int) -> Usage:
    """The batch itself: open with a user key, add in blocks, activity, close, complete; and its rows."""
    blocks = -(-items // BLOCK)
    writes = 13 + 4 * blocks  # a transaction of two rows counts twice
    stored = (parents(items) + 1) * _WORD_BYTES / GB * _MONTHS
    return Usage(writes=writes, reads=20, stored_gb_months=stored, events=1) + _invoked(1, SLOW_GB)


def _settling(done: int) -> Usage:
    """The settler reads after each finished word whether its parent knows; at most so many invocations."""
    words = parents(done)
    return Usage(reads=words) + _invoked(words, SLOW_GB)


def _invoked(times: float, gb: float) -> Usage:
    """So many invocations of a function with that memory."""
    return Usage(invocations=times, gb_seconds=times * gb * BASE_MS / 1000)


def _requested(calls: float) -> Usage:
    """So many requests to the API, answered by its function."""
    log = calls * (METRICS_LINE + ACCESS_LINE + 2 * PER_LINE)
    return Usage(api_requests=calls, log_bytes=log) + _invoked(calls, FAST_GB)


def _written(writes: float) -> Usage:
    """So many writes to words by one of the fast functions."""
    return Usage(writes=writes, gb_seconds=writes * FAST_GB * WRITE_MS / 1000)


def _over_https(items: int, together: int, order: Order, *, of: int | None = None) -> Cost:
    calls = -(-items // together)
    writes = words_touched(items, together, order, of=of) + carried(items, together, order)
    blocks = 3 + -(-(of or items) // BLOCK)  # open, add in blocks, close, and a look at it
    usage = _life(of or items) + _requested(calls + blocks) + _written(writes) + _settling(items)
    how = "one item" if together == 1 else f"{together} items"
    return Cost(f"HTTPS, {how} a call", usage, "a consumer anywhere that may call the API")


def window(together: int, rate: int) -> int:
    """Messages of the ack queue that one invocation takes.

    Args:
        together: items that a message names.
        rate: items done in a second.
    """
    waiting = rate / together * _WINDOW_SECONDS / _POLLERS
    return int(max(1, min(_WINDOW_MESSAGES, waiting)))


def _through_the_queue(items: int, together: int, order: Order, rate: int, *, of: int | None = None) -> Cost:
    messages = -(-items // together)
    size = window(together, rate)
    runs = -(-messages // size)
    requests = messages + 2 * runs * -(-min(size, messages) // _PER_REQUEST)  # send; receive and delete
    merged = together * size
    writes = words_touched(items, merged, order, of=of) + carried(items, merged, order)
    log = runs * (METRICS_LINE + PER_LINE)
    acks = Usage(queue_requests=requests, log_bytes=log) + _invoked(runs, FAST_GB)
    usage = _life(of or items) + acks + _written(writes) + _settling(items)
    note = f"marked some seconds later; {size} messages an invocation, at {rate:,} items a second"
    return Cost(f"ack queue, {together} items a message", usage, note)


def _directly(items: int, together: int, order: Order) -> Cost:
    writes = words_touched(items, together, order) + carried(items, together, order)
    usage = _life(items) + Usage(writes=writes) + _settling(items)
    return Cost(f"direct, {together} items a call", usage, "a consumer that may write the tables")


def _range(items: int, done: int | None = None) -> Cost:
    done = items if done is None else done
    marks = 2 * len(list(Tree().cover(0, done, items))) if done else 0
    usage = _life(min(items, BLOCK)) + Usage(writes=marks)
    return Cost("one range, direct", usage, "one process has done all of it, such as one query")


def _by_spark(items: int) -> Cost:
    words = -(-items // Tree().width)
    usage = _life(min(items, BLOCK)) + Usage(writes=words + parents(items)) + _settling(items)
    return Cost("Spark job", usage, "a write for each word of 64 items; EMR Serverless comes on top")


def _ranges_with_totals(items: int) -> Cost:
    """Ranges of a batch with totals, in order: each call writes the words below its marks, a word at a time.

    Where two calls meet, both write the words that lie across; and a word is written at most once for each
    word below it.
    """
    tree, calls = Tree(), -(-items // limits.MAX_MARKS)
    writes, children = 0, items
    for level in range(tree.root_level(items) + 1):
        words = tree.last(level, items) + 1
        writes += min(words + calls - 1, children)
        children = words
    note = (
        "marked word by word, a write for 64 items, so that what items below have brought is kept;"
        f" a call takes {limits.MAX_MARKS:,} items by ranges"
    )
    usage = _life(min(items, BLOCK)) + Usage(writes=writes) + _settling(items)
    return Cost("ranges of a batch with totals, direct", usage, note)
