"""Guaranteed delivery under hundreds of seeds; and proof that a broken one would not pass."""

import os

import pytest

from fanin.adapters.memory.words import MemoryWords
from fanin.app.ports.words import Claimed, ItemClaim
from tests.stateful.frames import simulate
from tests.stateful.model import Broken
from tests.stateful.scheduler import Stuck

SEEDS = 15
ENOUGH = 100


@pytest.mark.parametrize("ttl", [86_400, 60])
def test_every_payload_has_its_effect_however_the_steps_interleave_and_crash(ttl: int) -> None:
    for seed in range(SEEDS):
        simulate(seed, ttl=ttl)


@pytest.mark.soak(long=True)
@pytest.mark.parametrize("ttl", [86_400, 60])
def test_the_same_for_a_long_time(ttl: int) -> None:
    first, count = (
        int(os.environ.get("FANIN_FIRST_SEED", str(SEEDS))),
        int(os.environ.get("FANIN_SEEDS", "25000")) // 10,
    )
    stuck = [seed for seed in range(first, first + count) if fails(seed, (Stuck,), ttl=ttl)]
    # Where a frame lives for a minute, the slowest receivers never handle one in time.
    assert len(stuck) <= (count // 100 if ttl == 60 else 0)


def take_all(self: MemoryWords, claim: ItemClaim) -> Claimed:
    """Give every lease that is asked for."""
    claimed = claim_one(self, claim)
    return Claimed(claimed.pending, claim.until, taken=True) if claimed.pending else claimed


claim_one = MemoryWords._claim


@pytest.mark.soak
def test_leases_for_all_are_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(MemoryWords, "_claim", take_all)
    assert any(map(fails, range(ENOUGH)))


def fails(seed: int, kinds: tuple[type[Exception], ...] = (Broken, Stuck), *, ttl: int = 86_400) -> bool:
    try:
        simulate(seed, ttl=ttl)
    except kinds:
        return True
    return False
