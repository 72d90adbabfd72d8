"""Messages sent as a batch and handled by consumers that succeed, give up, or never get through."""

import pytest

from fanin import ItemFailed, ReceivedMessage


@pytest.mark.parametrize("via", ["api", "queue"])
def test_every_message_is_handled_and_its_item_marked(world, via):
    # Given forty messages on a queue
    tracker, url = world.tracker, world.queue()
    with tracker.batch() as batch:
        assert batch.send(url, ({"n": n} for n in range(40))) == 40
    seen: list[int] = []

    # When a consumer gives one of them up
    def handle(message: ReceivedMessage) -> None:
        seen.append(message.json()["n"])
        if message.json()["n"] == 13:
            raise ItemFailed("unlucky")

    consumer = tracker.consumer(url, handle, via=via, wait=1)
    while len(set(seen)) < 40:
        consumer.poll()
    # Then the batch completes, with that failure
    event = world.only_event(batch.id)
    assert (event.detail_type, event.detail["failed"]) == ("Batch Completed", 1)
    assert [failure["reason"] for failure in event.detail["failures"]] == ["unlucky"]


def test_a_message_that_no_consumer_survives_fails_its_item(world):
    # Given three messages, one of which is handled at its second try, and one never
    tracker, url = world.tracker, world.tracked_queue()
    with tracker.batch() as batch:
        batch.send(url, ["fine", "flaky", "deadly"])
    tries: dict[str, int] = {}

    def handle(message: ReceivedMessage) -> None:
        tries[message.body] = tries.get(message.body, 0) + 1
        if message.body == "deadly" or (message.body == "flaky" and tries["flaky"] == 1):
            raise RuntimeError(message.body)

    # When a consumer polls until the batch has ended
    consumer = tracker.consumer(url, handle, wait=1, visibility_timeout=1)
    consumer.run(until=lambda: tracker.status(batch.id).batch.state.terminal)
    # Then the message was tried five times, and its item has failed for that
    assert tries == {"fine": 1, "flaky": 2, "deadly": 5}
    (failure,) = world.only_event(batch.id).detail["failures"]
    assert failure["reason"].startswith("dead letter: received 6 times from ")


def test_what_is_acknowledged_later_is_marked(world):
    tracker = world.tracker
    with tracker.batch() as batch:
        group = batch.add(100)
    tracker.ack_later(group)
    assert world.only_event(batch.id).detail["items"] == 100
