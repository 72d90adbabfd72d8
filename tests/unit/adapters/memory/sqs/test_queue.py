"""A standard queue as SQS keeps it: hidden after a receive, back again, dead after too many tries.

The queues of one service: found by URL and by ARN, made once, with dead letters that must be there.
"""

import json

import pytest

from fanin.adapters.memory import SeededRandom
from fanin.adapters.memory.sqs import Queue, QueueStore
from tests.unit.adapters.memory.sqs.conftest import NOW

SECOND = 1000


def send(queue: Queue, *bodies: str) -> None:
    for body in bodies:
        queue.send(body, {})


def bodies(queue: Queue, most: int = 10, visibility_timeout: int | None = None) -> list[str]:
    return [held.body for held in queue.receive(most, visibility_timeout)]


@pytest.mark.parametrize(("asked", "seconds"), [(None, 30), (7, 7)])
def test_a_received_message_is_hidden_for_its_visibility_timeout(queue, clock, asked, seconds):
    send(queue, "a")
    assert bodies(queue, visibility_timeout=asked) == ["a"]

    clock.advance(seconds * SECOND - 1)
    assert bodies(queue) == []
    clock.advance(1)
    assert bodies(queue) == ["a"]


def test_each_delivery_has_a_handle_and_a_count_and_the_message_one_id(queue, clock):
    send(queue, "a")
    (held,) = queue.receive(1, 0)
    first = held.handle, held.message_id
    clock.advance(SECOND)
    (held,) = queue.receive(1, 0)

    assert held.handle != first[0]
    assert held.message_id == first[1]
    assert (held.received, held.first_received_at, held.sent_at) == (2, NOW, NOW)


def test_only_the_handle_of_the_last_delivery_removes_a_message(queue):
    send(queue, "a")
    old = queue.receive(1, 0)[0].handle
    new = queue.receive(1, 0)[0].handle

    queue.remove(old)
    assert queue.find(new) is not None
    queue.remove(new)
    queue.remove(new)
    assert (queue.find(new), bodies(queue)) == (None, [])


@pytest.mark.parametrize("handle", ["", "x", "jobs#", "jobs##", "jobs#none#1", "other#none#1"])
def test_a_handle_that_the_queue_never_gave_finds_nothing(queue, handle):
    send(queue, "a")

    assert queue.find(handle) is None
    queue.remove(handle)
    assert bodies(queue) == ["a"]


def test_no_more_are_received_than_were_asked_for_oldest_first(queue):
    send(queue, *"abc")

    assert [bodies(queue, most=2), bodies(queue, most=2)] == [["a", "b"], ["c"]]


@pytest.mark.parametrize(("delay", "seconds"), [(None, 5), (9, 9), (0, 0)])
def test_a_delay_is_the_messages_own_or_the_queues(store, clock, delay, seconds):
    queue = store.create("slow", {"DelaySeconds": "5"}, {})
    queue.send("a", {}, delay=delay)
    if seconds:
        assert queue.counts() == (0, 0, 1)
        clock.advance(seconds * SECOND - 1)
        assert bodies(queue) == []
        clock.advance(1)

    assert bodies(queue) == ["a"]


def test_the_counts_tell_visible_hidden_and_delayed_apart(queue, clock):
    send(queue, *"abc")
    queue.send("d", {}, delay=5)
    queue.receive(1, 5)
    assert queue.counts() == (2, 1, 1)

    clock.advance(5 * SECOND)
    assert queue.counts() == (4, 0, 0)


def test_a_message_past_its_retention_is_gone_though_it_is_hidden(store, clock):
    queue = store.create("short", {"MessageRetentionPeriod": "60"}, {})
    send(queue, "old")
    queue.receive(1, 600)
    clock.advance(59 * SECOND)
    send(queue, "new")
    assert queue.counts() == (1, 1, 0)

    clock.advance(1 * SECOND)
    assert queue.counts() == (1, 0, 0)
    clock.advance(59 * SECOND)
    assert queue.counts() == (0, 0, 0)
    assert queue.next_visible() is None


def test_a_message_received_too_often_moves_whole_to_the_dead_letters(store, queue, clock):
    # Given a queue that gives a message up after two deliveries
    work = store.create("work", {}, {})
    work.dead_letters, work.max_receives = queue, 2
    sent = work.send("poison", {"kind": {"DataType": "String", "StringValue": "trip"}})
    send(work, "good")
    assert [bodies(work, 1, 0), bodies(work, 1, 0)] == [["poison"], ["poison"]]
    # When it is received once more, then the next one comes in its place
    assert bodies(work, 1, 0) == ["good"]
    # And it lies in the other queue, as it was sent, and its tries go on
    (dead,) = queue.receive(10, None)
    assert (dead.message_id, dead.body, dead.attributes) == (sent.message_id, "poison", sent.attributes)
    assert (dead.died_in, dead.sent_at, dead.received) == (work.arn, NOW, 3)
    assert queue.find(dead.handle) is dead


def test_dead_letters_do_not_take_the_place_of_live_messages(store, queue):
    work = store.create("work", {}, {})
    work.dead_letters, work.max_receives = queue, 1
    send(work, *(f"{n}" for n in range(12)))
    assert len(bodies(work, 10, 0)) == 10
    assert bodies(work, 2) == ["10", "11"]


@pytest.mark.parametrize("share", [1.0, 0.5])
def test_a_share_of_the_messages_is_delivered_twice(queue, share):
    queue.duplicated = share
    send(queue, *(f"{n}" for n in range(100)))
    counts = dict.fromkeys((f"{n}" for n in range(100)), 0)
    while messages := queue.receive(10, None):
        for held in messages:
            assert held.received == 1  # each copy has its own tries
            counts[held.body] += 1
            queue.remove(held.handle)
    assert set(counts.values()) <= {1, 2}
    twice = sum(count == 2 for count in counts.values())
    assert twice == 100 if share == 1 else 30 < twice < 70


def test_the_same_seed_gives_the_same_ids(clock):
    ids = {
        QueueStore(clock, SeededRandom(seed)).create("work", {}, {}).send("x", {}).message_id
        for seed in (1, 1, 2)
    }
    assert len(ids) == 2


def test_without_dead_letters_a_message_comes_for_ever(queue):
    send(queue, "a")

    assert [bodies(queue, 1, 0) for _ in range(20)] == [["a"]] * 20


def test_the_next_visible_message_tells_when_to_look_again(queue, clock):
    assert queue.next_visible() is None

    queue.send("a", {}, delay=9)
    queue.send("b", {}, delay=4)
    assert queue.next_visible() == NOW + 4 * SECOND

    clock.advance(5 * SECOND)
    assert queue.next_visible() == clock.now()


def test_a_dead_message_comes_once_whatever_was_drawn_for_its_queue(store, queue):
    work = store.create("work", {}, {})
    work.dead_letters, work.max_receives, work.duplicated = queue, 1, 1.0
    send(work, "poison")
    assert [bodies(work, 1, 0), bodies(work, 1, 0)] == [["poison"], []]

    (dead,) = queue.receive(1, None)
    queue.remove(dead.handle)

    assert queue.counts() == (0, 0, 0)


def redrive(arn: str, most: object = 3) -> dict[str, str]:
    return {"RedrivePolicy": json.dumps({"deadLetterTargetArn": arn, "maxReceiveCount": most})}


def test_a_queue_has_what_sqs_gives_a_new_one(store):
    queue = store.create("jobs", {"VisibilityTimeout": "7"}, {"team": "shop"})

    assert queue.url == "memory://sqs/000000000000/jobs"
    assert queue.arn == "arn:aws:sqs:memory:000000000000:jobs"
    assert (queue.created_at, queue.tags) == (NOW, {"team": "shop"})
    assert (queue.seconds("VisibilityTimeout"), queue.seconds("MessageRetentionPeriod")) == (7, 345_600)


def test_a_queue_of_that_name_is_given_as_it_is(store, queue):
    queue.send("a", {})

    again = store.create("jobs", {"VisibilityTimeout": "7"}, {"team": "shop"})

    assert again is queue
    assert (again.seconds("VisibilityTimeout"), again.tags) == (30, {})
    assert [held.body for held in again.receive(1, None)] == ["a"]


def test_a_queue_is_found_by_its_url_and_its_arn_until_it_is_deleted(store, queue):
    assert store.find(queue.url) is queue
    assert store.by_arn(queue.arn) is queue

    queue.send("a", {})
    store.delete(queue.url)

    assert store.find(queue.url) is None
    with pytest.raises(KeyError):
        store.by_arn(queue.arn)
    assert store.create("jobs", {}, {}).receive(1, None) == []


@pytest.mark.parametrize("most", [3, "3"])
def test_dead_letters_go_where_the_redrive_policy_says(store, queue, most):
    work = store.create("work", redrive(queue.arn, most), {})

    assert (work.dead_letters, work.max_receives) == (queue, 3)


@pytest.mark.parametrize("policy", ["", "{}"])
def test_an_empty_redrive_policy_ends_it_and_other_attributes_leave_it(store, queue, policy):
    work = store.create("work", redrive(queue.arn), {})
    store.change(work, {"VisibilityTimeout": "7"})
    assert work.dead_letters is queue

    store.change(work, {"RedrivePolicy": policy})
    assert work.dead_letters is None


@pytest.mark.parametrize(
    ("policy", "error"),
    [
        ({"RedrivePolicy": "not JSON"}, ValueError),
        (redrive("arn:aws:sqs:memory:000000000000:none"), KeyError),
        (redrive("arn:aws:sqs:memory:000000000000:jobs", "many"), ValueError),
        (redrive("arn:aws:sqs:memory:000000000000:jobs", 0), ValueError),
        (redrive("arn:aws:sqs:memory:000000000000:jobs", 1001), ValueError),
        ({"RedrivePolicy": '{"deadLetterTargetArn": "arn:aws:sqs:memory:000000000000:jobs"}'}, KeyError),
    ],
)
def test_a_queue_with_a_redrive_policy_that_cannot_be_is_neither_made_nor_changed(
    store, queue, policy, error
):
    with pytest.raises(error):
        store.create("work", policy, {})
    assert store.find("memory://sqs/000000000000/work") is None

    with pytest.raises(error):
        store.change(queue, {"VisibilityTimeout": "7", **policy})
    assert (queue.dead_letters, queue.seconds("VisibilityTimeout")) == (None, 30)
