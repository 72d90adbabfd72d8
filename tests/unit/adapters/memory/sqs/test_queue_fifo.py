"""A FIFO queue as SQS keeps it: in order within a group, and nothing twice in five minutes."""

import pytest

from fanin.adapters.memory.sqs import Queue
from fanin.adapters.memory.sqs.queue import DEDUPLICATION_MS
from tests.unit.adapters.memory.sqs.conftest import NOW


def send(queue: Queue, *bodies: str) -> None:
    """Send messages such as ``x1``, of group x."""
    for body in bodies:
        queue.send(body, {}, group_id=body[0], dedup_id=body)


def bodies(queue: Queue, most: int = 10) -> list[str]:
    return [held.body for held in queue.receive(most, None)]


def test_nothing_of_a_group_is_received_while_one_of_it_is_hidden(fifo):
    send(fifo, "x1", "x2", "y1", "x3")
    (first,) = fifo.receive(1, None)
    assert first.body == "x1"

    assert bodies(fifo) == ["y1"]
    fifo.remove(first.handle)
    assert bodies(fifo, most=1) == ["x2"]
    assert bodies(fifo) == []


def test_several_of_a_group_come_at_once_in_order_and_the_next_when_the_first_is_visible(fifo, clock):
    send(fifo, "x1", "x2", "x3")
    first, second = fifo.receive(2, None)
    assert (first.body, second.body, bodies(fifo)) == ("x1", "x2", [])

    first.visible_at, second.visible_at = clock.now() + 2_000, clock.now() + 1_000
    assert fifo.next_visible() == clock.now() + 2_000


def test_a_message_that_comes_again_comes_before_those_behind_it(fifo, clock):
    send(fifo, "x1", "x2")
    assert bodies(fifo, most=1) == ["x1"]

    clock.advance(30_000)

    assert bodies(fifo) == ["x1", "x2"]


def test_a_standard_queue_only_carries_groups_along(queue):
    send(queue, "x1", "x2")

    assert [bodies(queue, most=1), bodies(queue, most=1)] == [["x1"], ["x2"]]


@pytest.mark.parametrize(("after", "bodies_"), [(DEDUPLICATION_MS - 1, []), (DEDUPLICATION_MS, ["x1"])])
def test_a_message_sent_again_within_five_minutes_is_the_first_one(fifo, clock, after, bodies_):
    # Given a message that was sent, handled and removed
    first = fifo.send("x1", {}, group_id="x", dedup_id="d")
    fifo.remove(fifo.receive(1, None)[0].handle)
    # When it is sent again
    clock.advance(after)
    again = fifo.send("x1", {}, group_id="x", dedup_id="d")
    # Then it is told as the same, and does not come again, within that time
    assert (again.message_id == first.message_id) is (bodies_ == [])
    assert bodies(fifo) == bodies_


def test_messages_are_numbered_in_the_order_they_were_sent(fifo):
    sequences = [fifo.send(f"x{n}", {}, group_id="x", dedup_id=str(n)).sequence for n in range(3)]

    assert sequences == sorted(set(sequences))


def test_the_next_message_of_a_group_is_visible_when_its_first_one_is(fifo):
    send(fifo, "x1", "x2", "y1")
    fifo.receive(1, 9)
    assert fifo.next_visible() == NOW  # y1

    (other,) = fifo.receive(1, 4)
    assert other.body == "y1"
    assert fifo.next_visible() == NOW + 4_000


def test_a_dead_message_opens_the_way_for_its_group(fifo, queue):
    fifo.dead_letters, fifo.max_receives = queue, 1
    send(fifo, "x1", "x2")
    fifo.receive(1, 0)

    assert bodies(fifo) == ["x2"]
    assert bodies(queue) == ["x1"]
