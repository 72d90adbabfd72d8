"""Reports of batches: what they derive, and what a report without news says."""

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from fanin.domain.batch import Batch, State
from fanin.domain.reports import Batches, Expired, Failures, Missing, Progress, Verdict, merge_verdicts

BATCH = Batch(
    batch_id=1, salt=b"s", created_at=0, touched_at=0, expires_at=1, open_idle_ttl=60, closed_idle_ttl=60
)


@given(least=st.integers(0, 3), most=st.integers(0, 3))
def test_progress_is_exact_when_its_bounds_meet(least, most):
    assert Progress(BATCH, least, most).exact is (least == most)


def test_a_report_without_news_says_that_all_is_well_and_all_was_looked_at():
    pages = [Missing(()), Failures(()), Batches(())]
    assert [page.cursor for page in pages] == [None] * 3
    assert Expired() == Expired(batches=0, items=0)
    verdict = Verdict(BATCH, 3)
    assert (verdict.disagreements, verdict.repaired, verdict.cursor) == ((), False, None)


def test_verdicts_add_up_over_pages_and_end_with_the_last_row():
    # Given three pages, of which the second was repaired and says something of the first again
    ended = replace(BATCH, state=State.COMPLETE)
    pages = [
        Verdict(BATCH, 2, ("a",), cursor="2"),
        Verdict(BATCH, 0, ("a", "b", "c"), repaired=True, cursor="4"),
        Verdict(ended, 5),
    ]
    # When, then
    assert merge_verdicts(iter(pages)) == Verdict(ended, 7, ("a", "b", "c"), repaired=True, cursor=None)
