"""Scatters, frames, buffers, and events that are routed by their content."""

import json
import uuid

import pytest

from fanin import OpenFrame, PutEvent, PutRoute, Register, names
from fanin.domain.frames import Hold, Ticket
from fanin.domain.scatter import Recipient
from fanin.errors import LimitReached
from tests.behaviour.world import take


def test_a_recipient_that_is_silent_at_first_is_asked_again(world):
    # Given two recipients, of which one lets the first message go by
    tracker, here, slow = world.tracker, world.queue(channel=True), world.queue(channel=True)
    to = [Recipient("here", here), Recipient("slow", slow)]
    started = tracker.scatters.start(to, {"week": 47}, timeout=5, max_retries=1)
    batch_id = started.batch.batch_id
    (message,) = take(world, here)
    (missed,) = take(world, slow)
    assert message.json() == {"week": 47}
    assert tracker.scatters.reply(message, {"km": 1}).first
    # When the timeout is over, and it replies to the second, through the queue
    (again,) = take(world, slow)
    assert again.item == missed.item
    tracker.scatters.reply_later(again, {"km": 2})
    # Then all is gathered, and the bus told once
    event = world.only_event(batch_id)
    assert event.detail_type == "Gather Ready"
    assert (event.detail["received"], event.detail["retries"]) == (2, 1)
    assert {reply.name: reply.payload for reply in tracker.scatters.replies(batch_id)} == {
        "here": {"km": 1},
        "slow": {"km": 2},
    }


def test_those_who_never_reply_are_named(world):
    tracker, dead = world.tracker, world.queue(channel=True)
    started = tracker.scatters.start([Recipient("dead", dead)], "report!", timeout=5, max_retries=0)
    detail = world.only_event(started.batch.batch_id, within=40).detail
    assert (detail["partial"], detail["missing_recipients"]) == (True, ["dead"])


def test_a_frame_is_complete_when_each_envelope_was_claimed_and_marked(world):
    # Given a frame of three, of which one is another receiver's
    tracker, channel = world.tracker, world.queue(channel=True)
    frame = tracker.frames.open(OpenFrame(3, source="orders", reply_to=channel))
    tickets = [Ticket(frame.frame_id, index) for index in range(3)]
    (other,) = tracker.frames.claim(tickets[:1])
    claims = tracker.frames.claim(tickets)
    assert [claim.hold for claim in claims] == [Hold.LEASED, Hold.CLAIMED, Hold.CLAIMED]
    # When all are marked
    tracker.ack(claim.item for claim in claims[1:])
    assert tracker.frames.status(frame.frame_id).missing == ((0, 1),)
    tracker.ack(other.item)
    # Then its sender is told, and the bus
    (told,) = take(world, channel)
    assert told.json()["type"] == names.MESSAGE_COMPLETE_FRAME
    event = world.only_event(frame.frame_id)
    assert (event.detail_type, event.detail["metadata"]["source"]) == ("Frame Completed", "orders")


def test_a_frame_that_stalls_is_requested_again_once_and_then_given_up(world):
    tracker, channel = world.tracker, world.queue(channel=True)
    frame = tracker.frames.open(OpenFrame(70, reply_to=channel, ttl=60))

    world.idle(frame.frame_id, 120)
    (asked,) = take(world, channel)
    assert (asked.json()["type"], asked.json()["missing"]) == (names.MESSAGE_REPEAT_REQUESTED, [[0, 70]])
    assert tracker.frames.status(frame.frame_id).state == "closed"

    world.idle(frame.frame_id, 120)
    (ended,) = take(world, channel)
    assert ended.json()["type"] == names.MESSAGE_FRAME_ENDED
    assert world.only_event(frame.frame_id).detail_type == "Frame Timed Out"


def test_a_buffer_takes_no_more_than_its_limit(world):
    # Given a buffer that is full
    tracker, name = world.tracker, f"jobs-{uuid.uuid4().hex[:8]}"
    tracker.buffers.define(name, 2)
    producer = tracker.producer(name)
    producer.put("one", "two")
    with pytest.raises(LimitReached):
        producer.put_now("three")
    # When one of its work is taken and done
    (work,) = world.until(lambda: tracker.buffers.take(name, most=1, wait=1))
    assert tracker.buffers.status(name).pending == 2
    tracker.taker(name).done(work)
    # Then there is room for one more, and the rest comes out
    producer.put_now("three")
    found = [work.payload]
    taker = tracker.taker(name, wait=1)
    while len(found) < 3:
        taker.run(found.append, until_empty=True)
    assert sorted(found) == ["one", "three", "two"]
    assert tracker.buffers.status(name).pending == 0
    tracker.buffers.delete(name)


def test_an_event_reaches_those_whom_its_route_names(world):
    # Given a route to a topic in which one is registered
    tracker, url = world.tracker, world.queue(channel=True)
    name = f"orders-{uuid.uuid4().hex[:8]}"
    tracker.directory.register(Register(name, "north", url))
    tracker.routing.put(PutRoute(name, {"source": [name], "detail": {"kind": ["order"]}}, name))
    # When an event comes that matches, and one that does not
    tracker.routing.publish(PutEvent(name, "Placed", {"kind": "note"}))
    sent = tracker.routing.publish(PutEvent(name, "Placed", {"kind": "order", "total": 120}))
    # Then the registered one gets it, with its correlation id
    (message,) = take(world, url)
    assert json.loads(message.body)["detail"]["total"] == 120
    assert message.attributes[names.ATTRIBUTE_CORRELATION] == sent.correlation_id
    tracker.routing.delete(name)
