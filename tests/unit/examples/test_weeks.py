"""ISO weeks as people write them, and the report as it is packed; its SQL is tested on Spark."""

from datetime import date

import pytest

from examples.fleet.analytics.weeks import Period, label, monday
from fanin.errors import InvalidRequest

FIRST = date(2024, 3, 4)


@pytest.mark.parametrize(
    ("text", "day"),
    [("2013-W46", date(2013, 11, 11)), ("2020-W53", date(2020, 12, 28)), ("2025-W01", date(2024, 12, 30))],
)
def test_a_week_is_its_monday_and_back(text, day):
    assert (monday(text), label(day)) == (day, text)


@pytest.mark.parametrize(
    "text", ["2013-W00", "2019-W53", "2020-W54", "2013-46", "2013-W4", "W46", "", "\u0662024-W10"]
)
def test_other_texts_are_refused_with_an_example(text):
    with pytest.raises(InvalidRequest, match="is not an ISO week; write it like 2013-W46"):
        monday(text)


def test_a_period_that_ends_before_it_begins_is_refused():
    with pytest.raises(InvalidRequest, match="2024-W12 is after the last week 2024-W10; swap them"):
        Period.parse("2024-W12", "2024-W10")


def test_a_period_has_its_weeks_across_years_too():
    # Given a period over a year of 53 weeks, when it is asked for its weeks, then they follow each other
    period = Period.parse("2020-W52", "2021-W01")
    assert [label(day) for day in period.within(FIRST, FIRST)] == ["2020-W52", "2020-W53", "2021-W01"]
