"""The calls that read batches, on the ledger in memory."""

from datetime import timedelta
from types import SimpleNamespace

import pytest

from fanin import Tracker
from fanin.adapters.memory import Memory
from fanin.app.ledger.service import LedgerService
from fanin.domain.paging import pages


@pytest.fixture
def tracker(memory) -> Tracker:
    return Tracker(SimpleNamespace(ledger=LedgerService(memory.ports())))


def test_missing_is_followed_over_pages(tracker):
    group = tracker.add(tracker.open().batch_id, 5_000)
    tracker.ack(group[1::2])
    spans = list(tracker.iter_missing(group.batch_id))
    assert [span.start for span in spans] == list(range(0, 5_000, 2))
    assert tracker.missing(group.batch_id, limit=3).cursor is not None


def test_an_exact_status_counts_more_words_than_one_call_reads(tracker):
    # Given a batch in which an item of each of its 1,563 words is done, and some have failed
    group = tracker.add(tracker.open().batch_id, 100_000)
    tracker.ack(group[::64])
    tracker.fail({group[1]: "no"})
    one_call = tracker.ledger.status(group.batch_id, exact=True)
    assert one_call.done_min < one_call.done_max

    counted = tracker.status(group.batch_id, exact=True)

    assert (counted.done_min, counted.done_max) == (1_564, 1_564)
    assert counted.cost == one_call.cost is not None
    assert not tracker.status(group.batch_id).exact


def test_items_that_are_added_while_an_exact_status_counts_are_not_in_it(tracker, monkeypatch):
    group = tracker.add(tracker.open().batch_id, 100_000)
    tracker.ack(group[::64])
    pages = tracker.ledger.missing

    def missing(batch_id, **options):
        tracker.add(batch_id, 64)
        return pages(batch_id, **options)

    monkeypatch.setattr(tracker.ledger, "missing", missing)
    counted = tracker.status(group.batch_id, exact=True)

    assert (counted.batch.items, counted.done_min) == (100_000, 1_563)


def test_batches_of_a_user_key_are_followed_over_pages(tracker, memory, monkeypatch):
    # Given 20 batches of a key, every second one cancelled, and pages of three
    monkeypatch.setattr("fanin.client.reading.MAX_PAGE", 3)
    opened = []
    for n in range(20):
        memory.clock.advance(1_000)
        opened.append(tracker.open(user_key="nightly").batch_id)
        if n % 2:
            tracker.cancel(opened[-1])
    tracker.open(user_key="weekly")
    # Then all are there, or those in the state, and the newest is the first
    newest = opened[::-1]
    assert [batch.batch_id for batch in tracker.iter_batches(user_key="nightly")] == newest
    assert [batch.batch_id for batch in tracker.iter_batches("open", user_key="nightly")] == newest[1::2]
    assert [b.batch_id for b in tracker.list("cancelled", user_key="nightly", limit=2).batches] == newest[:1]


def test_wait_looks_more_and_more_rarely_and_gives_up_at_its_time():
    # Given a clock that moves only while somebody waits
    class Clock:
        at, slept = 0.0, []

        def now(self):
            return 0

        def monotonic(self):
            return self.at

        def sleep(self, seconds):
            self.slept.append(seconds)
            self.at += seconds

    clock = Clock()
    tracker = Tracker(SimpleNamespace(ledger=LedgerService(Memory().ports())), clock=clock)
    batch_id = tracker.open().batch_id

    with pytest.raises(TimeoutError, match=r"still open after 20\.0 s"):
        tracker.wait(batch_id, timedelta(seconds=20))
    # Then each wait was twice as long as the one before, up to five seconds, and the last one is cut short
    assert clock.slept == [0.25, 0.5, 1, 2, 4, 5, 5, 2.25]


# The pages of an answer.


def test_pages_are_followed_to_the_last_even_over_an_empty_one():
    answers = {None: ([1], "a"), "a": ([], "b"), "b": ([2, 3], None)}

    def read(cursor=None):
        things, following = answers[cursor]
        return SimpleNamespace(things=things, cursor=following)

    assert [page.things for page in pages(read)] == [[1], [], [2, 3]]


def test_a_page_is_read_when_it_is_asked_for():
    asked = []

    def read(cursor=None):
        asked.append(cursor)
        return SimpleNamespace(cursor="more")

    endless = pages(read)
    next(endless)
    next(endless)
    assert asked == [None, "more"]
