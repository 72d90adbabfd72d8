"""Guaranteed delivery against what must always be true; and proof that a broken one would not pass."""

import logging
from collections.abc import Sequence

import pytest
from hypothesis import settings
from hypothesis.stateful import run_state_machine_as_test

from fanin.adapters.memory.words import MemoryWords
from fanin.app.ports.words import Claimed, ItemClaim
from fanin.client.frames.envelopes import Envelope
from fanin.client.frames.receiver import Disposition, IdempotentReceiver, TakenLease
from tests.stateful.frame_machine import FrameMachine
from tests.stateful.frames import simulate
from tests.stateful.model import Broken
from tests.stateful.scheduler import Stuck
from tests.stateful.test_machine import assert_found_out, quick


@pytest.fixture(autouse=True)
def _no_log(caplog: pytest.LogCaptureFixture) -> None:
    """What fails here is logged thousands of times."""
    caplog.set_level(logging.CRITICAL, "fanin")


def test_frames_are_delivered_whatever_happens():
    run_state_machine_as_test(FrameMachine, settings=quick(60, 50))


@pytest.mark.soak(long=True)
@pytest.mark.parametrize("width", [2, 3, 64])
def test_frames_are_delivered_so_for_a_long_time(width):
    machine = type("Wide", (FrameMachine,), {"width": width})
    run_state_machine_as_test(machine, settings=settings(quick(1_000, 80), derandomize=False))


# Tests of the test: frames that are wrong in one step each.


def take_all(self: MemoryWords, claim: ItemClaim) -> Claimed:
    """Give every lease that is asked for."""
    found = claim_one(self, claim)
    return Claimed(found.pending, claim.until, taken=True) if found.pending else found


def mark_first(self: IdempotentReceiver, envelopes: Sequence[Envelope]) -> list[Disposition]:
    """Acknowledge what was claimed, and then handle it."""
    lease = TakenLease(self._clock(), self._plan.lease())
    claims, _ = self._claim(list({envelope.ticket: envelope for envelope in envelopes}), lease.seconds)
    self._acknowledge([claim.item for claim in claims.values() if not isinstance(claim, Disposition)])
    for envelope in envelopes:
        if not isinstance(claim := claims[envelope.ticket], Disposition):
            self._handle_claimed(claim, envelope, lease)
    return [Disposition.HANDLED] * len(envelopes)


claim_one = MemoryWords._claim


@pytest.mark.soak
@pytest.mark.parametrize(
    ("where", "name", "mutant"),
    [(MemoryWords, "_claim", take_all), (IdempotentReceiver, "receive", mark_first)],
    ids=lambda part: part.__name__ if callable(part) else None,
)
def test_a_broken_one_is_found_out(monkeypatch, where, name, mutant):
    monkeypatch.setattr(where, name, mutant)

    assert_found_out(FrameMachine, 50)


SEEDS = 8
ENOUGH = 100


@pytest.mark.parametrize("ttl", [86_400, 60])
def test_every_payload_has_its_effect_however_the_steps_interleave_and_crash(ttl):
    for seed in range(SEEDS):
        simulate(seed, ttl=ttl)


@pytest.mark.soak(long=True)
@pytest.mark.parametrize("ttl", [86_400, 60])
def test_the_same_for_a_long_time(ttl):
    count = 2_500
    stuck = [seed for seed in range(SEEDS, SEEDS + count) if fails(seed, (Stuck,), ttl=ttl)]
    # Where a frame lives for a minute, the slowest receivers never handle one in time.
    assert len(stuck) <= (count // 100 if ttl == 60 else 0)


@pytest.mark.soak
def test_leases_for_all_are_found_out(monkeypatch):
    monkeypatch.setattr(MemoryWords, "_claim", take_all)
    assert any(map(fails, range(ENOUGH)))


def fails(seed: int, kinds: tuple[type[Exception], ...] = (Broken, Stuck), *, ttl: int = 86_400) -> bool:
    try:
        simulate(seed, ttl=ttl)
    except kinds:
        return True
    return False
