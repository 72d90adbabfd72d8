"""A queue in memory over time."""

from __future__ import annotations

import pytest

from fanin.adapters.memory import FixedClock, SeededRandom
from fanin.adapters.memory.sqs import Queue, QueueStore


@pytest.fixture
def clock() -> FixedClock:
    return FixedClock()


@pytest.fixture
def store(clock: FixedClock) -> QueueStore:
    return QueueStore(clock, SeededRandom())


@pytest.fixture
def queue(store: QueueStore) -> Queue:
    return store.create("work", {"VisibilityTimeout": "10", "MessageRetentionPeriod": "3600"}, {})


def bodies(queue: Queue, most: int = 10, visibility_timeout: int | None = None) -> list[str]:
    return [held.body for held in queue.receive(most, visibility_timeout)]


def test_a_message_comes_again_when_its_visibility_timeout_is_over(queue: Queue, clock: FixedClock) -> None:
    queue.send("x", {})
    (held,) = queue.receive(1, None)
    clock.advance(9_999)
    assert bodies(queue) == []
    assert queue.next_visible() == clock.now() + 1
    clock.advance(1)
    assert bodies(queue) == ["x"]
    assert held.received == 2


def test_an_old_receipt_handle_removes_nothing(queue: Queue, clock: FixedClock) -> None:
    queue.send("x", {})
    old = queue.receive(1, 0)[0].handle
    new = queue.receive(1, None)[0].handle
    queue.remove(old)
    assert queue.counts() == (0, 1, 0)
    queue.remove(new)
    queue.remove(new)
    assert queue.counts() == (0, 0, 0)


def test_a_delayed_message_is_counted_as_such(queue: Queue, clock: FixedClock) -> None:
    queue.send("x", {}, delay=5)
    assert queue.counts() == (0, 0, 1)
    assert queue.next_visible() == clock.now() + 5_000
    clock.advance(5_000)
    assert queue.counts() == (1, 0, 0)


def test_a_message_past_its_retention_is_gone(queue: Queue, clock: FixedClock) -> None:
    queue.send("old", {})
    clock.advance(1_800_000)
    queue.send("young", {})
    clock.advance(1_800_000)
    assert bodies(queue) == ["young"]
    clock.advance(3_600_000)
    assert queue.next_visible() is None


def test_a_dead_letter_keeps_its_id_its_tries_and_where_it_died(
    store: QueueStore, queue: Queue, clock: FixedClock
) -> None:
    # Given a queue with one try a message, and three messages
    grave = store.create("grave", {}, {})
    queue.dead_letters, queue.max_receives = grave, 1
    sent = [queue.send(f"{n}", {}).message_id for n in range(3)]
    assert bodies(queue, 2, 0) == ["0", "1"]
    # When it is received from again
    assert bodies(queue) == ["2"]
    # Then those that had their try are in the other queue
    dead = grave.receive(10, None)
    assert [held.message_id for held in dead] == sent[:2]
    assert {(held.received, held.died_in) for held in dead} == {(2, queue.arn)}


def test_dead_letters_do_not_take_the_place_of_live_messages(store: QueueStore, queue: Queue) -> None:
    queue.dead_letters, queue.max_receives = store.create("grave", {}, {}), 1
    for n in range(12):
        queue.send(f"{n}", {})
    assert len(bodies(queue, 10, 0)) == 10
    assert bodies(queue, 2) == ["10", "11"]


@pytest.mark.parametrize("share", [1.0, 0.5])
def test_a_share_of_the_messages_is_delivered_twice(store: QueueStore, queue: Queue, share: float) -> None:
    queue.duplicated = share
    for n in range(100):
        queue.send(f"{n}", {})
    counts = dict.fromkeys((f"{n}" for n in range(100)), 0)
    while messages := queue.receive(10, None):
        for held in messages:
            assert held.received == 1  # each copy has its own tries
            counts[held.body] += 1
            queue.remove(held.handle)
    assert set(counts.values()) <= {1, 2}
    twice = sum(count == 2 for count in counts.values())
    assert twice == 100 if share == 1 else 30 < twice < 70


class TestFifo:
    @pytest.fixture
    def queue(self, store: QueueStore) -> Queue:
        return store.create("work.fifo", {"VisibilityTimeout": "10"}, {})

    @staticmethod
    def send(queue: Queue, *names: str) -> None:
        for name in names:
            queue.send(name, {}, group_id=name[0], dedup_id=name)

    def test_nothing_of_a_group_comes_before_what_is_hidden(self, queue: Queue, clock: FixedClock) -> None:
        self.send(queue, "a1", "a2", "b1")
        assert bodies(queue, 1) == ["a1"]
        assert bodies(queue) == ["b1"]
        assert queue.next_visible() == clock.now() + 10_000
        clock.advance(10_000)
        assert bodies(queue) == ["a1", "a2", "b1"]

    def test_several_of_a_group_come_at_once_in_order(self, queue: Queue) -> None:
        self.send(queue, "a1", "a2", "a3")
        assert bodies(queue, 2) == ["a1", "a2"]
        assert bodies(queue) == []

    def test_the_next_of_a_group_is_the_first_that_is_hidden(self, queue: Queue, clock: FixedClock) -> None:
        self.send(queue, "a1", "a2")
        first, second = queue.receive(2, None)
        first.visible_at, second.visible_at = clock.now() + 2_000, clock.now() + 1_000
        assert queue.next_visible() == clock.now() + 2_000

    def test_a_repeat_within_five_minutes_is_the_same_message(self, queue: Queue, clock: FixedClock) -> None:
        first = queue.send("x", {}, group_id="g", dedup_id="d")
        clock.advance(299_999)
        assert queue.send("y", {}, group_id="g", dedup_id="d") is first
        clock.advance(1)
        assert queue.send("z", {}, group_id="g", dedup_id="d") is not first
        assert bodies(queue) == ["x", "z"]


def test_the_same_seed_gives_the_same_ids(clock: FixedClock) -> None:
    ids = {
        QueueStore(clock, SeededRandom(seed)).create("work", {}, {}).send("x", {}).message_id
        for seed in (1, 1, 2)
    }
    assert len(ids) == 2
