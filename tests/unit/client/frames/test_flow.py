"""Repeater and receiver together, with everything between them losing, repeating and dying."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from random import Random

import pytest

from fanin.client.frames.envelopes import Envelope
from fanin.client.frames.receiver import Delivery
from fanin.client.frames.repeat_buffer import Usage
from fanin.errors import ServiceUnavailable
from tests.unit.client.frames.conftest import Crash, World


class Chaos:
    """One seed's run: calls that are lost before or after they took effect, messages lost, repeated and
    reordered, and receivers that die.
    """

    def __init__(self, seed: int) -> None:
        self.rng = Random(seed)  # noqa: S311
        self.calm = False
        self.effects: dict[str, bytes] = {}
        self.held: dict[str, float] = {}
        self.overlaps: list[str] = []
        self.world = World(self.on_call)
        self.repeater = self.world.repeater(transport=self.lossy, size=self.rng.choice((7, 64, 100)))

    def on_call(self, _call: str, _moment: str) -> None:
        if not self.calm and self.rng.random() < 0.02:
            raise ServiceUnavailable("no answer")

    def lossy(self, envelopes: Sequence[Envelope]) -> None:
        for envelope in envelopes:
            copies = self.rng.choices((0, 1, 2), (0.05, 0.9, 0.05))[0]
            self.world.queue += [envelope] * copies
        self.rng.shuffle(self.world.queue)
        if self.rng.random() < 0.05:
            raise ServiceUnavailable("the answer was lost")

    def handle(self, delivery: Delivery) -> None:
        if self.held.get(delivery.item, 0) > self.world.seconds():
            self.overlaps.append(delivery.item)
        self.held[delivery.item] = delivery.fencing_token
        self.effects.setdefault(delivery.item, delivery.payload)
        if not self.calm and self.rng.random() < 0.05:
            raise Crash
        del self.held[delivery.item]

    def round(self) -> None:
        """Let everyone do a little, then let time pass."""
        with suppress(ServiceUnavailable):
            self.repeater.flush()
        self.repeater.tick()
        receiver = self.world.receiver(self.handle, lease=10)
        for _ in range(3):
            batch = self.world.queue[:10]
            try:
                self.world.take(receiver)
            except Crash:
                self.world.queue += batch
                receiver = self.world.receiver(self.handle, lease=10)
        self.world.clock.advance(self.rng.choice((100, 1_000, 7_000)))
        with suppress(ServiceUnavailable, ExceptionGroup):  # several steps may have failed
            self.world.announce()


@pytest.mark.parametrize("seed", range(12))
def test_every_payload_is_handled_whatever_fails_on_the_way(seed: int) -> None:
    # Given two hundred payloads to deliver
    chaos = Chaos(seed)
    payloads = [str(number).encode() for number in range(200)]
    for payload in payloads:
        chaos.repeater.put(payload)

    # When everything goes wrong for a while, until the sender holds nothing any more
    for rounds in range(2_000):
        chaos.calm = rounds > 400
        chaos.round()
        if not chaos.repeater.buffer.usage.envelopes:
            break

    # Then every payload had its effect once, and no two handled one at the same time
    assert chaos.repeater.buffer.usage == Usage(0, 0)
    assert chaos.overlaps == []
    assert sorted(chaos.effects.values(), key=int) == payloads
