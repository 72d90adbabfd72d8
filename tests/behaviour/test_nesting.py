"""Handlers that hand their item on to a batch of their own, and messages of theirs that come again."""

from itertools import count

from fanin import ItemFailed, ReceivedMessage
from tests.behaviour.world import World

ROWS = [{"row": n} for n in range(25)]


def test_an_item_waits_for_the_batch_that_its_handler_opened(world):
    # Given a message whose handler fans out further
    tracker, orders, rows = world.tracker, world.queue(), world.queue()
    with tracker.batch() as parent:
        parent.send(orders, ["catalog"])

    def fan_out(message: ReceivedMessage) -> None:
        with tracker.batch(parent_item=message.item) as child:
            child.send(rows, ROWS)

    # When it is handled, then the item is not done
    consumer = tracker.consumer(orders, fan_out, wait=1)
    world.until(consumer.poll)
    assert tracker.status(parent.id, exact=True).done_min == 0
    # When the last row is done, then the parent's batch is
    work(world, rows)
    event = world.only_event(parent.id)
    assert (event.detail_type, event.detail["failed"]) == ("Batch Completed", 0)


def test_a_handler_that_breaks_off_goes_on_with_the_same_batch(world):
    # Given a handler that dies twice: while it sends, and after its block
    tracker, orders, rows = world.tracker, world.queue(), world.queue()
    with tracker.batch() as parent:
        parent.send(orders, ["catalog"])
    children: list[int] = []

    def fan_out(message: ReceivedMessage) -> None:
        with tracker.batch(parent_item=message.item) as child:
            children.append(child.id)
            child.send(rows, ROWS[:10])
            if len(children) == 1:
                raise RuntimeError("died while it sent")
            child.send(rows, ROWS[10:])
        if len(children) == 2:
            raise RuntimeError("died after it had sent")

    # When the message comes again until it is handled
    consumer = tracker.consumer(orders, fan_out, wait=1, visibility_timeout=1)
    polls = count()
    consumer.run(until=lambda: len(children) == 3 or next(polls) > 20)
    # Then all ran for one batch, which has an item for each row
    assert len(set(children)) == 1
    assert tracker.status(children[0]).batch.items == len(ROWS)
    # And its last row completes the parent's batch, without a failure
    assert work(world, rows) == len(ROWS) + 10
    event = world.only_event(parent.id)
    assert (event.detail_type, event.detail["failed"]) == ("Batch Completed", 0)


def test_a_message_that_comes_when_all_is_done_is_deleted(world):
    # Given an item whose child is complete, and with it the parent's batch
    tracker, orders, rows = world.tracker, world.queue(), world.queue()
    with tracker.batch() as parent:
        (item,) = parent.add(1)
    handled: list[str | None] = []

    def fan_out(message: ReceivedMessage) -> None:
        with tracker.batch(parent_item=message.item) as child:
            child.send(rows, ROWS)
        handled.append(message.item)

    consumer = tracker.consumer(orders, fan_out, wait=1, visibility_timeout=1)
    send(world, orders, item)
    consumer.run(until=lambda: len(handled) == 1)
    work(world, rows)
    world.only_event(parent.id)
    # When the message comes once more
    send(world, orders, item)
    polls = count()
    consumer.run(until=lambda: len(handled) == 2 or next(polls) > 20)
    assert len(handled) == 2
    # Then it is handled and deleted, and no row is sent again
    assert consumer.poll() == 0
    assert tracker.consumer(rows, lambda _: None, wait=1).poll() == 0


def test_a_handler_that_gives_up_cancels_its_batch_and_fails_the_item(world):
    tracker, orders, rows = world.tracker, world.queue(), world.queue()
    with tracker.batch() as parent:
        parent.send(orders, ["catalog"])
    children: list[int] = []

    def fan_out(message: ReceivedMessage) -> None:
        with tracker.batch(parent_item=message.item) as child:
            children.append(child.id)
            child.send(rows, ROWS[:3])
            raise ItemFailed("the catalog is torn")

    world.until(tracker.consumer(orders, fan_out, wait=1).poll)
    assert world.only_event(parent.id).detail["failed"] == 1
    assert world.only_event(children[0]).detail_type == "Batch Cancelled"


def send(world: World, queue_url: str, item: str) -> None:
    """Send a message of an item, as its producer would."""
    attributes = {"fanin-item": {"DataType": "String", "StringValue": item}}
    world.tracker.sqs.send_message(QueueUrl=queue_url, MessageBody="catalog", MessageAttributes=attributes)


def work(world: World, queue_url: str) -> int:
    """Do all rows of a queue, and count the messages."""
    handled = 0
    consumer = world.tracker.consumer(queue_url, lambda _: None, wait=1)
    while received := consumer.poll():
        handled += received
    return handled
