"""Many at once: threads that ack the same items through the deployed API and through the queue."""

from __future__ import annotations

import random
import time
import uuid
from concurrent.futures import ThreadPoolExecutor

import pytest

from fanin.errors import IdempotencyKeyReused
from tests.e2e.deployment import eventually

ITEMS = 2_000
DUPLICATES = 400
THREADS = 8
PAGE = 50


@pytest.fixture(scope="module")
def order() -> random.Random:
    return random.Random(20261121)  # noqa: S311 - an order, not a secret


def test_each_item_counts_once_and_the_end_is_told_once(
    new_tracker, tracker, deployment, subscriber, order
) -> None:
    # Given a closed batch, and its items in random order, a fifth of them twice
    started = time.time()
    with tracker.batch(user_key="crowd", metadata={"of": "threads"}) as batch:
        items = list(batch.add(ITEMS))
    sent = items + order.sample(items, DUPLICATES)
    order.shuffle(sent)
    shares = [sent[thread::THREADS] for thread in range(THREADS)]

    # When eight threads ack them at the same time, half of them through the API, half through the queue
    def through_the_api(share):
        own = new_tracker()
        pages = (share[at : at + PAGE] for at in range(0, len(share), PAGE))
        return [receipt for page in pages for receipt in own.ack(page)]

    def through_the_queue(share):
        own = new_tracker()
        for at in range(0, len(share), PAGE):
            own.ack_later(share[at : at + PAGE])
        return []

    with ThreadPoolExecutor(THREADS) as pool:
        ways = [through_the_api, through_the_queue] * (THREADS // 2)
        receipts = [r for answer in pool.map(lambda way, share: way(share), ways, shares) for r in answer]

    # Then one event tells that the batch is complete
    event = subscriber.only_event_of(batch.id)
    assert event["detail-type"] == "Batch Completed"
    assert event["detail"]["id"].endswith(f"/{batch.id}.complete")
    told = {"user_key": "crowd", "items": ITEMS, "state": "complete", "partial": False, "failed": 0}
    assert event["detail"].items() >= told.items()
    assert event["detail"]["metadata"] == {"of": "threads"}

    # And each item was somebody's first exactly once, all others were duplicates
    api_first = sum(receipt.first for receipt in receipts)
    api_duplicates = sum(len(receipt.duplicates) for receipt in receipts)
    assert api_first + api_duplicates == sum(map(len, shares[::2]))
    eventually(lambda: deployment.messages(deployment.queue("AckQueue")) == 0)
    through_queue = sum(map(len, shares[1::2]))

    def logged():  # after the messages are gone
        seen = deployment.metrics("acks", started)
        return seen if seen.get("ItemsFirst", 0) + seen.get("ItemsDuplicate", 0) >= through_queue else None

    queued = eventually(logged)
    assert api_first + queued["ItemsFirst"] == ITEMS
    assert api_duplicates + queued["ItemsDuplicate"] == DUPLICATES
    assert 0 < api_first < ITEMS  # both paths did some of the work

    # And everyone agrees
    progress = tracker.status(batch.id, exact=True)
    assert (progress.batch.state, progress.done_min, progress.done_max) == ("complete", ITEMS, ITEMS)
    assert not tracker.missing(batch.id).ranges
    verdict = tracker.verify(batch.id)
    assert (verdict.pending, verdict.disagreements, verdict.repaired) == (0, (), False)


def test_producers_at_the_same_time_share_no_item(new_tracker, tracker) -> None:
    # Given four producers that add to one batch while others ack what they get
    batch = tracker.attach(tracker.open().batch_id)

    def produce(_):
        own = new_tracker()
        groups = [own.add(batch.id, 100) for _ in range(2)]
        for group in groups:
            own.ack(group)
        return groups

    # When all are done and the batch is closed
    with ThreadPoolExecutor(4) as pool:
        groups = [group for answer in pool.map(produce, range(4)) for group in answer]
    row = batch.close()

    # Then no two had an item in common, and none is left
    assert len({item for group in groups for item in group}) == 4 * 2 * 100
    assert (row.state, row.items) == ("complete", 800)


def test_closing_at_the_same_time_as_the_last_ack_completes_once(
    new_tracker, tracker, subscriber, order
) -> None:
    # Given batches with one item left
    trackers = [new_tracker(), new_tracker()]
    batches = [tracker.attach(tracker.open().batch_id) for _ in range(10)]
    groups = [batch.add(65) for batch in batches]
    tracker.ack(item for group in groups for item in group[:64])

    # When each is closed and its last item acked, at the same time
    with ThreadPoolExecutor(2) as pool:
        for batch, group in zip(batches, groups, strict=True):
            acked = pool.submit(trackers[0].ack, group[64])
            closed = pool.submit(trackers[1].close, batch.id)
            acked.result()
            closed.result()

    # Then each is complete, with one event
    events = subscriber.only_events_of([batch.id for batch in batches])
    assert {event["detail-type"] for event in events.values()} == {"Batch Completed"}


def test_many_that_open_under_one_key_have_one_batch(new_tracker) -> None:
    # Given eight callers with the same request and key
    key = uuid.uuid4().hex

    # When all open at the same time, and one of them once more
    with ThreadPoolExecutor(8) as pool:
        found = {row.batch_id for row in pool.map(lambda _: new_tracker().open(key=key), range(8))}
    again = new_tracker().open(key=key)

    # Then it is one batch, and another request under the key is refused
    assert found == {again.batch_id}
    with pytest.raises(IdempotencyKeyReused):
        new_tracker().open(key=key, user_key="other")


def test_one_key_is_one_item_however_many_add_it_at_once(new_tracker, tracker, order) -> None:
    # Given the same keys for each of eight threads, in another order
    batch = tracker.attach(tracker.open().batch_id)
    keys = [f"page {n}" for n in range(60)]
    shares = [order.sample(keys, len(keys)) for _ in range(THREADS)]

    # When they add them at the same time, a few in a call, through an API that is many processes
    def add(share):
        own = new_tracker().attach(batch.id)
        return [one for at in range(0, len(share), 10) for one in own.add(keys=share[at : at + 10])]

    with ThreadPoolExecutor(THREADS) as pool:
        answers = [one for answer in pool.map(add, shares) for one in answer]

    # Then each key is one item, and only one of them has added it
    assert tracker.status(batch.id).batch.items == tracker.status(batch.id).batch.keyed == len(keys)
    assert {(one.key, one.item) for one in answers} == {
        (key, tracker.find_key(batch.id, key).item) for key in keys
    }
    assert sorted(one.key for one in answers if one.added) == sorted(keys)
