"""The whole bill of each way to use fanin: the calls of a run, counted, times the prices of AWS.

What runs is the code of the functions and of the library: consumers are handlers for SQS, requests go through
the API's routes, messages of the ack queue through its function, and finished words to the settler. Stores
and queues are in memory. What only AWS can tell, how long a function takes, follows from the counts as
``fanin.domain.costs`` assumes.
"""

import random
from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeVar

from bench.deployment import Deployment
from bench.figures import Figure
from fanin import Tracker
from fanin.domain.costs import BLOCK, RATE, TOGETHER, Order, Usage, costs, window
from fanin.domain.marks import ItemRange
from fanin.domain.prices import DEFAULT
from fanin.names import ITEM_ATTRIBUTE

MILLION = 1_000_000
ALONE = 4_096
"""Items of a batch whose consumers make a request for each."""
FEW = 16_384
"""Items of a batch whose consumers name ten together: so many that these seldom share a word."""
MANY = 262_144
"""Items of a batch of whose scattered items the ack queue's function takes a thousand together."""
QUEUE_ARN = "arn:aws:sqs:us-east-1:123456789012:work"

T = TypeVar("T")


def one_at_a_time() -> list[Figure]:
    return [_figure("HTTPS, one item a call", bill_of_https(ALONE, 1, Order.SCATTERED), ALONE, at_most=2.45)]


def in_tens() -> list[Figure]:
    return [
        _figure(
            "HTTPS, ten items a call, scattered", bill_of_https(FEW, 10, Order.SCATTERED), FEW, at_most=0.87
        ),
        _figure(
            "HTTPS, ten items a call, neighbours", bill_of_https(FEW, 10, Order.NEIGHBOURS), FEW, at_most=0.28
        ),
    ]


def queued_scattered() -> list[Figure]:
    bill = bill_of_queue(MANY, Order.SCATTERED)
    return [_figure("ack queue, ten items a message, scattered", bill, MANY, at_most=0.80)]


def queued_neighbours() -> list[Figure]:
    bill = bill_of_queue(FEW, Order.NEIGHBOURS)  # a window has as many words in any batch
    return [_figure("ack queue, ten items a message, neighbours", bill, FEW, at_most=0.25)]


def directly() -> list[Figure]:
    return [
        _figure(
            "direct, ten items a call, scattered", bill_of_direct(FEW, Order.SCATTERED), FEW, at_most=0.66
        ),
        _figure(
            "direct, ten items a call, neighbours", bill_of_direct(FEW, Order.NEIGHBOURS), FEW, at_most=0.10
        ),
        _figure("one range, direct", bill_of_range(MILLION), MILLION, at_most=0.01),
    ]


def planned() -> list[Figure]:
    """What ``fanin plan`` computes for a million items; a test compares its arithmetic with the counts."""
    return [
        Figure(
            f"dollars for 1,000,000 items, planned: {cost.way}, {order}",
            cost.dollars(DEFAULT),
            at_most=bound,
            note=cost.note,
        )
        for order, bounds in (
            (Order.SCATTERED, (2.45, 0.87, 0.80, 0.66)),
            (Order.NEIGHBOURS, (2.45, 0.28, 0.25, 0.10)),
        )
        for cost, bound in zip(costs(MILLION, order), bounds, strict=False)
    ]


def bill_of_https(items: int, together: int, order: Order) -> Usage:
    """Consumers on Lambda that get so many messages at a time, and call the API."""
    deployment = Deployment()
    _consume(deployment, deployment.tracker(), items, together, order, via="api")
    return deployment.bill()


def bill_of_queue(items: int, order: Order, rate: int = RATE) -> Usage:
    """The same, through the ack queue; its function runs whenever a window of messages has come together."""
    deployment = Deployment()
    most = window(TOGETHER, rate)
    tracker = deployment.tracker()
    _consume(
        deployment,
        tracker,
        items,
        TOGETHER,
        order,
        via="queue",
        after=lambda: deployment.run_acks(most),
        most=most,
    )
    while deployment.run_acks(most):
        pass
    deployment.world.check_complete()
    return deployment.bill()


def bill_of_direct(items: int, order: Order) -> Usage:
    """Consumers that write the tables themselves."""
    deployment = Deployment()
    _consume(deployment, deployment.direct(), items, TOGETHER, order, via="api")
    return deployment.bill()


def bill_of_range(items: int) -> Usage:
    """One process that has done everything."""
    deployment = Deployment()
    tracker = deployment.direct()
    with tracker.batch(user_key="bill") as batch:
        group = batch.add(items)
    tracker.ack([ItemRange(group.prefix)])
    deployment.settle()
    deployment.world.check_complete()
    return deployment.bill()


def _consume(
    deployment: Deployment,
    tracker: Tracker,
    items: int,
    together: int,
    order: Order,
    *,
    via: str,
    after: Callable[[], object] = lambda: None,
    most: int = 1,
) -> None:
    """Open a batch, add items, and hand their messages to consumers; every ``most`` times call ``after``."""
    with tracker.batch(user_key="bill") as batch:
        groups = [batch.add(min(BLOCK, items - start)) for start in range(0, items, BLOCK)]
    ids = [item for group in groups for item in group]
    if order is Order.SCATTERED:
        random.Random(1).shuffle(ids)  # noqa: S311
    handler = tracker.sqs_handler(via=via)(lambda _: None)
    for count, some in enumerate(_chunks(ids, together), 1):
        if handler({"Records": [_record(item) for item in some]})["batchItemFailures"]:
            raise AssertionError("a consumer could not acknowledge its items")
        deployment.settle()
        if count % most == 0:
            after()
    if via == "api":
        deployment.world.check_complete()


def _record(item: str) -> dict[str, Any]:
    return {
        "messageId": item,
        "receiptHandle": item,
        "body": "{}",
        "attributes": {"ApproximateReceiveCount": "1"},
        "messageAttributes": {ITEM_ATTRIBUTE: {"dataType": "String", "stringValue": item}},
        "eventSource": "aws:sqs",
        "eventSourceARN": QUEUE_ARN,
        "awsRegion": "us-east-1",
    }


def _chunks(values: Sequence[T], size: int) -> Iterator[Sequence[T]]:
    return (values[at : at + size] for at in range(0, len(values), size))


def _figure(way: str, usage: Usage, items: int, *, at_most: float) -> Figure:
    scaled = usage.times(MILLION / items)
    parts = ", ".join(
        f"{service} {amount:.3f}" for service, amount in scaled.bill(DEFAULT).items() if amount >= 0.0005
    )
    note = f"{items:,} items, counted: {parts}"
    return Figure(f"dollars for 1,000,000 items: {way}", scaled.dollars(DEFAULT), at_most=at_most, note=note)
