"""The repeater and the receiver, with everything between them losing, repeating and dying."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from random import Random
from typing import Any

import pytest

from fanin.adapters.backoff import Backoff
from fanin.adapters.memory import FixedClock, Memory
from fanin.app.frames.service import FrameService
from fanin.app.ledger.service import LedgerService
from fanin.app.services import Services, patterns
from fanin.client.consuming.acknowledging import LedgerAcknowledger
from fanin.client.frames.envelopes import Envelope
from fanin.client.frames.memory_repeat_buffer import MemoryRepeatBuffer
from fanin.client.frames.receiver import Delivery, Disposition, IdempotentReceiver
from fanin.client.frames.repeat_buffer import Usage
from fanin.client.frames.repeater import Notice, Repeater
from fanin.client.frames.sqlite_repeat_buffer import SqliteRepeatBuffer
from fanin.client.tracker import Tracker
from fanin.domain.batch import State
from fanin.domain.frames import OpenFrame
from fanin.errors import BufferFull, ItemFailed, ServiceUnavailable, Throttled

CHANNEL = "https://sqs/replies"


class Crash(BaseException):
    """A process dies."""


class World:
    """A service in memory, a queue between sender and receivers, and a clock that they share."""

    def __init__(self, on_call: Callable[[str, str], None] | None = None) -> None:
        self.clock = FixedClock()
        self.memory = Memory(clock=self.clock, on_call=on_call)
        self.memory.channels.queues[CHANNEL] = []
        self.queue: list[Envelope] = []
        self.announced = 0

    def process(self) -> LedgerService:
        ports = self.memory.ports()
        return LedgerService(ports, patterns(ports))

    def frames(self) -> FrameService:
        ledger = self.process()
        return FrameService(ledger)

    def seconds(self) -> float:
        return self.clock.at / 1000

    def send(self, envelopes: Sequence[Envelope]) -> None:
        self.queue.extend(envelopes)

    def repeater(self, buffer: Any = None, *, transport: Any = None, size: int = 10) -> Repeater:
        return Repeater(
            self.frames(),
            transport or self.send,
            buffer if buffer is not None else MemoryRepeatBuffer(),
            template=OpenFrame(size, "sender", "receiver", CHANNEL, 60),
            notices=self.notices,
            backoff=Backoff(base=5, cap=40, sleep=lambda s: self.clock.advance(int(s * 1000))),
            clock=self.seconds,
        )

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
            if new.state.terminal and old and not old.state.terminal:
                self.process().announce(new)
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


class TestReceiver:
    def test_handles_each_envelope_once_and_drops_its_copies(self, world: World) -> None:
        repeater, seen = world.repeater(), []
        repeater.put(b"a")
        repeater.put(b"b")
        repeater.flush()
        receiver = world.receiver(lambda delivery: seen.append(delivery.payload))

        assert receiver.receive([*world.queue, world.queue[0]]) == [Disposition.HANDLED] * 3
        assert receiver.receive(world.queue) == [Disposition.DROPPED] * 2
        assert seen == [b"a", b"b"]

    def test_leaves_alone_what_another_is_at(self, world: World) -> None:
        repeater, nested = world.repeater(), []
        repeater.put(b"a")
        repeater.flush()
        other = world.receiver(lambda _: nested.append("never"))
        receiver = world.receiver(lambda _: nested.append(other.receive(world.queue)))

        assert receiver.receive(world.queue) == [Disposition.HANDLED]
        assert nested == [[Disposition.REDELIVER]]

    def test_a_handler_that_raises_gets_it_again_when_its_lease_is_over(self, world: World) -> None:
        repeater, attempts = world.repeater(), []

        def handle(delivery: Delivery) -> None:
            attempts.append((delivery.item, delivery.fencing_token))
            if len(attempts) == 1:
                raise RuntimeError

        repeater.put(b"a")
        repeater.flush()
        receiver = world.receiver(handle)
        assert world.take(receiver) == [Disposition.REDELIVER]
        assert world.take(receiver) == [Disposition.REDELIVER]
        world.clock.advance(31_000)
        assert world.take(receiver) == [Disposition.HANDLED]
        (first, second) = attempts
        assert first[0] == second[0]
        assert first[1] < second[1]

    def test_an_envelope_can_fail_for_good(self, world: World) -> None:
        repeater = world.repeater()
        repeater.put(b"a")
        repeater.flush()

        def handle(_: Delivery) -> None:
            raise ItemFailed("no such customer")

        assert world.take(world.receiver(handle)) == [Disposition.HANDLED]
        (failure,) = world.process().failures(world.announced or repeater.buffer.frames()[0]).failures
        assert failure.reason == "no such customer"

    def test_a_receiver_that_dies_loses_nothing(self, world: World) -> None:
        repeater, effects, attempts = world.repeater(), set[str](), []

        def handle(delivery: Delivery) -> None:
            effects.add(delivery.item)
            attempts.append(delivery.item)
            if len(attempts) == 1:
                raise Crash

        repeater.put(b"a")
        repeater.flush()
        with pytest.raises(Crash):
            world.receiver(handle).receive(world.queue)
        assert world.take(world.receiver(handle)) == [Disposition.REDELIVER]
        world.clock.advance(30_000)
        assert world.take(world.receiver(handle)) == [Disposition.HANDLED]
        assert (len(attempts), len(effects)) == (2, 1)

    def test_what_waited_too_long_for_others_is_not_begun(self, world: World) -> None:
        repeater, seen = world.repeater(), []

        def handle(delivery: Delivery) -> None:
            seen.append(delivery.payload)
            world.clock.advance(10_000)

        for payload in (b"a", b"b", b"c"):
            repeater.put(payload)
        repeater.flush()
        dispositions = world.receiver(handle).receive(world.queue)
        assert dispositions == [Disposition.HANDLED, Disposition.HANDLED, Disposition.REDELIVER]
        assert seen == [b"a", b"b"]

    def test_one_bad_envelope_spoils_only_itself(self, world: World) -> None:
        repeater = world.repeater()
        for _ in range(3):
            repeater.put(b"a")
        repeater.flush()
        bad = [Envelope(5, 0, b"no such frame"), Envelope(world.queue[0].frame, 3, b"beyond it")]
        dispositions = world.receiver(lambda _: None).receive([bad[0], *world.queue, bad[1]])
        assert dispositions == [Disposition.REDELIVER, *[Disposition.HANDLED] * 3, Disposition.REDELIVER]

    def test_an_acknowledgement_that_fails_brings_the_envelope_again(self, world: World) -> None:
        repeater = world.repeater()
        repeater.put(b"a")
        repeater.flush()
        ledger = world.process()

        def down(_outcomes: object) -> None:
            raise Throttled("later")

        receiver = IdempotentReceiver(FrameService(ledger), lambda _: None, down, clock=world.seconds)
        assert receiver.receive(world.queue) == [Disposition.REDELIVER]

    def test_an_envelope_costs_two_writes(self, world: World) -> None:
        repeater, count = world.repeater(size=64), 64
        for _ in range(count):
            repeater.put(b"a")
        repeater.flush()
        while world.queue:
            world.take(world.receiver(lambda _: None), most=1)
        assert world.memory.accesses.writes.total() <= 2.1 * count


class TestRepeater:
    def test_forgets_a_frame_when_it_hears_that_it_is_complete(self, world: World) -> None:
        repeater = world.repeater()
        repeater.put(b"a")
        repeater.flush()
        world.take(world.receiver(lambda _: None))
        world.announce()
        reads = world.memory.accesses.reads.total()
        assert repeater.tick() == 0
        assert repeater.buffer.usage == Usage(0, 0)
        assert world.memory.accesses.reads.total() == reads

    def test_or_when_it_finds_out_by_itself(self, world: World) -> None:
        repeater = world.repeater()
        repeater.put(b"a")
        repeater.flush()
        world.take(world.receiver(lambda _: None))
        world.clock.advance(6_000)
        assert repeater.tick() == 0

    def test_repeats_what_is_missing_and_waits_longer_each_time(self, world: World) -> None:
        repeater = world.repeater()
        for number in range(5):
            repeater.put(bytes([number]))
        repeater.flush()
        lost = world.queue[1::2]
        world.queue = world.queue[::2]
        world.take(world.receiver(lambda _: None))

        sent = []
        for _ in range(300):
            world.clock.advance(1_000)
            repeater.tick()
            sent.append(len(world.queue))
            world.queue.clear()
        times = [second for second, count in enumerate(sent) if count]
        assert {count for count in sent if count} == {len(lost)}
        assert 5 <= len(times) <= 60
        assert times[0] < 6

    def test_repeats_when_it_is_asked_to(self, world: World) -> None:
        repeater = world.repeater()
        repeater.put(b"a")
        repeater.flush()
        world.queue.clear()
        repeater._outstanding[repeater.buffer.frames()[0]].due = 1e12
        world.clock.advance(61_000)
        world.process().reap()
        repeater.tick()
        assert [envelope.payload for envelope in world.queue] == [b"a"]

    def test_repeats_everything_when_the_way_is_open_again(self, world: World) -> None:
        down, sent = True, []

        def transport(envelopes: Sequence[Envelope]) -> None:
            if down:
                raise ServiceUnavailable("no way")
            sent.extend(envelopes)

        repeater = world.repeater(transport=transport, size=1)
        for payload in (b"a", b"b", b"c"):
            repeater.put(payload)
        repeater.flush()
        down = False
        repeater.put(b"d")
        repeater.flush()
        repeater.tick()
        assert {envelope.payload for envelope in sent} == {b"a", b"b", b"c", b"d"}

    def test_sends_what_a_frame_left_that_was_given_up_in_a_new_one(self, world: World) -> None:
        repeater, seen = world.repeater(), Counter[bytes]()
        for payload in (b"a", b"b"):
            repeater.put(payload)
        repeater.flush()
        old = repeater.buffer.frames()
        late = world.queue.pop()
        world.take(world.receiver(lambda delivery: seen.update([delivery.payload])))
        for _ in range(2):
            world.clock.advance(61_000)
            world.process().reap()
        world.announce()
        repeater.tick()
        repeater.flush()

        world.queue.append(late)
        while world.queue:
            world.take(world.receiver(lambda delivery: seen.update([delivery.payload])))
        assert repeater.buffer.frames() != old
        assert seen == {b"a": 1, b"b": 1}

    def test_a_full_buffer_tells_the_caller(self, world: World) -> None:
        repeater = world.repeater(MemoryRepeatBuffer(max_envelopes=1))
        repeater.put(b"a")
        with pytest.raises(BufferFull):
            repeater.put(b"b")

    def test_a_sender_that_died_goes_on_where_its_buffer_is(self, world: World, tmp_path: Path) -> None:
        # Given a sender that died with one frame sent, one assigned but not sent, and one payload waiting
        def dies(_: object) -> None:
            raise Crash

        buffer = SqliteRepeatBuffer(tmp_path / "buffer.db")
        first = world.repeater(buffer, size=2)
        for payload in (b"a", b"b", b"c"):
            first.put(payload)
        with pytest.raises(Crash):
            world.repeater(buffer, transport=dies, size=2).flush()
        buffer.close()

        # When another one opens the buffer
        buffer = SqliteRepeatBuffer(tmp_path / "buffer.db")
        second = world.repeater(buffer, size=2)
        second.tick()
        second.flush()

        # Then everything is sent and handled
        seen: list[bytes] = []
        world.take(world.receiver(lambda delivery: seen.append(delivery.payload)))
        assert sorted(seen) == [b"a", b"b", b"c"]
        world.announce()
        assert second.tick() == 0
        buffer.close()

    def test_a_frame_completed_while_the_sender_was_away(self, world: World, tmp_path: Path) -> None:
        buffer = SqliteRepeatBuffer(tmp_path / "buffer.db")
        first = world.repeater(buffer)
        first.put(b"a")
        first.flush()
        buffer.close()
        world.take(world.receiver(lambda _: None))
        world.announce()
        world.notices()  # they went to a sender that is no more

        buffer = SqliteRepeatBuffer(tmp_path / "buffer.db")
        assert world.repeater(buffer).tick() == 0
        assert (buffer.usage, world.queue) == (Usage(0, 0), [])
        buffer.close()

    def test_a_frame_that_was_asked_for_and_never_filled_ends_by_itself(self, world: World) -> None:
        repeater = world.repeater()
        empty = world.frames().open(OpenFrame(5, reply_to=CHANNEL, ttl=60))
        for _ in range(2):
            world.clock.advance(61_000)
            world.process().reap()
            world.announce()
            assert repeater.tick() == 0
        assert world.frames().status(empty.frame_id).state is State.TIMED_OUT

    def test_a_frame_that_is_long_gone_is_delivered_anew_however_large_it_was(
        self, world: World, tmp_path: Path
    ) -> None:
        # Given a sender that died with a frame of five, which the service has long forgotten
        buffer = SqliteRepeatBuffer(tmp_path / "buffer.db")
        first = world.repeater(buffer, size=5)
        for number in range(5):
            first.put(str(number).encode())
        first.flush()
        world.queue.clear()
        world.clock.advance(40 * 86_400_000)

        # When another one begins, whose frames are smaller
        second, effects = world.repeater(buffer, size=2), []
        second.tick()
        second.flush()
        world.take(world.receiver(lambda delivery: effects.append(delivery.payload)))

        # Then nothing is lost
        assert effects == [b"0", b"1", b"2", b"3", b"4"]
        buffer.close()


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
        with suppress(ServiceUnavailable):
            self.world.announce()


@pytest.mark.parametrize("seed", range(60))
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
