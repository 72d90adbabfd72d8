"""Producers, nested batches and redrives whose batches end at any moment, under seeds."""

import pytest

from fanin.client.producing.batch import TrackedBatch
from tests.stateful.scheduler import found_out
from tests.stateful.senders import simulate

SEEDS = 60


def test_nothing_is_sent_for_a_batch_that_has_ended_and_what_failed_is_tried_again():
    played = [simulate(seed) for seed in range(SEEDS)]

    # Each thing of interest happened often
    assert sum(one.late > 0 for one in played) > SEEDS // 20
    assert sum(one.told for one in played) > SEEDS // 5
    assert sum(len(one.forced) > 0 for one in played) > SEEDS // 4
    assert sum(any(row.retry_of for row in one.batches()) for one in played) > SEEDS // 6
    assert sum(any(row.parent_item for row in one.batches()) for one in played) > SEEDS // 4


@pytest.mark.soak
def test_a_producer_that_resumes_into_an_ended_batch_is_found_out(monkeypatch):
    monkeypatch.setattr(TrackedBatch, "_check_that_it_lives", lambda _self: None)
    assert found_out(simulate, range(200))
