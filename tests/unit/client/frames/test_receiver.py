"""The receiver: each envelope is handled once and by one at a time, whoever dies."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest

from fanin.app.frames.service import FrameService
from fanin.client.frames.envelopes import Envelope
from fanin.client.frames.receiver import Delivery, Disposition, IdempotentReceiver
from fanin.domain.frames import Claim, Hold, Ticket
from fanin.errors import BatchGone, ItemFailed, Throttled
from tests.unit.client.frames.conftest import Crash, World


def test_handles_each_envelope_once_and_drops_its_copies(world: World) -> None:
    repeater, seen = world.repeater(), []
    repeater.put(b"a")
    repeater.put(b"b")
    repeater.flush()
    receiver = world.receiver(lambda delivery: seen.append(delivery.payload))

    assert receiver.receive([*world.queue, world.queue[0]]) == [Disposition.HANDLED] * 3
    assert receiver.receive(world.queue) == [Disposition.DROPPED] * 2
    assert seen == [b"a", b"b"]


def test_leaves_alone_what_another_is_at(world: World) -> None:
    repeater, nested = world.repeater(), []
    repeater.put(b"a")
    repeater.flush()
    other = world.receiver(lambda _: nested.append("never"))
    receiver = world.receiver(lambda _: nested.append(other.receive(world.queue)))

    assert receiver.receive(world.queue) == [Disposition.HANDLED]
    assert nested == [[Disposition.REDELIVER]]


def test_a_handler_that_raises_gets_it_again_when_its_lease_is_over(world: World) -> None:
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


def test_an_envelope_can_fail_for_good(world: World) -> None:
    repeater = world.repeater()
    repeater.put(b"a")
    repeater.flush()

    def handle(_: Delivery) -> None:
        raise ItemFailed("no such customer")

    assert world.take(world.receiver(handle)) == [Disposition.HANDLED]
    (failure,) = world.process().failures(world.announced or repeater.buffer.frames()[0]).failures
    assert failure.reason == "no such customer"


def test_a_receiver_that_dies_loses_nothing(world: World) -> None:
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


def test_what_waited_too_long_for_others_is_not_begun(world: World) -> None:
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


def test_one_bad_envelope_spoils_only_itself(world: World) -> None:
    repeater = world.repeater()
    for _ in range(3):
        repeater.put(b"a")
    repeater.flush()
    bad = [Envelope(5, 0, b"no such frame"), Envelope(world.queue[0].frame, 3, b"beyond it")]
    dispositions = world.receiver(lambda _: None).receive([bad[0], *world.queue, bad[1]])
    assert dispositions == [Disposition.REDELIVER, *[Disposition.HANDLED] * 3, Disposition.REDELIVER]


def test_an_acknowledgement_that_fails_brings_the_envelope_again(world: World) -> None:
    repeater = world.repeater()
    repeater.put(b"a")
    repeater.flush()
    ledger = world.process()

    def down(_outcomes: object) -> None:
        raise Throttled("later")

    receiver = IdempotentReceiver(FrameService(ledger), lambda _: None, down, clock=world.seconds)
    assert receiver.receive(world.queue) == [Disposition.REDELIVER]


def test_an_envelope_costs_two_writes(world: World) -> None:
    repeater, count = world.repeater(size=64), 64
    for _ in range(count):
        repeater.put(b"a")
    repeater.flush()
    while world.queue:
        world.take(world.receiver(lambda _: None), most=1)
    assert world.memory.accesses.writes.total() <= 2.1 * count


class Claims:
    """Frames whose claims fail: ``error(ticket)`` for the first ticket of which it gives one."""

    def __init__(self, error: Callable[[Ticket], Exception | None]) -> None:
        self._error = error
        self.asked: list[list[int]] = []

    def claim(self, tickets: Sequence[Ticket], *, lease: int) -> list[Claim]:
        self.asked.append([ticket.index for ticket in tickets])
        for ticket in tickets:
            if error := self._error(ticket):
                raise error
        return [Claim(ticket, Hold.CLAIMED, f"item {ticket.index}", lease) for ticket in tickets]


def receive(error: Callable[[Ticket], Exception | None], count: int = 4) -> tuple[list[Disposition], Claims]:
    claims = Claims(error)
    receiver = IdempotentReceiver(claims, lambda _: None, lambda _: None, lease=30, clock=lambda: 0)  # type: ignore[arg-type]
    return receiver.receive([Envelope(7, index, b"") for index in range(count)]), claims


def test_an_envelope_of_a_frame_that_is_gone_is_dropped_alone(caplog: pytest.LogCaptureFixture) -> None:
    dispositions, _ = receive(lambda ticket: BatchGone("long ago") if ticket.index == 2 else None)
    assert dispositions == [*[Disposition.HANDLED] * 2, Disposition.DROPPED, Disposition.HANDLED]
    assert "an envelope of frame 7 was refused: long ago" in caplog.text


def test_claims_that_are_throttled_are_not_repeated_here(caplog: pytest.LogCaptureFixture) -> None:
    dispositions, claims = receive(lambda _: Throttled("slow down"))
    assert dispositions == [Disposition.REDELIVER] * 4
    assert claims.asked == [[0, 1, 2, 3]]
    assert "4 envelopes could not be claimed and come again: slow down" in caplog.text


def test_nothing_to_receive_asks_nobody() -> None:
    dispositions, claims = receive(lambda _: None, count=0)
    assert (dispositions, claims.asked) == ([], [])


def test_an_envelope_whose_lease_is_nearly_over_is_not_begun() -> None:
    # Given a claim whose lease of 30 s ends in 14 s
    claims = Claims(lambda _: None)
    receiver = IdempotentReceiver(
        claims,  # type: ignore[arg-type]
        lambda _: pytest.fail("handled"),
        lambda _: None,
        lease=30,
        clock=lambda: 16,
    )
    assert receiver.receive([Envelope(7, 0, b"")]) == [Disposition.REDELIVER]
