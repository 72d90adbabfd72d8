"""Failures from the first to the last, under many seeds; and proof that broken ones would not pass."""

import pytest

from fanin.adapters.memory import MemoryParts
from fanin.app import failures
from tests.stateful.failures_world import simulate
from tests.stateful.scheduler import found_out

SEEDS = 40
ENOUGH = range(250, 650)
"""Seeds within which each of the broken ledgers must be found out."""


def test_no_failure_is_lost_or_sent_under_two_items_whatever_crashes():
    played = [simulate(seed) for seed in range(SEEDS)]

    # Each thing of interest happened often
    assert sum(one.crossed for one in played) > SEEDS // 10
    assert sum(one.again > 0 for one in played) > SEEDS // 10
    assert sum(one.holds for one in played) > SEEDS // 2


@pytest.mark.soak
@pytest.mark.parametrize(
    ("where", "name", "mutant"),
    [
        (failures, "_latest", lambda _ports, _batch, _notes: {}),
        (MemoryParts, "delete_messages", lambda _self, _batch_id, _ordinals: None),
    ],
    ids=["the clock alone orders failures", "messages of a removed batch stay"],
)
def test_a_broken_redrive_is_found_out(monkeypatch, where, name, mutant):
    monkeypatch.setattr(where, name, mutant)

    assert found_out(simulate, ENOUGH)
