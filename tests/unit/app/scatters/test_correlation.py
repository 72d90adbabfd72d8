"""Correlation ids: whose they are, and when they are free again."""

from __future__ import annotations

from dataclasses import replace
from uuid import UUID

import pytest

from fanin.app.scatters import correlation
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


class TestDerived:
    def test_an_id_follows_from_the_salt_and_does_not_show_it(self, fleet: Fleet) -> None:
        batch, _ = fleet.batch()
        other, _ = fleet.batch()

        derived = correlation.derived_from(batch)

        assert UUID(derived)
        assert derived == correlation.derived_from(replace(batch, batch_id=5))
        assert derived != correlation.derived_from(other)
        assert batch.salt.hex() not in derived.replace("-", "")


class TestClaim:
    def test_the_holder_may_claim_its_id_again(self, fleet: Fleet) -> None:
        batch, _ = fleet.batch()
        since = correlation.claim(fleet.ports, "mine", batch)
        fleet.clock.advance(10_000)

        assert correlation.claim(fleet.ports, "mine", batch) == since
        correlation.check_in_time(fleet.ports, since)

    def test_a_claim_that_is_long_past_is_renewed(self, fleet: Fleet) -> None:
        batch, _ = fleet.batch()
        since = correlation.claim(fleet.ports, "mine", batch)
        fleet.clock.advance(correlation.GRACE_MS // 2)
        with pytest.raises(Throttled, match="took too long"):
            correlation.check_in_time(fleet.ports, since)

        assert correlation.claim(fleet.ports, "mine", batch) == fleet.clock.at

    def test_who_is_always_overtaken_is_told_to_try_again(self, fleet: Fleet) -> None:
        # Given others that claim the id and give it up again, between each two steps of ours
        mine, _ = fleet.batch()
        other, _ = fleet.batch()
        fleet.ledger.cancel(other.batch_id)

        def overtake() -> None:
            value = {"batch_id": other.batch_id, "created_at": fleet.clock.at}
            until = fleet.clock.at // 1000 + 60
            fleet.ports.directory.put("correlation", "mine", value, expires_at=until)

        def again() -> None:
            overtake()
            fleet.at("directory.put", "before", again)

        fleet.at("directory.put", "before", again)
        with pytest.raises(Throttled, match="other calls are claiming"):
            correlation.claim(fleet.ports, "mine", mine)

    def test_only_the_holder_frees_an_id(self, fleet: Fleet) -> None:
        batch, _ = fleet.batch()
        correlation.claim(fleet.ports, "mine", batch)

        correlation.free(fleet.ports, "mine", batch.batch_id + 1)
        assert fleet.ports.directory.read("correlation", ["mine"])
        correlation.free(fleet.ports, "mine", batch.batch_id)
        correlation.free(fleet.ports, "mine", batch.batch_id)
        assert not fleet.ports.directory.read("correlation", ["mine"])
