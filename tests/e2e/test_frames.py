"""Guaranteed delivery on the deployed stack, and through a proxy that injects faults."""

import time
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlsplit

import boto3
import pytest

from fanin import IdempotentReceiver, MemoryRepeatBuffer, OpenFrame, Repeater, SqliteRepeatBuffer
from fanin.client.frames.envelopes import ProtobufCodec
from fanin.client.frames.repeat_buffer import BufferUsage
from fanin.client.frames.sqs import SqsReceiver, SqsTransport, queue_notices
from fanin.local import Stack
from fanin.types import Delivery
from tests.e2e.crossing import LEASE, Crossing
from tests.e2e.deployment import eventually
from tests.e2e.faults import FAULTS, FaultProxy


class Queues(NamedTuple):
    """URLs of queues for one test.

    Attributes:
        envelopes: queue for envelopes; its visibility timeout equals the lease.
        channel: reply channel, with the tag.
    """

    envelopes: str
    channel: str


@pytest.fixture
def queues(stack: Stack) -> Queues:
    create, name = stack.client("sqs").create_queue, uuid.uuid4()
    return Queues(
        create(QueueName=f"envelopes-{name}", Attributes={"VisibilityTimeout": str(LEASE)})["QueueUrl"],
        create(QueueName=f"replies-{name}", tags={"fanin:channel": "yes"})["QueueUrl"],
    )


def test_a_frame_is_delivered_and_its_sender_is_told(stack, deployment, subscriber, tracker, queues):
    # Given a frame of thirty envelopes, of which some are lost on the way
    sqs, (envelopes, channel) = stack.client("sqs"), queues
    repeater = Repeater(
        tracker.frames,
        SqsTransport(sqs, envelopes, ProtobufCodec()),
        MemoryRepeatBuffer(),
        template=OpenFrame(100, "orders", "billing", channel),
        notices=queue_notices(sqs, channel),
    )
    for number in range(30):
        repeater.put(str(number).encode(), "text/plain")
    repeater.flush()
    (frame_id,) = repeater.buffer.frames()
    lost = deployment.receive(envelopes)
    # When they are received, and what is missing is repeated
    effects: dict[str, str] = {}

    def handle(delivery: Delivery) -> None:
        effects[delivery.item] = delivery.payload.decode()

    receiver = SqsReceiver(
        IdempotentReceiver(tracker.frames, handle, tracker.acknowledger("api"), lease=LEASE), ProtobufCodec()
    )
    while receiver.poll(sqs, envelopes, wait=0):
        pass
    missing = tracker.frames.status(frame_id).missing
    repeater.reconnected()
    repeater.tick()
    while receiver.poll(sqs, envelopes, wait=0):
        pass
    # Then the sender hears of it on its reply channel, and the bus tells everyone
    assert sum(stop - start for start, stop in missing) == len(lost) > 0
    assert sorted(effects.values(), key=int) == [str(number) for number in range(30)]
    repeater._outstanding._next[frame_id] = (time.monotonic() + 600, 0)  # from now on it only listens
    eventually(lambda: repeater.tick() == 0)
    assert repeater.buffer.usage == BufferUsage(0, 0)
    event = subscriber.only_event_of(frame_id)
    assert event["detail-type"] == "Frame Completed"
    assert event["detail"]["metadata"]["source"] == "orders"


Cross = Callable[..., tuple[Crossing, FaultProxy]]


@pytest.fixture
def cross(stack: Stack, caller: boto3.Session, queues: Queues, tmp_path: Path) -> Iterator[Cross]:
    buffer = SqliteRepeatBuffer(tmp_path / "buffer.db")

    def run(count: int, *, casualties: int) -> tuple[Crossing, FaultProxy]:
        port = urlsplit(stack.endpoint_url).port
        assert port is not None
        payloads = [str(number).encode() for number in range(count)]
        with FaultProxy(port, share=0.05, seed=count).running() as proxy:
            crossing = Crossing(stack, caller, proxy, queues.envelopes)
            crossing.run(payloads, buffer, casualties=casualties)
        assert buffer.usage == BufferUsage(0, 0)
        return crossing, proxy

    yield run
    buffer.close()


@pytest.mark.parametrize("count", [200, pytest.param(10_000, marks=pytest.mark.soak)])
def test_every_envelope_is_handled_through_a_network_that_fails_by_receivers_that_die(cross, count):
    """Each fault hits five percent of the requests: cut, delayed, answer dropped, duplicated, reordered, or a
    restart. Two processes are killed while they handle an envelope, and one percent of the envelopes end the
    thread that handles them, before or after their effect. ``make soak`` sends 10,000 envelopes, ``make
    test`` 200.
    """
    # When payloads cross it
    seen, proxy = cross(count, casualties=2)
    # Then all of them have arrived, each with one effect
    assert sorted(seen.effects.values(), key=int) == [str(number).encode() for number in range(count)]
    # And others handled the envelopes of those that died, after their leases
    assert len(set(seen.killed)) == 2
    assert all(len(seen.attempts[item]) > 1 for item in seen.killed)
    assert seen.abandoned > 0
    assert seen.overlaps() == []
    assert all(proxy.happened[fault] > 0 for fault in FAULTS)
