"""Hold, release and tolerance under many seeds; and proof that broken ones would not pass."""

import pytest

from fanin.app.ledger.watching import Watching
from fanin.domain.failures import Tolerance
from tests.stateful.hold_world import HoldSimulation
from tests.stateful.scheduler import found_out

SEEDS = 60
ENOUGH = 300
"""Seeds within which each of the broken ledgers must be found out."""


def simulate(seed: int) -> HoldSimulation:
    simulation = HoldSimulation(seed)
    try:
        simulation.play()
    except AssertionError as error:
        error.add_note(f"seed {seed}")
        raise
    return simulation


def test_what_is_held_is_known_and_no_batch_is_given_up_within_its_tolerance():
    played = [simulate(seed) for seed in range(SEEDS)]

    # Each thing of interest happened often
    assert sum(one.ended_by_failures for one in played) > SEEDS // 20
    assert sum(one.released > 0 for one in played) > SEEDS // 20
    assert sum(bool(one.taken) for one in played) > SEEDS // 5
    assert sum(one.holds for one in played) > SEEDS // 2
    assert sum(one.told_as_waiting for one in played) > SEEDS // 20


@pytest.mark.soak
def test_a_hint_that_decides_is_found_out(monkeypatch):
    monkeypatch.setattr(Watching, "_failures", lambda _self, batch: (batch.failing, batch))
    monkeypatch.setattr(Watching, "_done_bounds", lambda _self, batch, _before: (batch.items, 0))
    assert found_out(simulate, range(ENOUGH))


@pytest.mark.soak
def test_a_tolerance_that_counts_one_too_few_is_found_out(monkeypatch):
    def exceeded(self: Tolerance, failed: int, **_: int) -> bool:
        return failed >= self.allowed(0)

    monkeypatch.setattr(Tolerance, "exceeded", exceeded)
    assert found_out(simulate, range(ENOUGH))
