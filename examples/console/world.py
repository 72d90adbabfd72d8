"""What the demo of the console shows: producers and consumers at work, and some trouble to find and mend.

| what | trouble | mended by |
| --- | --- | --- |
| `catalog`: airports | 1 in 100 rows is malformed, and fails | Redrive: the source was corrected |
| `orders`, held | 1 in 10 payments is refused at first | Redrive: the same batch completes |
| `invoices` | nobody receives from its queue | Cancel |
| `prices` | its producer died before it closed the batch | Close: it completes at once |
| a scatter `quotes` | one of five suppliers never replies | it is asked again |
| a frame, a buffer, a topic, a route | none | |
"""

import json
import threading
import time
import uuid
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import Any

import airportsdata

from fanin import (
    FaninError,
    ItemFailed,
    Message,
    OpenFrame,
    PutRoute,
    ReceivedMessage,
    Register,
    Tracker,
    names,
)
from fanin.errors import LimitReached
from fanin.types import Ticket

CATALOG = "catalog"
ORDERS = "orders"
INVOICES = "invoices"
PRICES = "prices"
QUOTES = "quotes"
BUFFER = "thumbnails"
TOPIC = "suppliers"
SUPPLIERS = ("brisk", "calm", "eager", "late", "silent")

_SPOILT_EVERY = 100
_REFUSED_EVERY = 10


class World:
    """Everything that goes on in the demo, in threads of this process.

    Args:
        tracker: of a stack whose queues this process may create.
        airports: rows of the catalog.
        pause: seconds that the work on one row takes; there is something to see only if it takes time.
        patience: how long nothing may happen to the invoices and the prices until they count as stalled.
    """

    def __init__(
        self,
        tracker: Tracker,
        *,
        airports: int = 6_000,
        pause: float = 0.05,
        patience: timedelta = timedelta(seconds=60),
    ) -> None:
        self._tracker = tracker
        self._airports = airports
        self._pause = pause
        self._patience = patience
        self._over = threading.Event()
        self._seen: set[str] = set()
        self._threads = ThreadPoolExecutor(24, thread_name_prefix="world")
        self._name = uuid.uuid4().hex[:6]
        self.batches: dict[str, int] = {}

    def start(self) -> None:
        """Send everything, and start the consumers."""
        for step in (
            self._invoices,
            self._prices,
            self._orders,
            self._quotes,
            self._frame,
            self._thumbnails,
            self._catalog,
        ):
            step()

    def stop(self) -> None:
        """Stop the consumers, each after its message."""
        self._over.set()
        self._threads.shutdown(wait=True, cancel_futures=True)

    def _queue(self, name: str, tag: str = names.TRACKED_TAG) -> str:
        """Create a queue; its name says which run of the demo it belongs to."""
        made = self._tracker.sqs.create_queue(
            QueueName=f"demo-{self._name}-{name}", Attributes={"VisibilityTimeout": "60"}, tags={tag: name}
        )
        return str(made["QueueUrl"])

    def _consume(self, queue: str, handle: Callable[[ReceivedMessage], Any], *, workers: int) -> None:
        def run() -> None:
            consumer = self._tracker.consumer(queue, handle, wait=1)
            while not self._over.is_set():
                try:
                    consumer.run(until=self._over.is_set)
                except FaninError:
                    time.sleep(1)  # the stack is busy, or about to stop

        for _ in range(workers):
            self._threads.submit(run)

    def _first_time(self, text: str) -> bool:
        """Whether this was not seen before; what fails the first time works the second."""
        if text in self._seen:
            return False
        self._seen.add(text)
        return True

    def _send(self, name: str, messages: Iterable[Any], **options: Any) -> str:
        """Fan messages out as a batch; returns the URL of their queue."""
        queue = self._queue(name)
        with self._tracker.batch(user_key=name, metadata={"team": "shop"}, **options) as batch:
            self.batches[name] = batch.id
            batch.send(queue, messages)
        return queue

    def _catalog(self) -> None:
        rows = list(airportsdata.load().values())[: self._airports]

        def row(message: ReceivedMessage) -> None:
            airport = json.loads(message.body)
            time.sleep(self._pause)
            number = int(message.attributes["row"])
            if number % _SPOILT_EVERY == 0 and self._first_time(message.body):
                raise ItemFailed(f"airport '{airport['icao']}': the elevation 'high' is not a number")
            message.add(rows=1, bytes=len(message.body))

        messages = (Message(airport, attributes={"row": number}) for number, airport in enumerate(rows))
        queue = self._queue(CATALOG)

        def send() -> None:
            # As messages are sent, they are handled; so the batch grows while one looks.
            with self._tracker.batch(
                user_key=CATALOG, metadata={"team": "data", "source": "airports"}, totals=["rows", "bytes"]
            ) as batch:
                self.batches[CATALOG] = batch.id
                batch.send(queue, messages, block=500)

        self._consume(queue, row, workers=4)
        self._threads.submit(send)

    def _orders(self) -> None:
        def pay(message: ReceivedMessage) -> None:
            number = json.loads(message.body)["order"]
            if number % _REFUSED_EVERY == 0 and self._first_time(message.body):
                raise ItemFailed(f"order {number}: the payment service answered 503")

        orders = ({"order": number, "total": 17 * number % 400} for number in range(200))
        self._consume(self._send(ORDERS, orders, on_failure="hold"), pay, workers=2)

    def _invoices(self) -> None:
        self._send(INVOICES, ({"invoice": number} for number in range(40)), stall_after=self._patience)

    def _prices(self) -> None:
        batch = self._tracker.open(user_key=PRICES, metadata={"team": "data"}, stall_after=self._patience)
        self.batches[PRICES] = batch.batch_id
        self._tracker.ack(list(self._tracker.add(batch.batch_id, 60)))

    def _quotes(self) -> None:
        queues = {name: self._queue(f"quotes-{name}", names.CHANNEL_TAG) for name in SUPPLIERS}
        for name, queue in queues.items():
            kind = {"region": "north" if len(name) > 4 else "south"}  # noqa: PLR2004 - any difference will do
            self._tracker.directory.register(Register(TOPIC, name, queue, kind))
        started = self._tracker.scatters.start(
            TOPIC,
            {"part": "wheel", "count": 40},
            timeout=timedelta(seconds=45),
            user_key=QUOTES,
            max_retries=1,
        )
        self.batches[QUOTES] = started.batch.batch_id

        def reply(name: str) -> Callable[[ReceivedMessage], None]:
            def quote(message: ReceivedMessage) -> None:
                if self._over.wait(30 if name == "late" else 1 + len(name)):
                    return
                self._tracker.scatters.reply(message, {"supplier": name, "price": 12 + len(name)})

            return quote

        for name in SUPPLIERS[:-1]:
            self._consume(queues[name], reply(name), workers=1)
        self._tracker.routing.put(
            PutRoute("large-orders", {"detail": {"count": [{"numeric": [">", 100]}]}}, topic=TOPIC)
        )

    def _frame(self) -> None:
        frame = self._tracker.frames.open(
            OpenFrame(12, source="warehouse", destination="billing", user_key="nightly", ttl=600)
        )
        claims = self._tracker.frames.claim([Ticket(frame.frame_id, index) for index in range(9)])
        self._tracker.ack([claim.item for claim in claims[:7]])
        self.batches["nightly"] = frame.frame_id

    def _thumbnails(self) -> None:
        self._tracker.buffers.define(BUFFER, 40)

        def put() -> None:
            number = 0
            while not self._over.wait(0.4):
                try:
                    self._tracker.buffers.put(BUFFER, [f"picture {number + one}" for one in range(5)])
                    number += 5
                except LimitReached:
                    self._over.wait(2)
                except FaninError:
                    self._over.wait(1)

        def take() -> None:
            while not self._over.wait(0.5):
                try:
                    work = self._tracker.buffers.take(BUFFER, most=4, wait=1)
                    if work:
                        self._tracker.buffers.done(BUFFER, [one.receipt for one in work])
                except FaninError:
                    self._over.wait(1)

        self._threads.submit(put)
        self._threads.submit(take)
