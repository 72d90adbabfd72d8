"""Values of arguments and options: what is accepted, and errors that say what to write."""

from datetime import timedelta

import pytest

from fanin.cli import parsing
from fanin.domain.failures import Tolerance
from fanin.domain.marks import Count, ItemRange
from fanin.domain.redrives import OrdinalRange
from fanin.errors import InvalidRequest


def test_a_moment_that_is_over_is_a_time_or_how_long_ago():
    assert parsing.moment_past("7d") == timedelta(days=-7)
    assert parsing.moment_past("1970-01-01T00:01:00Z") == 60_000
    with pytest.raises(InvalidRequest, match="how long ago, like 7d"):
        parsing.moment_past("2026-11-21T09:40:00")


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("7:g", ItemRange("7:g")),
        ("7:g:2..5", ItemRange("7:g", 2, 5)),
        ("7:g:2..", ItemRange("7:g", 2)),
        ("7:g:..5", ItemRange("7:g", 0, 5)),
        ("7:g:..", ItemRange("7:g")),
    ],
)
def test_a_range(text, found):
    assert parsing.item_range(text) == found


@pytest.mark.parametrize("text", ["7", "7:", "7:g:", "7:g:2", "7:g:2-5", "7:g:a..b", "7:g:2..5:1"])
def test_a_text_that_is_not_a_range(text):
    with pytest.raises(InvalidRequest, match=r"write BATCH:GROUP or BATCH:GROUP:FROM\.\.TO"):
        parsing.item_range(text)


def test_a_count_names_its_batch():
    assert parsing.count("7=12") == Count(7, 12)
    for text in ("7", "7=", "7=x", "7=-1"):
        with pytest.raises(InvalidRequest, match="write BATCH=N"):
            parsing.count(text)
    with pytest.raises(InvalidRequest):
        parsing.count("x=1")


def test_a_quorum_is_a_whole_number_or_a_share():
    assert (parsing.quorum("5"), type(parsing.quorum("5"))) == (5, int)
    assert parsing.quorum("0.8") == 0.8
    with pytest.raises(InvalidRequest, match=r"a number of replies like 5, or a share like 0\.8"):
        parsing.quorum("most")


def test_the_value_of_a_pair_may_be_empty_or_have_equals_signs():
    assert parsing.pair("a=b=c") == ("a", "b=c")
    assert parsing.pair("a=") == ("a", "")
    for text in ("a", "=b", ""):
        with pytest.raises(InvalidRequest, match="write KEY=VALUE"):
            parsing.pair(text)


@pytest.mark.parametrize(
    ("text", "sample", "tolerance"),
    [
        ("10", None, Tolerance(count=10)),
        ("5%", None, Tolerance(percent=5.0)),
        ("0.5%", 20, Tolerance(percent=0.5, min_sample=20)),
        (None, None, None),
    ],
)
def test_a_tolerance_is_a_number_or_a_share(text, sample, tolerance):
    assert parsing.tolerated(text, sample) == tolerance


@pytest.mark.parametrize(("text", "sample"), [("-1", None), ("5 %", None), ("ten", None), (None, 5)])
def test_what_is_no_tolerance_is_refused(text, sample):
    with pytest.raises(InvalidRequest, match=r"is not a tolerance|needs --tolerate-failures"):
        parsing.tolerated(text, sample)


def test_a_range_of_ordinals():
    assert parsing.ordinals("0..100") == OrdinalRange(0, 100)


@pytest.mark.parametrize(
    "parse",
    [
        lambda digits: parsing.ordinal(digits, 1),
        lambda digits: parsing.count(f"1={digits}"),
        parsing.quorum,
        lambda digits: parsing.item_range(f"1:g:{digits}..{digits}"),
    ],
)
def test_a_number_of_thousands_of_digits_is_refused(parse):
    with pytest.raises(InvalidRequest):
        parse("9" * 5_000)


@pytest.mark.parametrize("text", ["nan", "inf", "-0.5", "1e3", ""])
def test_what_is_no_quorum_is_refused(text):
    with pytest.raises(InvalidRequest, match="is not a quorum"):
        parsing.quorum(text)
