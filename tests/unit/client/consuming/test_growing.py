"""Handlers that add items to the batch of their own message."""

from datetime import timedelta

import pytest

from fanin import ItemFailed, ReceivedMessage, Tracker
from fanin.errors import BatchClosed, InvalidRequest

MINUTE = timedelta(minutes=1)


@pytest.mark.parametrize("keys", [None, lambda body: body])
def test_a_delivery_after_a_crash_sends_what_no_note_says_was_sent_and_adds_nothing_twice(service, keys):
    # Given a handler that dies: once when it has added items and sent none, once when it has sent them
    tracker, url = service.tracker, service.queue("work", visibility_timeout=30)
    received: list[str] = []
    send = service.sqs.send_message_batch

    def die(**request: object) -> object:
        service.sqs.send_message_batch = send
        raise RuntimeError("the process dies")

    def handle(message: ReceivedMessage) -> None:
        received.append(message.body)
        if message.body == "root":
            if message.receive_count == 1:
                service.sqs.send_message_batch = die
            message.add_items(["a", "b"], url, keys=keys)
            if message.receive_count == 2:
                raise RuntimeError("the process dies")

    service.consume(url, tracker.sqs_handler(handle))
    # When its message comes until it goes through
    with tracker.batch(close="drained") as batch:
        batch.send(url, ["root"])
    for _ in range(3):
        service.advance(MINUTE)
    # Then each item was added and sent once, and one event tells that all are done
    assert sorted(received) == ["a", "b", "root", "root", "root"]
    assert tracker.status(batch.id).batch.items == 3
    assert [event.detail_type for event in service.events] == ["Batch Completed"]


def test_an_item_that_cannot_add_because_the_batch_is_full_fails_and_the_batch_ends(service):
    tracker, url = service.tracker, service.queue("work")
    service.consume(url, tracker.sqs_handler(lambda message: message.add_items(["more", "and more"], url)))

    with tracker.batch(close="drained", max_items=10) as batch:
        batch.send(url, ["first"])

    row = tracker.status(batch.id).batch
    assert (row.state, row.items, row.failed) == ("complete", 9, 5)
    reason = tracker.failures(batch.id).failures[0].reason
    assert (
        reason == f"batch {batch.id} has 9 items and takes 10 in all, so 2 more do not fit; nothing was added"
    )


def test_items_that_are_redriven_may_add_to_the_batch_that_has_them_then(service):
    tracker, url = service.tracker, service.queue("work")
    broken = [True]

    def handle(message: ReceivedMessage) -> None:
        if broken and message.body == "root":
            broken.clear()
            raise ItemFailed("no")
        message.add_items(["leaf"] if message.body == "root" else [], url)

    service.consume(url, tracker.sqs_handler(handle))
    with tracker.batch(close="drained") as batch:
        batch.send(url, ["root"])

    again = tracker.redrive(batch.id)

    row = tracker.status(again.batch_id or 0).batch
    assert (row.state, row.items, row.failed) == ("complete", 2, 0)


def test_only_the_handler_of_an_item_can_add(service):
    message = ReceivedMessage("m", "body", None, {}, None, 1, {})

    with pytest.raises(InvalidRequest, match="only the handler of a message with an item id"):
        message.add_items(["x"], service.queue("work"))


def test_a_message_is_not_dropped_because_the_item_of_another_is_done(service):
    # Given a handler that adds in the name of an item that is done
    tracker, url = service.tracker, service.queue("work", visibility_timeout=30)
    other = tracker.open()
    done = tracker.add(other.batch_id, 2)[0]
    tracker.ack(done)
    service.consume(url, tracker.sqs_handler(lambda _: tracker.add(other.batch_id, 1, item=done)))

    with tracker.batch() as batch:
        batch.send(url, ["work"])

    assert (
        service.sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["All"])["Attributes"][
            "ApproximateNumberOfMessagesNotVisible"
        ]
        == "1"
    )


@pytest.mark.parametrize("keys", [None, lambda body: body])
def test_a_delivery_sends_nothing_once_the_batch_was_cancelled(service, keys):
    tracker, url = service.tracker, service.queue("work", visibility_timeout=30)
    received: list[str] = []

    def handle(message: ReceivedMessage) -> None:
        received.append(message.body)
        message.add_items(["a"], "https://sqs/there-is-none", keys=keys)

    service.consume(url, tracker.sqs_handler(handle, skip_ended=False))
    with tracker.batch(close="drained") as batch:
        batch.send(url, ["root"])
    assert tracker.status(batch.id).batch.items == 2

    tracker.cancel(batch.id)
    with pytest.raises(BatchClosed, match="cancelled"):
        tracker.add(
            batch.id, **({"count": 1} if keys is None else {"keys": ["a"]}), item=first(tracker, batch.id)
        )
    assert set(received) == {"root"}


def first(tracker: Tracker, batch_id: int) -> str:
    return f"{tracker.missing(batch_id).ranges[0].group}:0"
