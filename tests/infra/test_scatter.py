"""The bucket for large replies to scatters."""

from __future__ import annotations

import pytest

from fanin import names


@pytest.mark.parametrize("given", ["altered", "frugal"])
def test_how_long_a_claim_is_kept_does_not_follow_a_setting_that_may_be_lowered(request, given):
    # Given a stack with the shortest, or the longest lifetime for new batches
    fanin = request.getfixturevalue(given)
    properties = fanin.properties(fanin.stack.tracker.scatter.claims)
    # Then the bucket deletes by what the key of a claim says, and everything else after the longest time
    rules = properties["LifecycleConfiguration"]["Rules"]
    kept = {rule.get("Prefix"): rule["ExpirationInDays"] for rule in rules}
    assert kept == {f"days-{days}/": days for days in names.CLAIM_DAYS} | {None: 366}
