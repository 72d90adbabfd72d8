"""What failures have in common.

How many failures are too many, for certain.
"""

from fractions import Fraction
from time import process_time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fanin.domain.failures import MAX_ERROR, MIN_SAMPLE, Tolerance, error_of
from fanin.errors import InvalidRequest


@pytest.mark.parametrize(
    ("reason", "error"),
    [
        ("", ""),
        ("the disk is full", "the disk is full"),
        ("row 812 of '/data/in.csv' has no 'price'", "row <n> of <text> has no <text>"),
        ("KeyError: 'abc'", "KeyError: <text>"),
        ("no answer after 3.5 s from https://a.example/b?c=1", "no answer after <n> s from <url>"),
        ("cannot open /var/lib/in/7.json: not found", "cannot open <path>: not found"),
        ("object at 0x7f3a of deadbeef12", "object at <id> of <id>"),
        ("order 0190c1f2-0000-7000-8000-00000000abcd is void", "order <id> is void"),
        ("it's a pity, isn't it", "it's a pity, isn't it"),
        ("9,500.25 of 10:30", "<n> of <n>"),
    ],
)
def test_numbers_ids_quotes_paths_and_urls_are_replaced(reason, error):
    assert error_of(reason) == error


def test_an_error_is_cut():
    assert error_of("a" * 1000) == "a" * MAX_ERROR


@pytest.mark.parametrize("text", ["a", "0f", "a.b+", "'", "a:", "/a"])
def test_a_long_reason_takes_as_long_as_its_length(text):
    """One that is a single word, such as a digest, must not hold up the listing of thousands."""

    def seconds(length: int) -> float:
        reason = (text * length)[:length]

        def once() -> float:
            begun = process_time()
            for _ in range(20):
                error_of.__wrapped__(reason)
            return process_time() - begun

        return min(once() for _ in range(5))

    assert seconds(4_096) < 40 * seconds(256)


def exceeded(tolerance: Tolerance, failed: int, done: int) -> bool:
    return tolerance.exceeded(failed, done_min=done, done_max=done)


def test_a_share_is_that_of_its_decimal_text():
    assert not exceeded(Tolerance(percent=0.1), 1, 1_000)
    assert exceeded(Tolerance(percent=0.1), 2, 1_000)


def test_a_share_says_nothing_before_enough_is_done():
    assert MIN_SAMPLE == 100
    assert not exceeded(Tolerance(percent=5), 99, 99)
    assert exceeded(Tolerance(percent=5), 6, 100)
    assert exceeded(Tolerance(percent=5, min_sample=1), 1, 1)


def test_only_what_is_certain_counts():
    """Between the bounds of what is done, the larger makes the share, the smaller the sample."""
    assert not Tolerance(percent=5).exceeded(11, done_min=200, done_max=220)
    assert not Tolerance(percent=5).exceeded(90, done_min=99, done_max=200)


def test_an_end_is_within_both_the_count_and_the_share():
    both = Tolerance(count=1, percent=10)

    assert both.covers(1, of=20)
    assert not both.covers(2, of=20)
    assert not both.covers(1, of=5)
    assert both.in_words == "1 failure, and 10% of what is done, from 100 items on"


@given(
    count=st.none() | st.integers(0, 50),
    percent=st.none() | st.floats(0, 100).map(lambda p: round(p, 3)),
    sample=st.integers(1, 200),
    failed=st.integers(0, 300),
    more=st.integers(0, 300),
)
def test_what_is_allowed_is_within_and_one_more_is_not(count, percent, sample, failed, more):
    if count is None and percent is None:
        return
    tolerance, done = Tolerance(count, percent, sample), max(sample, failed + more)
    allowed = tolerance.allowed(done)

    assert not exceeded(tolerance, allowed, done)
    assert exceeded(tolerance, allowed + 1, done)
    assert exceeded(tolerance, failed, done) == (
        (count is not None and failed > count)
        or (percent is not None and failed > Fraction(str(percent)) * done / 100)
    )


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({}, "needs a count, a percent, or both"),
        ({"count": -1}, "count must be a whole number from 0"),
        ({"count": 1.5}, "count must be a whole number from 0"),
        ({"percent": 101}, "percent must be a number from 0 to 100, not 101"),
        ({"percent": float("nan")}, "percent must be a number from 0 to 100, not nan"),
        ({"percent": True}, "percent must be a number from 0 to 100, not True"),
        ({"percent": "5"}, "percent must be a number from 0 to 100, not '5'"),
        ({"percent": 5, "min_sample": 0}, "min_sample must be a whole number from 1"),
        ({"count": 5, "min_sample": 10}, "min_sample belongs to a percent"),
    ],
)
def test_a_tolerance_that_says_nothing_is_refused(values, said):
    with pytest.raises(InvalidRequest, match=said):
        Tolerance(**values).check()
