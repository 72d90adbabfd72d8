"""Correlation ids: whose they are, and when they are free again."""

from __future__ import annotations

import pytest

from fanin.errors import (
    CorrelationIdAlive,
    Throttled,
)
from tests.unit.app.conftest import Crash
from tests.unit.app.scatters.conftest import Fleet


class TestCorrelation:
    def test_ids_that_are_made_differ(self, fleet: Fleet) -> None:
        assert fleet.start(1).correlation_id != fleet.start(1).correlation_id

    def test_an_id_of_a_living_scatter_is_refused(self, fleet: Fleet) -> None:
        first = fleet.start(1, correlation_id="mine")

        with pytest.raises(CorrelationIdAlive, match=str(first.batch.batch_id)):
            fleet.start(1, correlation_id="mine")

    def test_an_id_is_free_as_soon_as_its_scatter_has_ended(self, fleet: Fleet) -> None:
        first = fleet.start(1, correlation_id="mine")
        fleet.ledger.cancel(first.batch.batch_id)

        second = fleet.start(1, correlation_id="mine")
        fleet.told(first)  # late: it lets go of nothing that is no longer its own

        with pytest.raises(CorrelationIdAlive, match=str(second.batch.batch_id)):
            fleet.start(1, correlation_id="mine")

    def test_the_end_lets_go_of_the_id(self, fleet: Fleet) -> None:
        scattered = fleet.start(1, correlation_id="mine")
        fleet.ledger.cancel(scattered.batch.batch_id)
        fleet.told(scattered)

        assert fleet.ports.directory.read("correlation", ["mine"]) == {}

    def test_a_caller_who_died_keeps_it_for_a_minute(self, fleet: Fleet) -> None:
        fleet.crash_at("batches.create", "before")
        with pytest.raises(Crash):
            fleet.start(1, correlation_id="mine")

        with pytest.raises(CorrelationIdAlive):
            fleet.start(1, correlation_id="mine")
        fleet.clock.advance(60_000)
        fleet.start(1, correlation_id="mine")

    def test_a_caller_who_was_too_slow_does_not_open(self, fleet: Fleet) -> None:
        fleet.at("directory.put", "after", lambda: fleet.clock.advance(30_000))

        with pytest.raises(Throttled):
            fleet.start(1, correlation_id="mine")
        assert fleet.memory.batches.changes == []
