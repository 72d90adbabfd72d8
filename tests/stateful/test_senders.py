"""Producers, nested batches and redrives whose batches end at any moment, under seeds."""

from __future__ import annotations

from typing import Any

import pytest

from fanin.app.ledger.held import Held
from fanin.client.producing.batch import TrackedBatch
from tests.stateful.scheduler import found_out
from tests.stateful.senders import simulate

SEEDS = 60


def test_nothing_is_sent_for_a_batch_that_has_ended_and_what_failed_is_tried_again() -> None:
    played = [simulate(seed) for seed in range(SEEDS)]

    # Each thing of interest happened often
    assert sum(one.late > 0 for one in played) > SEEDS // 20
    assert sum(one.told for one in played) > SEEDS // 5
    assert sum(len(one.forced) > 0 for one in played) > SEEDS // 4
    assert sum(any(row.retry_of for row in one.batches()) for one in played) > SEEDS // 6
    assert sum(any(row.parent_item for row in one.batches()) for one in played) > SEEDS // 4


@pytest.mark.soak
@pytest.mark.parametrize(
    ("where", "name", "mutant"),
    [
        (TrackedBatch, "_check_that_it_lives", lambda _self: None),
        (Held, "_left", lambda _self, _batch, _places, _unsent: set()),
    ],
    ids=["a producer resumes into an ended batch", "what an ended batch has not done stays taken"],
)
def test_a_broken_sender_is_found_out(
    monkeypatch: pytest.MonkeyPatch, where: Any, name: str, mutant: Any
) -> None:
    monkeypatch.setattr(where, name, mutant)

    assert found_out(simulate, range(200))
