"""Load: a million items, hundreds of batches at once, and an hour of everything at random; soak only.

``FANIN_LOAD_ITEMS`` and ``FANIN_CHURN_SECONDS`` make them shorter, and ``FANIN_CHURN_PAUSE``, the mean
seconds between two calls of a thread, leaves time for something else on the machine. ``FANIN_CHURN_SEED``
gives the threads of the churn the same choices again, though not the same order among them.
"""

import os
import random
import threading
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

import pytest

from fanin import names
from fanin.client.tracker import Tracker
from fanin.domain.batch import Batch, State
from fanin.domain.ids import Group
from fanin.errors import BatchClosed, FaninError, ServiceUnavailable, Throttled

pytestmark = pytest.mark.soak(long=True)

ITEMS = int(os.environ.get("FANIN_LOAD_ITEMS", "1000000"))
PAGE = 10_000
DISORDER = 20_000
"""By how many places an item comes too late or too early. Were it all of a million, each request would write
seven thousand words, and the emulator, which has one thread, would take an hour.
"""
THREADS = 6
CHURN_SECONDS = float(os.environ.get("FANIN_CHURN_SECONDS", "3600"))
CHURN_PAUSE = float(os.environ.get("FANIN_CHURN_PAUSE", "0"))
SEED = int(os.environ.get("FANIN_CHURN_SEED", "20261123"))


def test_a_million_items_with_a_fifth_of_duplicates(new_tracker, tracker, subscriber):
    # Given a closed batch, and requests of ten thousand items each, out of order as a queue with many
    # consumers delivers them, a fifth of them twice
    with tracker.batch(user_key="load") as batch:
        group = batch.add(ITEMS)
    order = random.Random(SEED)
    ordinals = list(range(ITEMS))
    ordinals += order.sample(ordinals, ITEMS // 5)
    ordinals.sort(key=lambda ordinal: ordinal + order.uniform(0, DISORDER))
    pages = [ordinals[at : at + PAGE] for at in range(0, len(ordinals), PAGE)]
    own = threading.local()
    repeated: list[FaninError] = []

    # When six threads acknowledge them, and repeat what was left or not answered
    def ack(page):
        own.tracker = getattr(own, "tracker", None) or new_tracker()
        items, first, duplicates = [group[index] for index in page], 0, 0
        while items:
            try:
                marked = own.tracker.mark(items)
            except (ServiceUnavailable, Throttled) as error:
                repeated.append(error)
                continue
            assert (marked.refused, marked.unknown) == ({}, {})
            repeated.extend(marked.left.values())
            first += sum(receipt.first for receipt in marked.receipts)
            duplicates += sum(len(receipt.duplicates) for receipt in marked.receipts)
            items = [items[place] for place in marked.left]
        return first, duplicates

    began = time.monotonic()
    with ThreadPoolExecutor(THREADS) as pool:
        counts = list(pool.map(ack, pages))
    took = time.monotonic() - began
    firsts, duplicates = (sum(column) for column in zip(*counts, strict=True))
    print(f"\n{len(ordinals)} in {took:.0f} s, {firsts} first, {len(repeated)} calls repeated")  # noqa: T201
    # Then no item was first twice, and one event says that all is done
    assert firsts + duplicates == len(ordinals)
    assert firsts <= ITEMS, "an item was first twice"  # fewer, where the library has repeated a lost answer
    event = subscriber.only_event_of(batch.id)
    assert (event["detail"]["state"], event["detail"]["items"]) == ("complete", ITEMS)
    verdict = tracker.verify(batch.id)
    assert (verdict.pending, verdict.disagreements) == (0, ())


def test_two_hundred_batches_at_once(new_tracker, tracker, subscriber):
    # Given two hundred open batches of different sizes
    groups: dict[int, Group] = {}
    for n in range(200):
        batch = tracker.attach(tracker.open().batch_id)
        groups[batch.id] = batch.add(1 + n * 7 % 130)
    batches = list(groups)
    # When six threads acknowledge an interleaving of all their items while another closes them
    items = [item for group in groups.values() for item in group]
    random.Random(SEED).shuffle(items)
    pages = [items[at : at + 100] for at in range(0, len(items), 100)]
    with ThreadPoolExecutor(THREADS + 1) as pool:
        closing = pool.submit(lambda: [new_tracker().close(batch) for batch in batches])
        receipts = [one for answer in pool.map(lambda page: new_tracker().ack(page), pages) for one in answer]
        closing.result()
    # Then each is complete, each item was first once, and each end was announced once
    assert sum(receipt.first for receipt in receipts) == len(items)
    events = subscriber.only_events_of(batches, within=120)
    assert Counter(event["detail"]["state"] for event in events.values()) == {"complete": 200}


@dataclass
class Known:
    """What must be true of one batch at the end.

    A call is noted before it is made, and once more after its answer. So what is noted after is certain, and
    what is noted only before may have happened.

    Attributes:
        items: that were added.
        marking: items that a call began to mark.
        marked: items whose call answered that they are done.
        failing: items that a call began to fail.
        closing, cancelling: whether such a call began.
        cancelled: whether the answer to one said so.
        unsure: whether an addition was not answered, so that it may have items that nobody knows.
    """

    items: list[str] = field(default_factory=list)
    marking: set[str] = field(default_factory=set)
    marked: set[str] = field(default_factory=set)
    failing: set[str] = field(default_factory=set)
    closing: bool = False
    cancelling: bool = False
    cancelled: bool = False
    unsure: bool = False
    lock: threading.Lock = field(default_factory=threading.Lock)


class Churn:
    """Opens, adds, acknowledges, fails, closes and cancels at random, and remembers what it was told.

    Args:
        until: when to stop, by the monotonic clock.
    """

    def __init__(self, until: float) -> None:
        self._until = until
        self._lock = threading.Lock()
        self._live: list[int] = []
        self.known: dict[int, Known] = {}
        self.calls: Counter[str] = Counter()
        self.firsts: Counter[int] = Counter()

    def play(self, tracker: Tracker, seed: int) -> None:
        chance = random.Random(seed)
        while time.monotonic() < self._until:
            call = chance.choices(
                [self._open, self._add, self._ack, self._fail, self._close, self._cancel],
                [4, 10, 40, 6, 4, 1],
            )[0]
            name = call.__name__.strip("_")
            try:
                call(tracker, chance)
            except (ServiceUnavailable, Throttled):
                name = f"{name}, unanswered"
            with self._lock:
                self.calls[name] += 1
            time.sleep(chance.uniform(0, 2 * CHURN_PAUSE))

    def _some(self, chance: random.Random) -> tuple[int, Known] | None:
        with self._lock:
            if not self._live:
                return None
            batch_id = chance.choice(self._live[-30:])
            return batch_id, self.known[batch_id]

    def _open(self, tracker: Tracker, chance: random.Random) -> None:
        # Only the latest batches are used, so some of the others stall.
        stall_after = chance.choice((None, None, 60))
        batch_id = tracker.open(user_key="churn", stall_after=stall_after).batch_id
        with self._lock:
            self.known[batch_id] = Known()
            self._live.append(batch_id)

    def _add(self, tracker: Tracker, chance: random.Random) -> None:
        if found := self._some(chance):
            batch_id, known = found
            try:
                group = tracker.add(batch_id, chance.choice([1, 3, 63, 64, 65, 200]))
            except BatchClosed:
                assert known.closing or known.cancelling
                return
            except (ServiceUnavailable, Throttled):
                known.unsure = True
                raise
            with known.lock:
                known.items += group

    def _chosen(self, known: Known, chance: random.Random) -> list[str]:
        with known.lock:
            items = [item for item in known.items if item not in known.marked] or known.items
            return chance.sample(items, min(len(items), chance.choice([1, 10, 100])))

    def _ack(self, tracker: Tracker, chance: random.Random) -> None:
        self._mark(tracker, chance, failing=False)

    def _fail(self, tracker: Tracker, chance: random.Random) -> None:
        self._mark(tracker, chance, failing=True)

    def _mark(self, tracker: Tracker, chance: random.Random, *, failing: bool) -> None:
        if not (found := self._some(chance)) or not (items := self._chosen(found[1], chance)):
            return
        batch_id, known = found
        with known.lock:
            known.marking |= {*items}
            if failing:
                known.failing |= {*items}
        (receipt,) = tracker.fail(items, "churn") if failing else tracker.ack(items)
        with self._lock:
            self.firsts[batch_id] += receipt.first
        if receipt.late:
            assert known.cancelling, f"{receipt} is late, and nobody has cancelled the batch"
            return
        with known.lock:
            known.marked |= {*items}

    def _close(self, tracker: Tracker, chance: random.Random) -> None:
        if found := self._some(chance):
            batch_id, known = found
            known.closing = True
            tracker.close(batch_id)

    def _cancel(self, tracker: Tracker, chance: random.Random) -> None:
        if found := self._some(chance):
            batch_id, known = found
            known.cancelling = True
            if tracker.cancel(batch_id).state is State.CANCELLED:
                known.cancelled = True


def test_everything_at_random_for_an_hour(new_tracker, tracker, subscriber):
    # Given six threads that call whatever comes to their minds
    churn = Churn(time.monotonic() + CHURN_SECONDS)
    with ThreadPoolExecutor(THREADS) as pool:
        for thread in [pool.submit(churn.play, new_tracker(), SEED + n) for n in range(THREADS)]:
            thread.result()
    print(f"\n{len(churn.known)} batches, {dict(churn.calls)}")  # noqa: T201
    # When all batches are closed, and then the rest of their items is acknowledged
    for batch_id, known in churn.known.items():
        row = tracker.close(batch_id)
        _check(row, known)
        if known.unsure:
            known.cancelling = True
            tracker.cancel(batch_id)
        elif row.state is State.CLOSED:
            rest = [item for item in known.items if item not in known.marked]
            assert rest, f"all items of batch {batch_id} are marked, and it is not complete"
            for at in range(0, len(rest), PAGE):
                known.marking |= {*rest}
                (receipt,) = tracker.ack(rest[at : at + PAGE])
                churn.firsts[batch_id] += receipt.first
    # Then each is what its callers were told
    ends: dict[int, str] = {}
    for batch_id, known in churn.known.items():
        row = tracker.status(batch_id).batch
        _check(row, known)
        ends[batch_id] = row.state
        assert row.state is State.COMPLETE or (row.state is State.CANCELLED and known.cancelling)
        assert known.unsure or row.items == len(known.items)
        # A lost answer makes an item a duplicate that nobody was first for; no item has two firsts
        assert churn.firsts[batch_id] <= row.items
        if row.state is State.COMPLETE:
            assert {failure.item for failure in tracker.iter_failures(batch_id)} <= known.failing
            assert tracker.verify(batch_id).pending == 0
    # And its end was announced: perhaps again, but then in the same words
    told = subscriber.ends_of(ends, within=300)
    assert {batch_id: detail["state"] for batch_id, detail in told.items()} == ends
    again = sum(len(events) - 1 for events in subscriber.end_events(ends).values())
    kinds = ({event["detail-type"] for event in subscriber.told_of(batch_id)} for batch_id in ends)
    stalled = sum(names.BATCH_STALLED in of_batch for of_batch in kinds)
    print(f"{again} events came again; {stalled} batches were told as stalled before")  # noqa: T201


def _check(row: Batch, known: Known) -> None:
    """What is true of a batch at any time."""
    if row.state is State.COMPLETE:
        untouched = {*known.items} - known.marking
        assert not untouched, f"batch {row.batch_id} is complete without {sorted(untouched)[:3]}"
    if known.cancelled:
        assert row.state is State.CANCELLED
