"""The whole bill of each way to use fanin: the calls of a run, counted, times the prices of AWS.

What runs is the code of the functions and of the library: consumers are handlers for SQS, requests go through
the API's routes, messages of the ack queue through its function, and finished words to the settler. Stores
and queues are in memory. What only AWS can tell, how long a function takes, follows from the counts as
``fanin.domain.costs`` assumes.
"""

from __future__ import annotations

import io
import random
from collections.abc import Callable, Iterator, Sequence
from contextlib import redirect_stdout
from types import SimpleNamespace
from typing import Any, TypeVar
from urllib.parse import parse_qsl, urlsplit

from bench.figures import Figure
from bench.world import World
from fanin import Tracker
from fanin.adapters.memory.sqs import InMemorySqs, QueueStore
from fanin.app.services import Services
from fanin.client.https.api import HttpsApi
from fanin.client.https.services import HttpsServices
from fanin.client.https.transport import Request, Response, unsigned
from fanin.domain.acks import ItemRange
from fanin.domain.costs import (
    ACCESS_LINE,
    BASE_MS,
    BLOCK,
    FAST_GB,
    PER_LINE,
    RATE,
    SLOW_GB,
    TOGETHER,
    WRITE_MS,
    Order,
    costs,
    window,
)
from fanin.domain.prices import DEFAULT
from fanin.domain.usage import GB, Usage
from fanin.entry import queues
from fanin.entry.http.application import application, serve
from fanin.entry.observe import logger, observed
from fanin.names import ITEM_ATTRIBUTE

MILLION = 1_000_000
FEW = 16_384
"""Items of a batch whose consumers make a request for each few of them."""
MANY = 262_144
"""Items of a batch whose consumers use the ack queue."""
WORD_BYTES = 250
PER_REQUEST = 10
"""Messages that one request to SQS receives or deletes."""
QUEUE_ARN = "arn:aws:sqs:us-east-1:123456789012:work"

T = TypeVar("T")


class Deployment:
    """The service in memory with its functions; it counts what AWS would charge for.

    Attributes:
        world: the stores.
        usage: what was consumed so far, without rows.
    """

    def __init__(self) -> None:
        self.world = World()
        self.usage = Usage()
        self._sqs = InMemorySqs(QueueStore(self.world.clock, self.world.memory.random), self.world.accesses)
        self.acks_url = self._sqs.create_queue(QueueName="acks", Attributes={})["QueueUrl"]
        self._services = Services(self.world.memory.ports())
        self._settler = self.world.process()
        self._settled = 0
        app = application(lambda: self._services)
        self._serve = observed(lambda event, context: serve(app, event, context))
        self._acknowledge = observed(
            lambda event, _: queues.acknowledge(event, self._services.ledger, _never, _never, _never)
        )
        self._heal = observed(lambda event, _: self._settler.heal(event["keys"]))

    def tracker(self) -> Tracker:
        """What a consumer uses: the API over HTTPS, and the ack queue."""
        api = HttpsApi("https://api.example.com", sign=unsigned, transport=self._request)
        return Tracker(HttpsServices(api), lambda: self._sqs, self.acks_url)

    def direct(self) -> Tracker:
        """What a consumer uses that may write the tables."""
        return Tracker(self._services, lambda: self._sqs, self.acks_url)

    def run_acks(self, most: int) -> bool:
        """Let the function of the ack queue take up to so many messages; false if there are none."""
        messages: list[dict[str, Any]] = []
        while len(messages) < most:
            found = self._sqs.receive_message(
                QueueUrl=self.acks_url, MaxNumberOfMessages=min(PER_REQUEST, most - len(messages))
            ).get("Messages", [])
            if not found:
                break
            self.usage += Usage(queue_requests=2)  # receive, and delete
            self._sqs.delete_message_batch(
                QueueUrl=self.acks_url,
                Entries=[
                    {"Id": str(at), "ReceiptHandle": one["ReceiptHandle"]} for at, one in enumerate(found)
                ],
            )
            messages += found
        if not messages:
            return False
        records = [
            {"messageId": one["MessageId"], "receiptHandle": one["ReceiptHandle"], "body": one["Body"]}
            for one in messages
        ]
        answer = self._invoke(self._acknowledge, {"Records": records}, FAST_GB)
        if answer["batchItemFailures"]:
            raise AssertionError(f"messages of the ack queue were not handled: {answer}")
        self.settle()
        return True

    def settle(self) -> None:
        """Let the settler look at every word that was finished, in an invocation for each."""
        finished = self.world.memory.words.finished
        while self._settled < len(finished):
            self._settled += 1
            self._invoke(self._heal, {"keys": [finished[self._settled - 1]]}, SLOW_GB)

    def bill(self) -> Usage:
        """All that was consumed, with rows, messages sent, storage for a month and the event of the end."""
        accesses = self.world.accesses
        rows = Usage(
            writes=sum(n for call, n in accesses.writes.items() if not call.startswith("sqs.")),
            reads=sum(n for call, n in accesses.reads.items() if not call.startswith("sqs.")),
            queue_requests=sum(
                n for call, n in (accesses.sends + accesses.writes).items() if "sqs.send" in call
            ),
            stored_gb_months=len(self.world.memory.words.finished) * WORD_BYTES / GB,
        )
        announced = Usage(invocations=1, events=1, gb_seconds=SLOW_GB * BASE_MS / 1000)
        return self.usage + rows + announced

    def _request(self, request: Request) -> Response:
        url = urlsplit(request.url)
        event = {
            "version": "2.0",
            "rawPath": url.path,
            "rawQueryString": url.query,
            "queryStringParameters": dict(parse_qsl(url.query)),
            "headers": dict(request.headers),
            "requestContext": {
                "http": {"method": request.method, "path": url.path},
                "requestId": "r",
                "stage": "$default",
            },
            "body": (request.body or b"").decode(),
            "isBase64Encoded": False,
        }
        answer = self._invoke(self._serve, event, FAST_GB)
        self.usage += Usage(api_requests=1, log_bytes=ACCESS_LINE + PER_LINE)
        self.settle()
        headers = {name.lower(): value for name, value in answer["headers"].items()}
        return Response(answer["statusCode"], headers, answer["body"].encode())

    def _invoke(self, handler: Callable[[Any, Any], Any], event: Any, memory: float) -> Any:
        """Run a function, and count its time and its lines."""
        context = SimpleNamespace(
            aws_request_id="r",
            function_name="f",
            memory_limit_in_mb=int(memory * 1024),
            invoked_function_arn="arn:aws:lambda:us-east-1:123456789012:function:f",
            get_remaining_time_in_millis=lambda: 30_000,
        )
        before = self.world.accesses.writes.total()
        with redirect_stdout(io.StringIO()) as log:
            logger.registered_handler.stream = log  # type: ignore[attr-defined]  # it keeps that of its start
            answer = handler(event, context)
        lines = log.getvalue().splitlines()
        milliseconds = BASE_MS + WRITE_MS * (self.world.accesses.writes.total() - before)
        self.usage += Usage(
            invocations=1,
            gb_seconds=memory * milliseconds / 1000,
            log_bytes=sum(len(line.encode()) + PER_LINE for line in lines),
        )
        return answer


def one_at_a_time() -> list[Figure]:
    return [_figure("HTTPS, one item a call", bill_of_https(FEW, 1, Order.SCATTERED), FEW, at_most=2.60)]


def in_tens() -> list[Figure]:
    return [
        _figure(
            "HTTPS, ten items a call, scattered", bill_of_https(FEW, 10, Order.SCATTERED), FEW, at_most=0.90
        ),
        _figure(
            "HTTPS, ten items a call, neighbours", bill_of_https(FEW, 10, Order.NEIGHBOURS), FEW, at_most=0.30
        ),
    ]


def queued_scattered() -> list[Figure]:
    bill = bill_of_queue(MANY, Order.SCATTERED)
    return [_figure("ack queue, ten items a message, scattered", bill, MANY, at_most=0.80)]


def queued_neighbours() -> list[Figure]:
    bill = bill_of_queue(MANY, Order.NEIGHBOURS)
    return [_figure("ack queue, ten items a message, neighbours", bill, MANY, at_most=0.25)]


def directly() -> list[Figure]:
    return [
        _figure(
            "direct, ten items a call, scattered", bill_of_direct(FEW, Order.SCATTERED), FEW, at_most=0.67
        ),
        _figure(
            "direct, ten items a call, neighbours", bill_of_direct(FEW, Order.NEIGHBOURS), FEW, at_most=0.11
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
            (Order.SCATTERED, (2.60, 0.90, 0.80, 0.67)),
            (Order.NEIGHBOURS, (2.60, 0.30, 0.25, 0.11)),
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
    tracker.ack(ranges=[ItemRange(group.prefix)])
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


def _never(messages: Sequence[Any]) -> None:
    if messages:
        raise AssertionError("a message of the ack queue was set aside")


def _figure(way: str, usage: Usage, items: int, *, at_most: float) -> Figure:
    scaled = usage.times(MILLION / items)
    parts = ", ".join(
        f"{service} {amount:.3f}" for service, amount in scaled.bill(DEFAULT).items() if amount >= 0.0005
    )
    note = f"{items:,} items, counted: {parts}"
    return Figure(f"dollars for 1,000,000 items: {way}", scaled.dollars(DEFAULT), at_most=at_most, note=note)
