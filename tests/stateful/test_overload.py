"""An hour in which the store throttles: what was done is never failed, and every batch completes.

The parts are those of a deployed service: the library's consumer, the functions of the ack queue and of the
dead-letter queue, and queues with visibility timeouts and tries as the stack makes them.
"""

import json
import random
from collections import Counter
from collections.abc import Callable
from typing import Any, cast

import pytest

from fanin import names
from fanin.adapters.memory import FixedClock, Memory
from fanin.adapters.memory.accesses import Accesses
from fanin.adapters.memory.sqs import InMemorySqs, Queue, QueueStore
from fanin.adapters.received_messages import ReceivedMessages
from fanin.app.ledger.service import LedgerService
from fanin.app.services import Services
from fanin.client.messages import ReceivedMessage
from fanin.client.tracker import Tracker
from fanin.domain.batch import State
from fanin.entry import queues
from fanin.entry.in_memory.event_source import EventSource
from fanin.entry.unhandled import respond
from fanin.errors import Throttled

HOUR = 3_600_000
ITEMS = 300


class PatientClock(FixedClock):
    """A clock for the library, whose waits take no time."""

    def monotonic(self) -> float:
        return self.at / 1000

    def sleep(self, seconds: float) -> None: ...


class Service:
    """The queues and functions around a ledger whose store throttles some calls until a time.

    Attributes:
        adds: whether messages bring values to the totals of their batch.
        handled: how often each message was handled.
        parked: messages that a function gave up.
    """

    def __init__(self, throttled: Callable[[str], bool], until: int = HOUR) -> None:
        self.clock = PatientClock()
        self.end = self.clock.at + until
        self.memory = Memory(clock=self.clock, on_call=self._on_call)
        self._throttled = throttled
        ports = self.memory.ports()
        store = QueueStore(self.clock, ports.random)
        self.sqs = cast("Any", InMemorySqs(store, Accesses()))
        self.acks, self.lost = self._queue(store, "acks", 360, names.ACK_TRIES)
        self.work, dead = self._queue(store, "work", 180, 5)
        self.tracker = Tracker(Services(ports), lambda: self.sqs, self.acks.url, self.clock)
        self.adds = False
        self.handled: Counter[str] = Counter()
        self.parked: list[Any] = []
        received, ledger = ReceivedMessages(lambda: self.sqs), LedgerService(ports)
        consume = self.tracker.sqs_handler(self._handle)
        self._sources = [
            EventSource(store, self.work.url, consume),
            EventSource(
                store,
                self.acks.url,
                lambda event, _: respond(
                    queues.acknowledge(event["Records"], ledger),
                    self.parked.append,
                    received.postpone,
                    received.put_back,
                ),
                most=1_000,
            ),
            EventSource(
                store,
                dead.url,
                lambda event, _: respond(
                    queues.fail_dead_letters(event["Records"], ledger), self.parked.append, received.postpone
                ),
            ),
        ]

    def _handle(self, message: ReceivedMessage) -> None:
        """Do the work of a message; done again, it brings another value."""
        self.handled[message.body] += 1
        if self.adds:
            message.add(sum=int(message.body), times=self.handled[message.body])

    @staticmethod
    def _queue(store: QueueStore, name: str, hidden: int, tries: int) -> tuple[Queue, Queue]:
        dead = store.create(f"{name}-dead", {"VisibilityTimeout": "180"}, {})
        policy = json.dumps({"deadLetterTargetArn": dead.arn, "maxReceiveCount": tries})
        attributes = {"VisibilityTimeout": str(hidden), "RedrivePolicy": policy}
        return store.create(name, attributes, {}), dead

    def _on_call(self, call: str, moment: str) -> None:
        if moment == "before" and self.clock.at < self.end and self._throttled(call):
            raise Throttled("slow down")

    def run(self) -> None:
        """Let the functions work until the queues are empty."""
        while True:
            due = [(at, n) for n, source in enumerate(self._sources) if (at := source.due()) is not None]
            if not due:
                return
            at, first = min(due)
            self.clock.at = max(self.clock.at, at)
            self._sources[first].run()


def never_words(call: str) -> bool:
    return call == "words.clear"


def most_writes(seed: int) -> Callable[[str], bool]:
    draw = random.Random(seed).random
    return lambda call: call in {"words.clear", "batches.end", "batches.touch"} and draw() < 0.9


@pytest.mark.parametrize("throttled", [never_words, *map(most_writes, range(2))])
def test_an_hour_of_throttling_fails_nothing_that_was_done(throttled):
    # Given a batch whose consumers do their work while its words cannot be written
    service = Service(throttled)
    batch = service.tracker.attach(service.tracker.open().batch_id)
    batch.send(service.work.url, map(str, range(ITEMS)))
    batch.close()
    # When an hour passes, and the time after it
    service.run()
    # Then every item is done, none has failed, and no message was given up
    progress = service.tracker.status(batch.id)
    assert progress.batch.state is State.COMPLETE
    assert service.tracker.failures(batch.id).failures == ()
    assert len(service.handled) == ITEMS
    assert service.parked == []
    assert service.lost.counts() == (0, 0, 0)


@pytest.mark.parametrize("throttled", [never_words, *map(most_writes, range(2))])
def test_an_hour_of_throttling_adds_every_value_once(throttled):
    # Given a batch whose messages bring values, and come again now and then
    service = Service(throttled)
    service.adds = True
    batch = service.tracker.attach(service.tracker.open(totals=["sum", "times"]).batch_id)
    batch.send(service.work.url, map(str, range(ITEMS)))
    batch.close()
    # When an hour passes, and the time after it
    service.run()
    # Then the total is that of all items, each counted once
    row = service.tracker.status(batch.id).batch
    assert (row.state, row.totals_exact) == (State.COMPLETE, True)
    assert row.totals["sum"] == sum(range(ITEMS))
    assert ITEMS <= row.totals["times"] <= service.handled.total()
    assert service.parked == []


def test_work_is_not_done_again_for_want_of_an_ack():
    service = Service(never_words)
    batch = service.tracker.attach(service.tracker.open().batch_id)
    batch.send(service.work.url, map(str, range(ITEMS)))
    batch.close()

    service.run()

    assert set(service.handled.values()) == {1}
    assert service.clock.at - service.end < HOUR // 2


def test_an_item_that_was_never_done_fails_all_the_same():
    service = Service(never_words)
    batch = service.tracker.attach(service.tracker.open().batch_id)
    batch.send(service.work.url, map(str, range(20)))
    batch.close()
    consumer = service._sources[0]

    def broken(event: Any, _: Any) -> Any:
        raise ZeroDivisionError

    consumer.handler = broken
    service.run()

    assert service.tracker.status(batch.id).batch.state is State.COMPLETE
    assert len(service.tracker.failures(batch.id).failures) == 20


def some_counts(seed: int) -> Callable[[str], bool]:
    draw = random.Random(seed).random
    return lambda call: call in {"words.clear", "batches.count"} and draw() < 0.5


@pytest.mark.parametrize("throttled", [some_counts(seed) for seed in range(3)])
def test_an_hour_of_throttling_counts_nothing_twice(throttled):
    # Given messages of the ack queue that mix an exact batch and two estimated ones in every way
    service = Service(throttled)
    tracker = service.tracker
    modes = ("exact", "estimated", "estimated")
    exact, *estimated = (tracker.open(mode=mode, totals=["sum"]).batch_id for mode in modes)
    items, counted, failing = (tracker.add(batch_id, ITEMS) for batch_id in (exact, *estimated))
    for n in range(ITEMS):
        kinds: list[list[Any]] = [
            [items[n], counted[n] if n % 8 else {"item": counted[n], "totals": {"sum": n}}],
            [
                {"item": items[n], "totals": {"sum": n}},
                *({"batch_id": one, "count": 1, "totals": {"sum": n}} for one in estimated),
            ],
            [{"failed": failing[n]}, {"failed": items[n]}],
            [items[n], {"failed": failing[n]}],
        ]
        service.acks.send(json.dumps({"marks": kinds[n % len(kinds)]}), {})
    # When an hour passes in which the store throttles now and then
    service.run()
    # Then each was counted once, and every item is marked
    assert [tracker.status(one).batch.acked for one in estimated] == [ITEMS // 2, 3 * ITEMS // 4]
    brought = [sum(n for n in range(ITEMS) if n % 8 in some) for some in ((1, 5), (0, 1, 5), (1, 5))]
    assert [tracker.status(one, exact=True).batch.totals["sum"] for one in (exact, *estimated)] == brought
    assert tracker.missing(exact).ranges == ()
    assert service.parked == []
    assert service.lost.counts() == (0, 0, 0)
