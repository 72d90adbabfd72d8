"""A service in memory, with a queue between a sender and its receivers."""

import json
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from fanin.adapters.backoff import Backoff
from fanin.adapters.memory import FixedClock, Memory
from fanin.app.frames import FrameService
from fanin.app.ledger.service import LedgerService
from fanin.app.services import Patterns, Services
from fanin.client.consuming.acknowledging import LedgerAcknowledger
from fanin.client.frames.envelopes import Envelope, JsonCodec, Notice, ProtobufCodec
from fanin.client.frames.receiver import Delivery, Disposition, IdempotentReceiver
from fanin.client.frames.repeat_buffer import MemoryRepeatBuffer
from fanin.client.frames.repeater import Repeater
from fanin.client.tracker import Tracker
from fanin.domain.frames import OpenFrame

CHANNEL = "https://sqs/replies"
CODECS = [JsonCodec(), ProtobufCodec()]


def envelopes(count: int, *, size: int = 1) -> list[Envelope]:
    return [Envelope(7, index, bytes([index]) * size) for index in range(count)]


class World:
    """A service in memory, a queue between sender and receivers, and a clock that they share."""

    def __init__(self) -> None:
        self.clock = FixedClock()
        self.memory = Memory(clock=self.clock)
        self.memory.channels.queues[CHANNEL] = []
        self.queue: list[Envelope] = []
        self.announced = 0

    def process(self) -> LedgerService:
        ports = self.memory.ports()
        return LedgerService(ports, Patterns(ports))

    def frames(self) -> FrameService:
        ledger = self.process()
        return FrameService(ledger)

    def seconds(self) -> float:
        return self.clock.at / 1000

    def send(self, envelopes: Sequence[Envelope]) -> None:
        self.queue.extend(envelopes)

    def repeater(
        self, buffer: Any = None, *, transport: Any = None, size: int = 10, max_frames: int | None = 10
    ) -> Repeater:
        return Repeater(
            self.frames(),
            transport or self.send,
            buffer if buffer is not None else MemoryRepeatBuffer(),
            template=OpenFrame(size, "sender", "receiver", CHANNEL, 60),
            notices=self.notices,
            backoff=Backoff(base=5, cap=40, sleep=lambda s: self.clock.advance(int(s * 1000))),
            clock=self.seconds,
            max_frames=max_frames,
        )

    def sender(self, *payloads: bytes, buffer: Any = None, **options: Any) -> Repeater:
        """A repeater that has sent these payloads."""
        repeater = self.repeater(buffer, **options)
        for payload in payloads:
            repeater.put(payload)
        repeater.flush()
        return repeater

    def notices(self) -> list[Notice]:
        messages = self.memory.channels.queues[CHANNEL]
        bodies = [json.loads(message.body) for message in messages]
        messages.clear()
        return [Notice(body["type"], body["frame_id"]) for body in bodies]

    def receiver(self, handle: Callable[[Delivery], object], *, lease: int = 30) -> IdempotentReceiver:
        ledger = self.process()
        deliver = LedgerAcknowledger(Tracker(Services(ledger.ports)))
        return IdempotentReceiver(FrameService(ledger), handle, deliver, lease=lease, clock=self.seconds)

    def announce(self) -> None:
        """Play the stream of the batches table."""
        changes = self.memory.batches.changes
        for old, new in changes[self.announced :]:
            self.process().follow(old, new)
        self.announced = len(changes)

    def take(self, receiver: IdempotentReceiver, most: int = 10) -> list[Disposition]:
        """Receive messages; those that must come again go back."""
        batch, self.queue[:most] = self.queue[:most], []
        dispositions = receiver.receive(batch)
        self.queue += [e for e, r in zip(batch, dispositions, strict=True) if r is Disposition.REDELIVER]
        return dispositions


@pytest.fixture
def world() -> World:
    return World()
