"""A world in which frames are sent."""

from __future__ import annotations

import json

import pytest

from fanin.adapters.memory import FixedClock, Memory
from fanin.app.frames.service import FrameService
from fanin.app.ledger.service import LedgerService
from fanin.app.services import patterns
from fanin.domain.frames import Frame, Hold, OpenFrame, Ticket

CHANNEL = "https://sqs/replies"


class World:
    def __init__(self) -> None:
        self.clock = FixedClock()
        self.memory = Memory(clock=self.clock)
        self.memory.channels.queues[CHANNEL] = []
        self.told = self.memory.channels.queues[CHANNEL]
        self.ledger = self.process()
        self.frames = FrameService(self.ledger)

    def process(self) -> LedgerService:
        ports = self.memory.ports()
        return LedgerService(ports, patterns(ports))

    def open(self, size: int = 100, ttl: int = 60, reply_to: str = CHANNEL) -> Frame:
        return self.frames.open(OpenFrame(size, "orders", "billing", reply_to, ttl, "day 7"))

    def hold(self, frame: Frame, index: int, lease: int = 30) -> Hold:
        (claim,) = self.frames.claim([Ticket(frame.frame_id, index)], lease=lease)
        return claim.hold

    def ack(self, frame: Frame, *indices: int) -> None:
        claims = self.frames.claim([Ticket(frame.frame_id, index) for index in indices])
        self.ledger.ack([claim.item for claim in claims])

    def bodies(self) -> list[dict]:
        return [json.loads(message.body) for message in self.told]

    def announce(self) -> None:
        """Play the stream of the batches table."""
        for old, new in list(self.memory.batches.changes):
            if new.state.terminal and old and not old.state.terminal:
                self.ledger.announce(new)


@pytest.fixture
def world() -> World:
    return World()
