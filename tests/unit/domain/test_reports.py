"""Reports of batches: what they derive, and what a report without news says."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fanin.domain.batch import Batch
from fanin.domain.reports import Batches, Expired, Failures, Missing, MissingRange, Progress, Verdict

BATCH = Batch(
    batch_id=1,
    salt=b"s",
    created_at=0,
    touched_at=0,
    expires_at=1,
    open_idle_ttl=60,
    closed_idle_ttl=60,
)


@given(least=st.integers(0, 3), most=st.integers(0, 3))
def test_progress_is_exact_when_its_bounds_meet(least: int, most: int) -> None:
    assert Progress(BATCH, least, most).exact is (least == most)


@pytest.mark.parametrize("page", [Missing(()), Failures(()), Batches(())])
def test_a_page_is_the_last_unless_it_has_a_cursor(page: Missing | Failures | Batches) -> None:
    assert page.cursor is None


def test_an_expiry_that_found_nothing_counts_nothing() -> None:
    assert Expired() == Expired(batches=0, items=0)


def test_a_verdict_says_all_is_well_and_all_was_checked_unless_told_otherwise() -> None:
    verdict = Verdict(BATCH, 3)

    assert (verdict.disagreements, verdict.repaired, verdict.cursor) == ((), False, None)


def test_reports_of_the_same_content_are_equal() -> None:
    ranges = (MissingRange(0, 3, "1:g"), MissingRange(5, 6, "1:h"))

    assert Missing(ranges, "next") == Missing(tuple(ranges), "next")
    assert Missing(ranges, "next") != Missing(ranges)
    assert len({Missing(ranges), Missing(ranges[:1]), Missing(ranges)}) == 2
