"""The receiver: each envelope is handled once and by one at a time, whoever dies."""

from collections.abc import Callable, Sequence

import pytest

from fanin.app.services import Services
from fanin.client.consuming.acknowledging import LedgerAcknowledger, QueueAcknowledger
from fanin.client.frames.envelopes import Envelope
from fanin.client.frames.receiver import Delivery, Disposition, IdempotentReceiver, LeasePlan, TakenLease
from fanin.client.tracker import Tracker
from fanin.domain.frames import Claim, Hold, Ticket
from fanin.errors import BatchGone, FaninError, InvalidRequest, ItemFailed, Throttled
from tests.unit.client.frames.conftest import World


def test_handles_each_envelope_once_and_drops_its_copies(world):
    world.sender(b"a", b"b")
    seen: list[bytes] = []
    receiver = world.receiver(lambda delivery: seen.append(delivery.payload))
    assert receiver.receive([*world.queue, world.queue[0]]) == [Disposition.HANDLED] * 3
    assert receiver.receive(world.queue) == [Disposition.DROPPED] * 2
    assert seen == [b"a", b"b"]


def test_a_handler_that_raises_gets_it_again_when_its_lease_is_over(world):
    world.sender(b"a")
    attempts: list[tuple[str, int]] = []

    def handle(delivery: Delivery) -> None:
        attempts.append((delivery.item, delivery.fencing_token))
        if len(attempts) == 1:
            raise RuntimeError

    receiver = world.receiver(handle)
    assert world.take(receiver) == [Disposition.REDELIVER]
    assert world.take(receiver) == [Disposition.REDELIVER]
    world.clock.advance(31_000)
    assert world.take(receiver) == [Disposition.HANDLED]
    (first, second) = attempts
    assert first[0] == second[0]
    assert first[1] < second[1]


def test_an_envelope_can_fail_for_good(world):
    repeater = world.sender(b"a")

    def handle(_: Delivery) -> None:
        raise ItemFailed("no such customer")

    assert world.take(world.receiver(handle)) == [Disposition.HANDLED]
    (failure,) = world.process().failures(repeater.buffer.frames()[0]).failures
    assert failure.reason == "no such customer"


def send(world: World, count: int) -> None:
    world.sender(*(b"%d" % number for number in range(count)), size=count)


def test_however_slow_the_handlers_are_nobody_else_handles_their_envelopes(world):
    # Given handlers that each take most of the lease, and together much more than it
    send(world, 4)
    log: list[tuple[str, bytes]] = []
    other = world.receiver(lambda delivery: log.append(("other", delivery.payload)))
    messages = list(world.queue)

    def handle(delivery: Delivery) -> None:
        log.append(("first", delivery.payload))
        world.clock.advance(22_000)
        # The messages that the receiver holds come to another one, and those before it are acknowledged.
        number = delivery.envelope.index
        found = other.receive(messages[: number + 1])
        assert found == [*[Disposition.DROPPED] * number, Disposition.REDELIVER]

    # When, then
    assert world.receiver(handle).receive(messages) == [Disposition.HANDLED] * 4
    assert log == [("first", b"%d" % n) for n in range(4)]


def test_what_is_handled_fast_is_claimed_and_acknowledged_together(world):
    send(world, 20)
    receiver = world.receiver(lambda _: None)
    asked = watch_claims(receiver)
    assert receiver.receive(world.queue[:10]) == [Disposition.HANDLED] * 10
    assert receiver.receive(world.queue[10:]) == [Disposition.HANDLED] * 10
    assert asked == [1, 9, 10]


def test_what_waited_too_long_for_others_is_not_begun(world, caplog):
    # Given a handler that was fast, and is slow once
    send(world, 4)
    seen: list[bytes] = []

    def handle(delivery: Delivery) -> None:
        seen.append(delivery.payload)
        world.clock.advance(10_000 * (delivery.payload == b"1"))

    found = world.receiver(handle).receive(world.queue)
    assert found == [*[Disposition.HANDLED] * 2, *[Disposition.REDELIVER] * 2]
    assert seen == [b"0", b"1"]
    assert "10.0 s of its lease of 30 s were over before it was begun" in caplog.text


@pytest.mark.parametrize("skew", [-3_600, 3_600])
def test_a_receiver_s_clock_need_not_agree_with_the_service_s(world, skew):
    send(world, 3)
    seen: list[bytes] = []
    receiver = IdempotentReceiver(
        world.frames(),
        lambda delivery: seen.append(delivery.payload),
        LedgerAcknowledger(Tracker(Services(world.memory.ports()))),
        clock=lambda: world.seconds() + skew,
    )
    assert receiver.receive(world.queue) == [Disposition.HANDLED] * 3
    assert seen == [b"0", b"1", b"2"]


def watch_claims(receiver: IdempotentReceiver) -> list[int]:
    """How many envelopes each claim of a receiver names, from now on."""
    asked: list[int] = []
    claim = receiver._frames.claim

    def watched(tickets: Sequence[Ticket], *, lease: int) -> list[Claim]:
        asked.append(len(tickets))
        return claim(tickets, lease=lease)

    receiver._frames.claim = watched
    return asked


def test_a_receiver_that_could_handle_nothing_is_refused(world):
    with pytest.raises(InvalidRequest, match="handle must be a function of a Delivery, not str"):
        world.receiver("handle")
    for lease in (0, 43_201):
        with pytest.raises(InvalidRequest, match="lease must be a whole number from 1 to 43200"):
            world.receiver(lambda _: None, lease=lease)


def test_acknowledging_through_the_ack_queue_is_refused(world):
    later = QueueAcknowledger(None, "https://sqs/acks")
    with pytest.raises(InvalidRequest, match=r"pass tracker\.acknowledger\(\"api\"\)"):
        IdempotentReceiver(world.frames(), lambda _: None, later)


def test_an_acknowledgement_that_fails_brings_the_envelope_again(world):
    send(world, 1)

    def down(_marks: object) -> dict[int, FaninError]:
        return {0: Throttled("later")}

    receiver = IdempotentReceiver(world.frames(), lambda _: None, down, clock=world.seconds)
    assert receiver.receive(world.queue) == [Disposition.REDELIVER]


def test_an_envelope_costs_two_writes(world):
    send(world, 64)
    while world.queue:
        world.take(world.receiver(lambda _: None), most=1)
    assert world.memory.accesses.writes.total() <= 2.1 * 64


ENVELOPES = [Envelope(7, index, b"") for index in range(8)]


class Claims:
    """Frames whose claims are answered after so many seconds, or fail.

    Attributes:
        error: the error of a ticket, if its claim fails.
        asked: the indices and the lease of each claim.
        handled: index of each envelope, and how much of its lease was left when it was handled.
    """

    def __init__(
        self, seconds: float = 0.0, error: Callable[[int], Exception | None] = lambda _: None
    ) -> None:
        self.seconds = seconds
        self.error = error
        self.now = self._ends = 0.0
        self.asked: list[tuple[list[int], int]] = []
        self.handled: list[tuple[int, float]] = []

    def claim(self, tickets: Sequence[Ticket], *, lease: int) -> list[Claim]:
        self.asked.append(([ticket.index for ticket in tickets], lease))
        self._ends = self.now + lease
        self.now += self.seconds
        for ticket in tickets:
            if error := self.error(ticket.index):
                raise error
        return [Claim(ticket, Hold.CLAIMED, f"item {ticket.index}", lease) for ticket in tickets]

    def receiver(self, lease: int = 30, work: float = 0.0) -> IdempotentReceiver:
        def handle(delivery: Delivery) -> None:
            self.handled.append((delivery.envelope.index, self._ends - self.now))
            self.now += work

        return IdempotentReceiver(self, handle, lambda _: {}, lease=lease, clock=lambda: self.now)


@pytest.mark.parametrize(
    ("error", "disposition", "logged"),
    [
        (BatchGone("long ago"), Disposition.DROPPED, "an envelope of frame 7 was refused: long ago"),
        (KeyError("odd"), Disposition.REDELIVER, "1 envelopes could not be claimed and come again: 'odd'"),
    ],
)
def test_an_envelope_that_cannot_be_claimed_affects_no_other(caplog, error, disposition, logged):
    claims = Claims(error=lambda index: error if index == 2 else None)
    dispositions = claims.receiver().receive(ENVELOPES[:4])
    assert dispositions == [*[Disposition.HANDLED] * 2, disposition, Disposition.HANDLED]
    assert logged in caplog.messages


def test_claims_that_are_throttled_are_not_repeated_here():
    claims = Claims(error=lambda _: Throttled("slow down"))
    assert claims.receiver().receive(ENVELOPES[:4]) == [Disposition.REDELIVER] * 4
    assert claims.asked == [([0], 30)]


@pytest.mark.parametrize(("lease", "seconds"), [(1, 4.0), (5, 1.3), (10, 0.3)])
def test_however_slow_claims_are_a_short_lease_gets_on(lease, seconds, caplog):
    # Given envelopes that come again until they are handled
    claims = Claims(seconds)
    receiver, left = claims.receiver(lease, work=0.1), ENVELOPES
    for _ in range(2):
        found = receiver.receive(left)
        left = [one for one, what in zip(left, found, strict=True) if what is Disposition.REDELIVER]
    # Then all are handled, each with half of the lease left, and time for the acknowledgement
    assert left == []
    assert sorted(index for index, _ in claims.handled) == list(range(8))
    assert all(rest >= lease / 2 + seconds for _, rest in claims.handled)
    # And the receiver says when it took a longer lease than it was given
    assert ("taking one of" in caplog.text) is (max(taken for _, taken in claims.asked) > lease)


def test_a_claim_that_was_not_answered_says_nothing_about_how_long_claims_take():
    # Given a service that does not answer for a minute, and then at once
    claims = Claims(60, lambda _: Throttled("slow down"))
    receiver = claims.receiver(5)
    for _ in range(2):
        assert receiver.receive(ENVELOPES[:1]) == [Disposition.REDELIVER]
    claims.seconds, claims.error = 0, lambda _: None
    # Then the next lease is as it was asked for
    assert receiver.receive(ENVELOPES[:1]) == [Disposition.HANDLED]
    assert claims.asked[-1] == ([0], 5)


def leases(plan: LeasePlan, *claims: float) -> list[int]:
    """The leases that are planned, while claims take so many seconds, one after the other."""
    planned = []
    for seconds in claims:
        planned.append(plan.lease())
        plan.claimed(seconds)
    return planned


@pytest.mark.parametrize(("claim", "lease"), [(0.0, 5), (0.625, 5), (0.626, 6), (1.3, 11)])
def test_a_lease_lasts_for_eight_claims_at_least(claim, lease):
    assert leases(LeasePlan(5), claim, claim, 0) == [5, 5, lease]


def test_one_slow_claim_among_fast_ones_changes_nothing():
    assert leases(LeasePlan(5), 0.01, 80, 0.01, 80, 0.01) == [5] * 5


def test_when_claims_are_fast_again_a_lease_is_as_it_was():
    assert leases(LeasePlan(5), 1.3, 1.3, 1.3, 0.01, 0.01) == [5, 5, 11, 11, 5]


def test_no_lease_is_longer_than_a_claim_may_ask_for():
    assert leases(LeasePlan(5), 10_000, 10_000, 0) == [5, 5, 43_200]


@pytest.mark.parametrize(
    ("claim", "handler", "together"),
    [(0, 1, 10), (5, 1, 5), (5, 0.5, 10), (9.5, 1, 1), (0, 100, 1), (0, 0, 10_000)],
)
def test_so_many_are_claimed_together_as_can_be_begun_in_a_quarter_of_the_lease(claim, handler, together):
    plan = LeasePlan(40)
    assert plan.together(40) == 1
    plan.claimed(claim)
    plan.claimed(claim + 1)
    plan.handled(handler)
    assert plan.together(40) == together


def test_one_slow_handler_is_forgotten_after_a_while():
    plan = LeasePlan(40)
    plan.handled(10)
    for _ in range(2):
        plan.handled(0)
    assert plan.together(40) == 4


@pytest.mark.parametrize(("now", "leaves"), [(100.0, True), (110.0, True), (110.1, False)])
def test_an_envelope_may_be_begun_in_the_first_quarter_of_its_lease(now, *, leaves):
    assert TakenLease(100.0, 40).leaves_time(now) is leaves
