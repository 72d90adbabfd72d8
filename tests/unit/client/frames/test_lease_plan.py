"""The plan of a receiver's leases: long enough for the claim, and few envelopes where claims are slow."""

from __future__ import annotations

import logging

import pytest

from fanin.client.frames.lease_plan import LeasePlan, TakenLease


def leases(plan: LeasePlan, *claims: float) -> list[int]:
    """The leases that are planned, while claims take so many seconds, one after the other."""
    planned = []
    for seconds in claims:
        planned.append(plan.lease())
        plan.claimed(seconds)
    return planned


@pytest.mark.parametrize(("claim", "lease"), [(0.0, 5), (0.625, 5), (0.626, 6), (1.3, 11)])
def test_a_lease_lasts_for_eight_claims_at_least(claim: float, lease: int) -> None:
    assert leases(LeasePlan(5), claim, claim, 0) == [5, 5, lease]


def test_one_slow_claim_among_fast_ones_changes_nothing() -> None:
    assert leases(LeasePlan(5), 0.01, 80, 0.01, 80, 0.01) == [5] * 5


def test_when_claims_are_fast_again_a_lease_is_as_it_was() -> None:
    assert leases(LeasePlan(5), 1.3, 1.3, 1.3, 0.01, 0.01) == [5, 5, 11, 11, 5]


def test_no_lease_is_longer_than_a_claim_may_ask_for() -> None:
    assert leases(LeasePlan(5), 10_000, 10_000, 0) == [5, 5, 43_200]


def test_a_longer_lease_than_was_asked_for_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING)
    plan = LeasePlan(5)
    assert leases(plan, 1.3, 0.5, 1.3, 1.3) == [5, 5, 5, 5]
    assert caplog.text == ""
    assert plan.lease() == 11
    assert "a claim takes 1.3 s, too long for a lease of 5 s: taking one of 11 s; choose" in caplog.text


@pytest.mark.parametrize(
    ("claim", "handler", "together"),
    [(0, 1, 10), (5, 1, 5), (5, 0.5, 10), (9.5, 1, 1), (0, 100, 1), (0, 0, 10_000)],
)
def test_so_many_are_claimed_together_as_can_be_begun_in_a_quarter_of_the_lease(
    claim: float, handler: float, together: int
) -> None:
    plan = LeasePlan(40)
    assert plan.together(40) == 1
    plan.claimed(claim)
    plan.claimed(claim + 1)
    plan.handled(handler)
    assert plan.together(40) == together


def test_one_slow_handler_is_forgotten_after_a_while() -> None:
    plan = LeasePlan(40)
    plan.handled(10)
    for _ in range(2):
        plan.handled(0)
    assert plan.together(40) == 4


@pytest.mark.parametrize(("now", "leaves"), [(100.0, True), (110.0, True), (110.1, False)])
def test_an_envelope_may_be_begun_in_the_first_quarter_of_its_lease(now: float, *, leaves: bool) -> None:
    assert TakenLease(100.0, 40).leaves_time(now) is leaves
